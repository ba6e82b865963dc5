//! A load at an address that is selected from two becomes a select of two values, if both addresses have just been loaded from.
//!
//! ```text
//!     v3 = load.i32 v1                       v3 = load.i32 v1
//!     v4 = load.i32 v2                       v4 = load.i32 v2
//!     v5 = icmp ugt v3, v4                   v5 = icmp ugt v3, v4
//!     v6 = select v5, v1, v2         ──►
//!     v7 = load.i32 v6                       v7 = select v5, v3, v4
//! ```
//!
//! That is what `std::max` of two elements is, which gives a reference, or a `?:` that a front end makes of addresses.
//!
//! # Needs
//!
//! Nothing.
//!
//! # Legal when
//!
//! (L1) The three loads are the same but for the address, and are in one block. (L2) Nothing between them writes: then memory has not
//! changed, and the load cannot trap as none of the two did. (L3) The embedder does not say that others write there.
//!
//! # Pays when
//!
//! Always, in a loop: a load that waits for a select is removed, and with it an address of which nothing is known. Such an access may overlap
//! all others.
//!
//! # Changes
//!
//! Loads become selects. No block and no edge.

use crate::analysis::cfg::loops::Loop;
use crate::analysis::inst::effects::Effects;
use crate::analysis::memory::alias::{Access, address_operand};
use crate::analysis::scev::linear_expr::Sum;
use crate::change::Change;
use crate::claim::{Claim, is_marked};
use crate::edit::materialize::assertion::assert_loads;
use crate::fault::fault;
use crate::options::Options;
use crate::pass::{Pass, PassCx};
use crate::refusal::refusals;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value};
use cranelift_codegen::{CodegenResult, Context, FxHashMap};

/// Instructions that an address is looked through to find a choice: an extension, a base, an offset.
const MAX_DEPTH: usize = 4;

/// Loads that are remembered: the two are close by.
const MAX_LOADS: usize = 8;

/// The name of this pass.
pub(crate) const NAME: &str = "forward_select_load";

/// The pass.
pub(crate) const PASS: Pass =
    Pass { name: NAME, run, reasons: &[Decline::REASONS], claims: &[Claim::CellHolds], ..Pass::OPTIONAL };

/// Does it for all loads in loops. Linear in the size of the function.
pub(crate) fn run(ctx: &mut Context, cx: &mut PassCx<'_>) -> CodegenResult<Change> {
    let forest = cx.forest(ctx);
    let mut found = FxHashMap::<Loop, Vec<Forwarded>>::default();
    for block in ctx.func.layout.blocks() {
        let Some(lp) = forest.innermost(block) else { continue };
        for forwarded in forwarded_in(&ctx.func, block, cx.options) {
            found.entry(lp).or_default().push(forwarded);
        }
    }
    let mut change = Change::Nothing;
    for lp in forest.loops() {
        let header = forest.data(lp).header;
        let Some(found) = found.get(&lp) else {
            cx.declined(&ctx.func, NAME, header, &Decline::NothingSelected);
            continue;
        };
        if !cx.fuel.take() {
            cx.declined(&ctx.func, NAME, header, &Decline::Withheld);
        } else {
            cx.fired(&ctx.func, &PASS, header, format!("loads that select what two loads gave: {}", found.len()));
            found.iter().for_each(|found| found.apply(&mut ctx.func));
            change = Change::Insts;
        }
    }
    Ok(change)
}

/// A load, and what it can be selected from.
struct Forwarded {
    load: Inst,
    condition: Value,
    values: [Value; 2],
}

impl Forwarded {
    fn apply(&self, func: &mut Function) {
        let Self { load, condition, values: [yes, no] } = *self;
        if is_marked(func) {
            let selected = FuncCursor::new(func).at_inst(load).ins().select(condition, yes, no);
            assert_loads(func, load, load, selected);
        }
        func.replace(load).select(condition, yes, no);
    }
}

/// Whether an integer is selected in `block`.
fn has_select(func: &Function, block: Block) -> bool {
    func.layout.block_insts(block).any(|inst| {
        func.dfg.insts[inst].opcode() == Opcode::Select && func.dfg.value_type(func.dfg.first_result(inst)).is_int()
    })
}

fn forwarded_in(func: &Function, block: Block, options: &Options) -> Vec<Forwarded> {
    let mut found = Vec::new();
    if !has_select(func, block) {
        return found;
    }
    let mut loads: Vec<Inst> = Vec::new();
    for inst in func.layout.block_insts(block) {
        let effects = Effects::of(func, inst);
        if effects.writes || effects.fences {
            if !fault!(SelectedAcrossStore) {
                loads.clear();
            }
            continue;
        }
        let InstructionData::Load { arg, flags, .. } = func.dfg.insts[inst] else { continue };
        if options.is_asynchronous(func, func.dfg.mem_flags[flags]) {
            continue;
        }
        if let Some((condition, values)) = choice(func, arg).and_then(|choice| loaded(func, inst, choice, &loads)) {
            found.push(Forwarded { load: inst, condition, values });
            continue;
        }
        if loads.len() == MAX_LOADS {
            loads.remove(0);
        }
        loads.push(inst);
    }
    found
}

/// The choice that `address` is made of.
fn choice(func: &Function, address: Value) -> Option<Inst> {
    let mut values = vec![address];
    for _ in 0..MAX_DEPTH {
        let defs: Vec<Inst> = values.drain(..).filter_map(|value| func.dfg.value_def(value).inst()).collect();
        for def in defs {
            match func.dfg.insts[def].opcode() {
                Opcode::Select => return Some(def),
                Opcode::Iadd | Opcode::Uextend | Opcode::Sextend => values.extend_from_slice(func.dfg.inst_args(def)),
                _ => {}
            }
        }
    }
    None
}

/// The condition of the choice, and what was loaded at the two addresses that it leads `inst` to.
fn loaded(func: &Function, inst: Inst, choice: Inst, loads: &[Inst]) -> Option<(Value, [Value; 2])> {
    let &[condition, yes, no] = func.dfg.inst_args(choice) else { return None };
    let chosen = func.dfg.first_result(choice);
    let access = Access::of(func, inst)?;
    let value_at = |arm: Value| {
        let leaf = &mut |leaf| Some(if leaf == chosen { Sum::of(func, arm) } else { Sum::of_leaf(func, leaf) });
        let offset = func.dfg.insts[inst].load_store_offset()?;
        let address = Sum::with_leaves(func, address_operand(func, inst)?, leaf)?.offset(offset.into());
        let is_same = |load: &&Inst| {
            let other = Access::of(func, **load);
            let kind = |inst: Inst| (func.dfg.insts[inst].opcode(), func.dfg.value_type(func.dfg.first_result(inst)));
            kind(**load) == kind(inst)
                && other.is_some_and(|other| other.address == address && other.flags == access.flags)
        };
        loads.iter().find(is_same).map(|&load| func.dfg.first_result(load))
    };
    Some((condition, [value_at(yes)?, value_at(no)?]))
}

refusals! {
    /// Why the loads of a loop stay.
    enum Decline {
        /// No load is at an address that is selected from two that were loaded.
        NothingSelected => "nothing-selected", "no load is at one of two addresses that were just loaded";
    }
    shared { Withheld }
}
