//! If-conversion: a short `if` in a loop becomes a choice of values.
//!
//! ```text
//! block1:                              block1:
//!     v3 = load v2                         v3 = load v2
//!     v4 = icmp slt v3, v0 (0)             v4 = icmp slt v3, v0
//!     brif v4, block2, block3(v3)  ──►     v5 = ineg v3
//! block2:                                  v6 = select v4, v5, v3
//!     v5 = ineg v3                         jump block3(v6)
//!     jump block3(v5)                  block3(v6):
//! block3(v6):
//! ```
//!
//! Where one arm adds something to what the other one leaves unchanged, what is added is chosen, or nothing ([`choice`]): then the next iteration waits for an
//! addition, and not for the choice.
//!
//! A branch on what the loop has loaded is predicted wrongly as often as not, and costs as much as twenty instructions then. Both sides cost one or two.
//! The loop has fewer blocks, too: its iterations become one that later passes put together.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! (L1) Each side is the edge to the block where both meet, or one block that nothing else enters and nothing names, which
//! computes and jumps there. (L2) All that the sides compute is pure: nobody can tell whether it was computed.
//!
//! # Pays when
//!
//! (P1) The sides are short, cheap, and choose between few integers, which the machine does in one instruction. What both arms add different constants to, such as
//! fuel, does not count: nothing waits for it. (P2) What decides depends on something that the
//! loop loads: counters and what is loop-invariant are predicted well. (P3) It does not [wait](crate::analysis::scev::backward_slice) for what was chosen in the iteration before, as the search for a maximum does:
//! a right prediction ends such a wait, and a choice makes it longer; but where a bit of a number decides what the next one is made of, as in a checksum by shifts, no
//! prediction is right. (P4) No side is cold, and neither is the loop.
//!
//! `clamped-distance` of `bench-programs` takes 0.065 of Cranelift's time; edge detection, an edit distance, a sieve's count and a count of characters, with new data in
//! each call, 0.29, 0.50, 0.53 and 0.37, where they took 0.90, 0.82, 0.73 and 0.83 without this pass. What it costs where a branch always takes the same edge: a sum of the bytes
//! below a limit takes 0.74 of Cranelift's time if there is none, and 0.46 with the branch; 0.67 and 0.64 if all are. A profile that says so makes the other arm cold.
//!
//! # Changes
//!
//! Blocks and edges. No loop is added or removed, and loops stay in the form that they have.
//!
//! # Not done
//!
//! Sides that load or store; floats, for which x86-64 has no such instruction; more than two arms.
//!
//! # References
//!
//! LLVM `SimplifyCFG` (`foldTwoEntryPHINode`) and, for what is better left a branch, `X86CmovConversion.cpp`; GCC `ifcvt.cc`.

mod choice;

use crate::analysis::cfg::edges::{Edge, edges_from, only_edge_into};
use crate::analysis::cfg::jumps::jump_target;
use crate::analysis::cfg::loops::{Loop, LoopForest};
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::inst::number::constant_of;
use crate::analysis::scev::backward_slice::BackwardSlice;
use crate::analysis::scev::recurrence::Recurrences;
use crate::analysis::scev::view::View;
use crate::change::Change;
use crate::edit::materialize::neighbours::needs_neighbours;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::canon::merge_blocks;
use crate::pass::{Form, Pass, PassCx};
use crate::refusal::refusals;
use choice::{choose, stepped};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context};
use std::cell::OnceCell;
use std::collections::BTreeSet;

/// The name of this pass.
pub(crate) const NAME: &str = "if_convert";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], keeps: Form::Canonical, ..Pass::OPTIONAL };

/// How many nested branches become choices, and two to that power of branches one after another. 4: eight shifts of a checksum, and a chain of four comparisons.
const MAX_ROUNDS: usize = 4;

/// Converts what pays in all loops, inner branches before the outer ones.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let mut headers: Vec<_> = forest.loops().map(|lp| forest.data(lp).header).collect();
    for _ in 0..MAX_ROUNDS {
        let plans: Vec<_> = headers.iter().flat_map(|&header| plan(ctx, cx, header)).collect();
        if plans.is_empty() {
            break;
        }
        headers = plans.iter().map(|plan| plan.header).collect();
        headers.dedup();
        for plan in &plans {
            plan.apply(&mut ctx.func);
        }
        cx.invalidate_and_prune(ctx)?;
        merge_blocks(ctx, cx);
    }
    Ok(Change::Nothing)
}

/// What is to be converted in the loop of `header`. No two of them have a block in common.
fn plan(ctx: &Context, cx: &mut PassCx<'_>, header: Block) -> Vec<Diamond> {
    let forest = cx.forest(ctx);
    let Some(lp) = forest.loop_of_header(header).filter(|_| !cx.marks.is_left_alone(header)) else { return Vec::new() };
    let (mut plans, mut taken, mut refused) = (Vec::new(), BTreeSet::new(), Decline::NoShortIf);
    let recurrences = OnceCell::new();
    for block in forest.own_blocks(lp) {
        let Some(diamond) = Diamond::find(ctx, &forest, lp, block) else { continue };
        if diamond.blocks().any(|block| taken.contains(&block)) {
            continue;
        }
        match diamond.judge((View { ctx, forest: &forest }, lp), &recurrences, cx.options) {
            Ok(()) if !cx.fuel.take() => refused = Decline::Withheld,
            Ok(()) => {
                taken.extend(diamond.blocks());
                let what = format!(
                    "values chosen in the place of the branch of {block}: {}",
                    diamond.chosen(&ctx.func).count()
                );
                cx.fired(&ctx.func, &PASS, header, what);
                plans.push(diamond);
            }
            Err(why) => refused = why,
        }
    }
    if plans.is_empty() && !cx.has_fired(NAME, header) {
        cx.declined(&ctx.func, NAME, header, &refused);
    }
    plans
}

/// A branch of which both arms meet immediately.
struct Diamond {
    /// The header of the loop that it is in.
    header: Block,
    branch: Inst,
    block: Block,
    /// For each arm, the block on it, if there is one.
    sides: [Option<Block>; 2],
    /// What each arm passes, for each parameter of the block where they meet.
    passed: Vec<[Value; 2]>,
    meet: Block,
}

impl Diamond {
    /// The branch of `block`, if it is one (L1, L2).
    fn find(ctx: &Context, forest: &LoopForest, lp: Loop, block: Block) -> Option<Self> {
        let func = &ctx.func;
        let branch = func.layout.last_inst(block)?;
        let InstructionData::Brif { arg, .. } = func.dfg.insts[branch] else { return None };
        if func.dfg.value_type(arg).bits() > 64 {
            return None;
        }
        let mut edges = edges_from(func, block);
        let arms = [edges.next()?, edges.next()?];
        let is_side = |arm: Edge, side: Block| {
            let is_lonely = only_edge_into(func, &ctx.cfg, side).is_some() && !forest.is_named(side);
            let mut insts =
                func.layout.block_insts(side).filter(|&inst| !func.dfg.insts[inst].opcode().is_terminator());
            let may_run = |inst| Effects::of(func, inst).is_pure() && !needs_neighbours(func, inst);
            is_lonely && arm.args(func).len() == 0 && insts.all(may_run)
        };
        let through = arms.map(|arm| {
            let side = arm.target(func);
            let next = jump_target(func, side).filter(|_| is_side(arm, side))?;
            Some((side, next))
        });
        let [then, other] = arms.map(|arm| arm.target(func));
        let (sides, meet) = match through {
            [Some((a, next)), Some((b, other))] if next == other && a != b => ([Some(a), Some(b)], next),
            [Some((side, next)), _] if next == other => ([Some(side), None], next),
            [_, Some((side, next))] if next == then => ([None, Some(side)], next),
            _ if then == other => ([None, None], then),
            _ => return None,
        };
        let own = |block| forest.innermost(block) == Some(lp);
        let stays = own(meet) && meet != forest.data(lp).header && sides.iter().flatten().all(|&side| own(side));
        if !stays || meet == block {
            return None;
        }
        let end = |slot: usize| sides[slot].and_then(|side| edges_from(func, side).next()).unwrap_or(arms[slot]);
        let value = |arg: BlockArg| arg.as_value().expect("a branch passes values");
        let pairs = end(0).args(func).zip(end(1).args(func));
        let passed = pairs.map(|(then, other)| [value(then), value(other)]).collect();
        Some(Self { header: forest.data(lp).header, branch, block, sides, passed, meet })
    }

    fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        [self.block, self.meet].into_iter().chain(self.sides.iter().flatten().copied())
    }

    /// The parameters of the block where they meet, with what each arm passes, for which that is not the same.
    fn chosen(&self, func: &Function) -> impl Iterator<Item = (Value, [Value; 2])> {
        let params = func.dfg.block_params(self.meet).iter().copied().zip(self.passed.iter().copied());
        params.filter(|(_, [then, other])| then != other)
    }

    /// Whether it pays.
    fn judge(
        &self,
        (view, lp): (View<'_>, Loop),
        recurrences: &OnceCell<Recurrences>,
        options: &Options,
    ) -> Result<(), Decline> {
        if options.ignore_cost {
            return Ok(());
        }
        let func = view.func();
        let is_cold = |block: Block| func.is_effectively_cold(block);
        if self.blocks().any(is_cold) {
            return Err(Decline::ColdSide);
        }
        let insts = self.sides.iter().flatten().flat_map(|&side| func.layout.block_insts(side));
        let is_computed = |inst: &Inst| !is_constant(func, *inst) && !func.dfg.insts[*inst].opcode().is_terminator();
        let computed: Vec<_> = insts.filter(is_computed).collect();
        let (steps, choices): (Vec<_>, Vec<_>) =
            self.chosen(func).map(|(_, values)| values).partition(|values| stepped(func, *values).is_some());
        let is_step = |inst: &Inst| {
            let makes = |value: &Value| func.dfg.value_def(*value).inst() == Some(*inst);
            steps.iter().flatten().any(makes)
        };
        let size = computed.iter().filter(|&inst| !is_step(inst)).count() + choices.len();
        if size > options.if_convert_max_insts || !computed.iter().all(|&inst| is_cheap(func, inst)) {
            return Err(Decline::TooLarge { insts: size, max: options.if_convert_max_insts });
        }
        let chooses_integers = self.chosen(func).all(|(_, [then, _])| is_machine_integer(func, then));
        if !chooses_integers {
            return Err(Decline::NoIntegers);
        }
        let condition = func.dfg.inst_args(self.branch)[0];
        let mixes = self.mixes(func);
        let slice = match BackwardSlice::of(view, lp, condition) {
            // A bit of so much is hardly a pattern.
            None if mixes => return Ok(()),
            Some(slice) if !slice.loads().is_empty() => slice,
            _ => return Err(Decline::Predicted),
        };
        let chosen: Vec<_> = self.chosen(func).map(|(param, _)| param).collect();
        match mixes || !slice.waits_for((view, lp), recurrences, &chosen) {
            true => Ok(()),
            false => Err(Decline::Waits),
        }
    }

    /// Whether a bit decides which of two new numbers there is, as in a checksum by shifts: a bit of a number that is mixed so is not predicted.
    fn mixes(&self, func: &Function) -> bool {
        let is_new = |value: &Value| func.dfg.value_def(*value).inst().is_some_and(|inst| !is_constant(func, inst));
        let makes_new = self.chosen(func).all(|(_, values)| values.iter().all(is_new));
        makes_new && asks_for_a_bit(func, func.dfg.inst_args(self.branch)[0])
    }

    fn apply(&self, func: &mut Function) {
        for &side in self.sides.iter().flatten() {
            let last = func.layout.last_inst(side).expect("it jumps");
            while let Some(inst) = func.layout.first_inst(side).filter(|&inst| inst != last) {
                func.layout.remove_inst(inst);
                func.layout.insert_inst(inst, self.branch);
            }
        }
        let condition = func.dfg.inst_args(self.branch)[0];
        let args: Vec<_> = self
            .passed
            .iter()
            .map(|&[then, other]| {
                let values = if fault!(ChoosesTheOther) { [other, then] } else { [then, other] };
                BlockArg::Value(choose(func, self.branch, condition, values))
            })
            .collect();
        func.replace(self.branch).jump(self.meet, &args);
    }
}

/// Whether a condition is what a mask with one bit leaves of a number, or whether that is zero or not.
fn asks_for_a_bit(func: &Function, condition: Value) -> bool {
    let data = |value: Value| func.dfg.value_def(value).inst().map(|inst| func.dfg.insts[inst]);
    let masked =
        match data(condition) {
            Some(InstructionData::IntCompare {
                args: [masked, zero], cond: IntCC::Equal | IntCC::NotEqual, ..
            }) if constant_of(func, zero) == Some(0) => masked,
            _ => condition,
        };
    let Some(InstructionData::Binary { opcode: Opcode::Band, args }) = data(masked) else { return false };
    args.iter().filter_map(|&arg| constant_of(func, arg)).any(u64::is_power_of_two)
}

/// Whether it is an integer of up to 64 bits.
fn is_machine_integer(func: &Function, value: Value) -> bool {
    let ty = func.dfg.value_type(value);
    ty.is_int() && ty.bits() <= 64
}

/// Whether the machine computes it in one cycle.
fn is_cheap(func: &Function, inst: Inst) -> bool {
    use Opcode::{Band, Bnot, Bor, Bxor, Iadd, Icmp, Ineg, Ireduce, Ishl, Isub, Select, Sextend, Sshr, Uextend, Ushr};
    let opcode = func.dfg.insts[inst].opcode();
    let is_one_cycle = matches!(
        opcode,
        Band | Bnot
            | Bor
            | Bxor
            | Iadd
            | Icmp
            | Ineg
            | Ireduce
            | Ishl
            | Isub
            | Select
            | Sextend
            | Sshr
            | Uextend
            | Ushr
    );
    is_one_cycle && func.dfg.inst_results(inst).iter().all(|&value| is_machine_integer(func, value))
}

refusals! {
    /// Why a loop keeps its branches.
    enum Decline {
        /// (L1) No branch has arms that meet immediately.
        NoShortIf => "no-short-if", "no branch has two short sides that only compute and then join";
        /// (P1) The sides are too large, or need what takes long.
        TooLarge { insts: usize, max: usize } => "too-large", "both sides and the choice take {insts} instructions, more than {max}, or slow ones",
            help "raise Options::if_convert_max_insts if the branch is hard to predict";
        /// (P1) What is chosen is no integer.
        NoIntegers => "no-integers", "it would choose between other numbers than integers of up to 64 bits";
        /// (P2) The condition is predicted well.
        Predicted => "predicted", "what decides the branch does not depend on anything that the loop loads";
        /// (P3) The condition depends on what was chosen before.
        Waits => "waits", "what decides the branch depends on what it has chosen in the iteration before";
        /// (P4) A side is cold.
        ColdSide => "cold-side", "one of the arms is cold";
    }
    shared { Withheld }
}
