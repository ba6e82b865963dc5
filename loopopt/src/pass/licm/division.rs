//! Divisions that do not trap before their loop.
//!
//! Both operands are from outside of the loop, or pure and made of what is, so that they are there what they are in each iteration. What the branches and checks
//! say on all paths to the end of the preheader holds there, whether or not the loop asks again; what the loop itself asks does not count. A division that does
//! not trap has no effect, and may be done although no iteration would have executed it.

use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::facts::known::{Conditions, Place};
use crate::analysis::inst::number::mask;
use crate::analysis::scev::invariant::invariant_chain;
use crate::analysis::scev::linear_expr::Sum;
use crate::fault::fault;
use crate::options::Options;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, Function, Inst, Opcode};
use cranelift_codegen::{Context, FxHashSet};

/// The divisions of a function that do not trap at the end of the preheader of an enclosing loop. Found before anything moves, in one go: what is known
/// of a place is made of all that is known above.
pub(super) struct Divisions {
    safe: FxHashSet<(Loop, Inst)>,
}

impl Divisions {
    /// Costs nothing but a look at the instructions of loops if none of these is a division by what may be zero.
    pub(super) fn of(ctx: &Context, forest: &LoopForest, options: &Options) -> Self {
        let func = &ctx.func;
        let mut conditions = Conditions::new(func, &ctx.cfg, &ctx.domtree).with_options(options);
        let mut safe = FxHashSet::default();
        for lp in forest.loops() {
            let insts = forest.own_blocks(lp).flat_map(|block| func.layout.block_insts(block));
            for inst in insts.filter(|&inst| may_trap(func, inst)) {
                for around in levels(forest, lp) {
                    let is_invariant = |&value: &_| invariant_chain(func, forest, around, value).is_some();
                    let Some(preheader) = forest.preheader(func, around) else { continue };
                    if !func.dfg.inst_args(inst).iter().all(is_invariant) {
                        break;
                    }
                    if never_traps(func, &mut conditions, (inst, preheader)) {
                        safe.insert((around, inst));
                    }
                }
            }
        }
        Self { safe }
    }

    /// Whether `inst`, whose operands are the same in each iteration of `lp`, is a division that does not trap at the end of the preheader: not by 0, and not
    /// the smallest number by -1.
    pub(super) fn divides_well(&self, lp: Loop, inst: Inst) -> bool {
        self.safe.contains(&(lp, inst))
    }
}

/// The enclosing loops of a block of which `lp` is the innermost one.
fn levels(forest: &LoopForest, lp: Loop) -> impl Iterator<Item = Loop> + '_ {
    std::iter::successors(Some(lp), |&lp| forest.data(lp).parent).take(super::MAX_HEIGHT)
}

/// Whether `inst` is a division of integers of a known width that its opcode lets trap.
fn may_trap(func: &Function, inst: Inst) -> bool {
    let opcode = func.dfg.insts[inst].opcode();
    matches!(opcode, Opcode::Udiv | Opcode::Urem | Opcode::Sdiv | Opcode::Srem)
        && func.dfg.ctrl_typevar(inst).bits() <= u64::BITS
}

/// Whether a division does not trap at the end of `preheader`.
fn never_traps(func: &Function, conditions: &mut Conditions<'_>, (inst, preheader): (Inst, Block)) -> bool {
    let is_signed = matches!(func.dfg.insts[inst].opcode(), Opcode::Sdiv | Opcode::Srem);
    let [dividend, divisor] = *func.dfg.inst_args(inst) else { return false };
    let bits = func.dfg.value_type(divisor).bits();
    let mut is_never = |value, number: u64| {
        let sides = [&Sum::of(func, value), &Sum::constant(number & mask(bits), bits)];
        conditions.holds(Place::end(func, preheader), IntCC::NotEqual, sides)
    };
    if fault!(DivisorsUnknown) {
        return true;
    }
    is_never(divisor, 0) && (!is_signed || is_never(divisor, u64::MAX) || is_never(dividend, 1 << (bits - 1)))
}
