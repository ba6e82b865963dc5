//! Latch splitting: what an iteration passes to the next one is used once, so that the loads that it is made of are operands.
//!
//! ```text
//! block1(v1: i64, v2: i64):                     block1(v1: i64, v2: i64):
//!     v3 = load.i64 v1                              v3 = load.i64 v1
//!     v4 = iadd v2, v3                              v4 = iadd v2, v3             add rax, [rdi]
//!     v5 = iadd v1, 8                               v5 = iadd v1, 8
//!     v6 = icmp ult v5, v0               ──►        v6 = icmp ult v5, v0
//!     brif v6, block1(v5, v4), block2(v4)           jump block9(v4)
//!                                               block9(v7: i64):
//!                                                   brif v6, block1(v5, v7), block2(v7)
//! ```
//!
//! On x86-64 a load can be an operand of the instruction that uses it, if nothing else does. Cranelift's lowering takes a value that is used twice for
//! one that may be computed twice, and with it all that it is made of (`compute_use_states` in its `lower.rs`): a sum that the back edge and the exit
//! both pass keeps each load of its iteration in an instruction and a register of its own. A parameter of a block ends that: it has many uses, and
//! the block argument has one. The block costs nothing: it is placed after the latch, and the parameter is in the register of the value.
//!
//! # Needs
//!
//! Nothing. Comes last: a parameter that is always the same value would be removed by passes that look for such.
//!
//! # Legal when
//!
//! Always: the parameter is the value, and all other uses of the value are after the latch.
//!
//! # Pays when
//!
//! (P1) The machine has such operands, and lowering sees the parameter. (P2) The value is used twice, by no instruction of the latch, and the latch has a load of at least 32 bits that one of
//! the instructions uses that the value is made of, and nothing else does.
//!
//! # Changes
//!
//! A block and an edge for each latch, parameters, arguments. What computes the other block arguments is moved to the end of the latch with the test,
//! as far as nothing else in the latch uses it: a folded load reads its address where it is used.
//!
//! # Not done
//!
//! `Context::compile` removes such parameters whatever the level is. Only who lowers the function as it is, as Wasmtime and
//! [`compile_directly`](crate::LoopOptimizer::compile_directly) do, gets the operands, and has to say so
//! ([`Options::lowers_directly`](crate::Options::lowers_directly)): without them, the order of the latch is worse (the sample `known-count`
//! takes 0.40 of Cranelift's time and not 0.36).

use crate::analysis::cfg::edges::{Edge, count_uses, each_use};
use crate::analysis::cfg::loops::latches;
use crate::analysis::inst::effects::{Effects, is_constant};
use crate::analysis::inst::number::constant_of;
use crate::change::Change;
use crate::edit::inst::labels::copy_labels;
use crate::edit::inst::rename::{Renames, rename_uses};
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Block, BlockArg, Function, Inst, InstBuilder, InstructionData, Opcode, Value, ValueDef};
use cranelift_codegen::{CodegenResult, Context};
use std::cell::LazyCell;
use std::ops::Deref;
use target_lexicon::Architecture;

/// The name of this pass.
pub(crate) const NAME: &str = "split_latch";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[], pays_alone: false, ..Pass::OPTIONAL };

/// Splits all latches where it pays.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let is_kept = cx.options.lowers_directly || cx.options.ignore_cost;
    if !is_kept || !matches!(cx.isa.triple().architecture, Architecture::X86_64) {
        return Ok(Change::Nothing);
    }
    let uses = LazyCell::new(|| count_uses(&ctx.func));
    let mut plans = Vec::new();
    for (header, back_edge) in latches(&ctx.func, &ctx.domtree) {
        match Plan::find(&ctx.func, &uses, back_edge) {
            Some(plan) if cx.fuel.take() => {
                let message = format!("values that are passed on once, so that loads fold: {}", plan.values.len());
                cx.fired(&ctx.func, &PASS, header, message);
                plans.push(plan);
            }
            Some(_) => cx.declined(&ctx.func, NAME, header, &Decline::Withheld),
            None => cx.declined(&ctx.func, NAME, header, &Decline::NothingFolds),
        }
    }
    if plans.is_empty() {
        return Ok(Change::Nothing);
    }
    let mut renames = Renames::default();
    for plan in &plans {
        plan.apply(&mut ctx.func, &mut renames);
    }
    if !renames.is_empty() {
        renames.apply_elsewhere(&mut ctx.func);
    }
    Ok(Change::Cfg)
}

/// A latch to be split.
struct Plan {
    latch: Block,
    branch: Inst,
    /// What is moved to the end of the latch, in this order.
    last: Vec<Inst>,
    /// What it passes through parameters of the new block.
    values: Vec<Value>,
    /// Whether something after the branch uses one of them.
    has_uses_after: bool,
}

impl Plan {
    fn find(func: &Function, uses: &impl Deref<Target = Uses>, back_edge: Edge) -> Option<Self> {
        let (latch, branch) = (back_edge.source(func), back_edge.branch);
        let insts = || func.layout.block_insts(latch).take_while(|&inst| inst != branch);
        if func.dfg.insts[branch].opcode() != Opcode::Brif || !insts().any(|inst| may_fold(func, inst)) {
            return None;
        }
        let mut values: Vec<Value> = Vec::new();
        for value in back_edge.args(func).filter_map(|arg| arg.as_value()) {
            if !values.contains(&value) && folds_a_load(func, (latch, uses), value) {
                values.push(value);
            }
        }
        for inst in insts() {
            each_use(func, inst, |used| values.retain(|&value| value != used));
        }
        let mut passed = 0;
        each_use(func, branch, |used| passed += u32::from(values.contains(&used)));
        let all: u32 = values.iter().map(|&value| uses[value]).sum();
        if values.is_empty() {
            return None;
        }
        let last = last(func, (latch, uses), back_edge, &values);
        Some(Self { latch, branch, last, values, has_uses_after: all > passed })
    }

    fn apply(&self, func: &mut Function, renames: &mut Renames) {
        let Self { latch, branch, ref last, ref values, has_uses_after } = *self;
        for &inst in last {
            func.layout.remove_inst(inst);
            func.layout.insert_inst(inst, branch);
        }
        let block = func.dfg.make_block();
        func.layout.insert_block_after(block, latch);
        if func.layout.is_cold(latch) {
            func.layout.set_cold(block);
        }
        func.layout.remove_inst(branch);
        func.layout.append_inst(branch, block);
        let args: Vec<BlockArg> = values.iter().map(|&value| value.into()).collect();
        let srcloc = func.srcloc(branch);
        FuncCursor::new(func).at_bottom(latch).with_srcloc(srcloc).ins().jump(block, &args);
        for &value in values {
            let ty = func.dfg.value_type(value);
            let param = func.dfg.append_block_param(block, ty);
            copy_labels(func, value, param);
            rename_uses(func, branch, |used| if used == value { param } else { used });
            if has_uses_after {
                renames.insert(value, param);
            }
        }
    }
}

/// The instructions of `latch` that compute what `back_edge` passes, and the test, as far as nothing else in the latch uses them: at the end, they may
/// overwrite what the folded loads read. `values` stay where they are, and so does what is made of two numbers that are carried, or of what the latch computes: these would have to wait in registers.
fn last(
    func: &Function,
    (latch, uses): (Block, &impl Deref<Target = Uses>),
    back_edge: Edge,
    values: &[Value],
) -> Vec<Inst> {
    let movable = |value| made_in(func, latch, value).filter(|&def| Effects::of(func, def).is_pure());
    let condition = func.dfg.inst_args(back_edge.branch)[0];
    let test = movable(condition).filter(|_| uses[condition] == 1);
    let passed = back_edge.args(func).filter_map(|arg| arg.as_value()).filter(|value| !values.contains(value));
    let candidates: Vec<Inst> = passed.filter_map(movable).chain(test).collect();
    let insts: Vec<Inst> = func.layout.block_insts(latch).take_while(|&inst| inst != back_edge.branch).collect();
    let mut last: Vec<Inst> = Vec::new();
    let header = back_edge.target(func);
    let is_carried = |value: &Value| matches!(func.dfg.value_def(*value), ValueDef::Param(block, _) if block == header);
    for &inst in insts.iter().filter(|inst| candidates.contains(inst)) {
        let waits = |value: Value| {
            made_in(func, latch, value).is_some_and(|def| !is_constant(func, def) && !last.contains(&def))
        };
        let carried = func.dfg.inst_values(inst).filter(is_carried).count();
        if carried <= 1 && !func.dfg.inst_values(inst).any(waits) {
            last.push(inst);
        }
    }
    // Backwards, users come before what they use.
    for &inst in insts.iter().rev().filter(|inst| !last.contains(inst)).collect::<Vec<_>>() {
        let mut open = vec![inst];
        while let Some(user) = open.pop() {
            each_use(func, user, |used| {
                if let Some(def) = movable(used)
                    && let Some(place) = last.iter().position(|&inst| inst == def)
                {
                    last.swap_remove(place);
                    open.push(def);
                }
            });
        }
    }
    insts.into_iter().filter(|inst| last.contains(inst)).collect()
}

/// The instruction of `latch` that gives `value`.
fn made_in(func: &Function, latch: Block, value: Value) -> Option<Inst> {
    func.dfg.value_def(value).inst().filter(|&def| func.layout.inst_block(def) == Some(latch))
}

/// How often each value is used.
type Uses = SecondaryMap<Value, u32>;

/// Whether `inst` is a load that can be an operand.
fn may_fold(func: &Function, inst: Inst) -> bool {
    matches!(func.dfg.insts[inst], InstructionData::Load { opcode: Opcode::Load, .. })
        && func.dfg.value_type(func.dfg.first_result(inst)).bits() >= 32
}

/// Whether `value`, which is used more than once, is made of a load in `latch` that can be the operand of an instruction.
fn folds_a_load(func: &Function, (latch, uses): (Block, &impl Deref<Target = Uses>), value: Value) -> bool {
    /// Instructions that are looked at: an unrolled group has as many operations.
    const MAX_INSTS: usize = 64;
    let home = |value| made_in(func, latch, value);
    let (mut open, mut looked_at) = (Vec::new(), 0);
    open.extend(home(value).filter(|_| uses[value] > 1));
    while let Some(inst) = open.pop().filter(|_| looked_at < MAX_INSTS) {
        looked_at += 1;
        if !Effects::of(func, inst).is_pure() {
            continue;
        }
        for (place, &arg) in func.dfg.inst_args(inst).iter().enumerate() {
            let Some(def) = home(arg).filter(|_| uses[arg] == 1) else { continue };
            if may_fold(func, def) && takes_a_load(func, inst, place) {
                return true;
            }
            open.push(def);
        }
    }
    false
}

/// Whether the operand of `inst` at this place can be in memory, and the other one is in a register.
fn takes_a_load(func: &Function, inst: Inst, place: usize) -> bool {
    use Opcode::{Band, Bor, Bxor, Fadd, Fdiv, Fmul, Fsub, Iadd, Imul, Isub};
    let args = func.dfg.inst_args(inst);
    if args.len() == 2 && constant_of(func, args[1 - place]).is_some() {
        return false;
    }
    match func.dfg.insts[inst].opcode() {
        Iadd | Imul | Band | Bor | Bxor | Fadd | Fmul => true,
        Isub | Fsub | Fdiv => place == 1,
        _ => false,
    }
}

refusals! {
    /// Why a latch stays in one piece.
    enum Decline {
        /// (P2) No value is used twice and made of a load.
        NothingFolds => "nothing-folds", "no value that the latch passes on twice is computed from a load that could be an operand";
    }
    shared { Withheld }
}
