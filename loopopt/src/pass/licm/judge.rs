//! Whether it pays to move an instruction, with what is moved for it alone.

use super::Motion;
use super::why::Decline;
use crate::analysis::inst::effects::is_constant;
use crate::analysis::pressure::Pressure;
use cranelift_codegen::FxHashSet;
use cranelift_codegen::ir::{Block, Function, Inst, InstructionData, Opcode, Value};

/// Candidates that find no register before the rest is not asked any more: it bounds the time.
const MAX_SHORT: usize = 64;

/// Instructions for which a value may be spilled. 4: two of the sums that a test before a loop compares are 9, and leave two values.
const INSTS_PER_SPILL: usize = 4;

/// Nested loops that an instruction may leave. Each loop is looked at once for each level inside it.
pub(crate) const MAX_HEIGHT: usize = 16;

impl Motion<'_, '_> {
    /// Whether it pays to hoist `inst`. Gives all that is hoisted with it, operands first.
    pub(super) fn judge(&mut self, block: Block, inst: Inst) -> Result<Vec<Inst>, Decline> {
        if self.cx.options.ignore_cost {
            return Ok(self.chain(inst));
        }
        if self.func.is_effectively_cold(block) && !self.func.is_effectively_cold(self.place.preheader) {
            return Err(Decline::Cold { inst });
        }
        if folds(self.func, inst) && !bounds_a_counter(self.func, (block, inst)) && !is_compared(self.func, inst) {
            return Err(Decline::Folds);
        }
        if self.short >= MAX_SHORT {
            let (needed, available) = self.pressure.as_ref().map_or(([0; 2], [0; 2]), Pressure::needed);
            return Err(Decline::Pressure { inst, needed, available });
        }
        self.measure();
        let chain = self.chain(inst);
        match &self.pressure {
            Some(pressure) if !pressure.allows(self.func, &chain, self.may_spill(&chain)) => {
                let (needed, available) = pressure.needed();
                self.short += 1;
                Err(Decline::Pressure { inst, needed, available })
            }
            _ => Ok(chain),
        }
    }

    /// How many values may be spilled for what `chain` computes. A value that is loaded from the stack takes one instruction.
    fn may_spill(&self, chain: &[Inst]) -> usize {
        chain.iter().filter(|&&inst| !is_constant(self.func, inst)).count() / INSTS_PER_SPILL
    }

    fn measure(&mut self) {
        let (func, forest, lp, cx) = (&*self.func, self.place.forest, self.place.lp, &*self.cx);
        self.pressure.get_or_insert_with(|| Pressure::of(func, forest, lp, cx.isa, &cx.use_counts));
    }

    /// `inst`, after all instructions of the loop that it needs.
    pub(super) fn chain(&self, inst: Inst) -> Vec<Inst> {
        let (mut chain, mut stack) = (Vec::new(), vec![(inst, false)]);
        let mut seen = FxHashSet::default();
        while let Some((inst, operands_done)) = stack.pop() {
            if operands_done {
                chain.push(inst);
                continue;
            }
            if !seen.insert(inst) {
                continue;
            }
            stack.push((inst, true));
            let defs = self.func.dfg.inst_values(inst).filter_map(|value| self.func.dfg.value_def(value).inst());
            stack.extend(defs.filter(|&def| self.ready.contains(def)).map(|def| (def, false)));
        }
        chain
    }
}

/// Whether the branch at the end of `block` compares what `inst` masks with something that is no constant. How often the loop runs
/// can only be known before it if that is there.
fn bounds_a_counter(func: &Function, (block, inst): (Block, Inst)) -> bool {
    let dfg = &func.dfg;
    let Some(InstructionData::Brif { arg, .. }) = func.layout.last_inst(block).map(|last| dfg.insts[last]) else {
        return false;
    };
    let test = dfg.value_def(arg).inst().map(|test| dfg.insts[test]);
    let Some(InstructionData::IntCompare { args, .. }) = test.filter(|_| dfg.insts[inst].opcode() == Opcode::Band)
    else {
        return false;
    };
    let is_mask = |value: Value| dfg.value_def(value).inst() == Some(inst);
    let is_number = |value: Value| dfg.value_def(value).inst().is_none_or(|def| !is_constant(func, def));
    args.iter().any(|&arg| is_mask(arg)) && args.iter().all(|&arg| is_number(arg))
}

/// Whether what `inst` adds or subtracts is compared in its block: that takes an instruction, and a move if what it is made of lives on. So it is with the
/// length of a memory, from which the size of an access is subtracted for its check.
fn is_compared(func: &Function, inst: Inst) -> bool {
    /// Instructions after it that are looked at: a check stands next to what it asks.
    const LOOKED_AT: usize = 12;
    let dfg = &func.dfg;
    if !matches!(dfg.insts[inst].opcode(), Opcode::Iadd | Opcode::Isub) {
        return false;
    }
    let result = dfg.first_result(inst);
    let behind = std::iter::successors(func.layout.next_inst(inst), |&inst| func.layout.next_inst(inst));
    let compares = |inst| dfg.insts[inst].opcode() == Opcode::Icmp && dfg.inst_args(inst).contains(&result);
    behind.take(LOOKED_AT).any(compares)
}

/// Whether `inst` costs nothing where its result is used: as a part of an addressing mode, as an operation with an immediate
/// that Cranelift rematerializes in each block anyway, as the comparison of a branch, or as another name for a register.
fn folds(func: &Function, inst: Inst) -> bool {
    use Opcode::{Band, Bnot, Bor, Bxor, Fcmp, Iadd, Icmp, Iconcat, Ireduce, Ishl, Isplit, Isub, StackAddr, Uextend};
    let has_constant = || {
        let defs = func.dfg.inst_args(inst).iter().filter_map(|&arg| func.dfg.value_def(arg).inst());
        defs.into_iter().any(|def| is_constant(func, def))
    };
    match func.dfg.insts[inst].opcode() {
        Icmp | Fcmp | Ireduce | Uextend | Isplit | Iconcat | StackAddr | Bnot => true,
        Iadd | Isub | Band | Bor | Bxor | Ishl => has_constant(),
        _ => false,
    }
}
