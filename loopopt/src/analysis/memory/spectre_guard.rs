//! Spectre guards: what is placed between a check and an access, so that the processor cannot run ahead of the check.
//!
//! A guard is worth what its condition is computed from, as long as what it gives is computed from the same. What a branch has proved of a part of the
//! one or the other does not hold where the processor has mispredicted the branch: a constant in the place of what is asked takes the guard away as much as
//! if it were removed, and one in the place of what it gives lets it ask of one address and give another ([`asked_by_guards`]).

use crate::analysis::cfg::edges::edges_into;
use crate::analysis::inst::number::constant_of;
use crate::embedder::SpectreGuards;
use crate::fault::fault;
use crate::ir::all_insts;
use crate::options::Options;
use cranelift_codegen::Context;
use cranelift_codegen::entity::EntitySet;
use cranelift_codegen::ir::{Function, Inst, InstructionData, Opcode, Value, ValueDef};

/// A `select_spectre_guard` that gives an address, or 0, at which an access traps.
#[derive(Clone, Copy, Debug)]
pub struct Guard {
    /// What it asks.
    pub condition: Value,
    /// Whether the condition has to be true for it to give the address.
    pub holds: bool,
    /// The address.
    pub gives: Value,
}

/// Whether `func` has any. Linear in its size.
pub fn has_guards(func: &Function) -> bool {
    let mut insts = all_insts(func);
    insts.any(|inst| func.dfg.insts[inst].opcode() == Opcode::SelectSpectreGuard)
}

/// The values that guards are computed from in registers, what they ask and what they give: of these, what branches prove stays as it is. None if guards
/// may be removed for good. Linear in the size of the function.
pub fn asked_by_guards(ctx: &Context, options: &Options) -> EntitySet<Value> {
    match options.embedder.spectre_guards() {
        SpectreGuards::Drop => EntitySet::new(),
        SpectreGuards::Keep | SpectreGuards::Consolidate if fault!(OnlyConditionsAsked) => {
            computed_from(ctx, |guard| &ctx.func.dfg.inst_args(guard)[..1])
        }
        SpectreGuards::Keep | SpectreGuards::Consolidate => made_into_guards(ctx, |_| true),
    }
}

/// The values that these guards are computed from in registers, what they give included: where the processor runs ahead of a proof, a number that
/// is not what the condition of a guard asks of must not take the place of one that it gives. Linear in the size of the function.
pub fn made_into_guards(ctx: &Context, is_one: impl Fn(Inst) -> bool) -> EntitySet<Value> {
    computed_from(ctx, |guard| if is_one(guard) { ctx.func.dfg.inst_args(guard) } else { &[] })
}

/// What these operands of guards are computed from, with themselves.
fn computed_from<'f>(ctx: &'f Context, operands: impl Fn(Inst) -> &'f [Value]) -> EntitySet<Value> {
    let func = &ctx.func;
    let insts = all_insts(func);
    let guards = insts.filter(|&inst| func.dfg.insts[inst].opcode() == Opcode::SelectSpectreGuard);
    let operands = guards.flat_map(|guard| operands(guard).iter().copied()).collect();
    made_of(ctx, operands, usize::MAX).unwrap_or_default()
}

/// What these values are computed from in registers, with themselves. Nothing if these are more than `max`.
pub fn made_of(ctx: &Context, mut open: Vec<Value>, max: usize) -> Option<EntitySet<Value>> {
    let func = &ctx.func;
    let (mut found, mut count) = (EntitySet::new(), 0);
    while let Some(value) = open.pop() {
        if !found.insert(value) {
            continue;
        }
        count += 1;
        if count > max {
            return None;
        }
        match func.dfg.value_def(value) {
            ValueDef::Param(block, _) if func.layout.entry_block() != Some(block) => {
                open.extend(edges_into(func, &ctx.cfg, block).filter_map(|edge| edge.passed_for(func, value)));
            }
            ValueDef::Result(inst, _) => {
                let opcode = func.dfg.insts[inst].opcode();
                if !opcode.can_load() && !opcode.is_call() {
                    open.extend_from_slice(func.dfg.inst_args(inst));
                }
            }
            ValueDef::Param(..) | ValueDef::Union(..) => {}
        }
    }
    Some(found)
}

impl Guard {
    /// The guard that `inst` is, if it is one.
    pub fn of(func: &Function, inst: Inst) -> Option<Self> {
        let InstructionData::Ternary { opcode: Opcode::SelectSpectreGuard, args: [condition, yes, no] } =
            func.dfg.insts[inst]
        else {
            return None;
        };
        let is_zero = |value| constant_of(func, value) == Some(0);
        match (is_zero(yes), is_zero(no)) {
            (true, _) => Some(Self { condition, holds: false, gives: no }),
            (_, true) => Some(Self { condition, holds: true, gives: yes }),
            _ => None,
        }
    }

    /// The guard that gives `value`, if one does.
    pub fn that_gives(func: &Function, value: Value) -> Option<Self> {
        Self::of(func, func.dfg.value_def(value).inst()?)
    }

    /// Whether it may give 0.
    pub fn asks(self, func: &Function) -> bool {
        constant_of(func, self.condition).is_none_or(|constant| (constant != 0) != self.holds)
    }
}
