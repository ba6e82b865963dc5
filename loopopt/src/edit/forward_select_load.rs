//! A load at an address that was chosen from two, both of which have been loaded just now, is a choice from what these loads gave.
//!
//! ```text
//!     v3 = load.i32 v1                       v3 = load.i32 v1
//!     v4 = load.i32 v2                       v4 = load.i32 v2
//!     v5 = icmp ugt v3, v4                   v5 = icmp ugt v3, v4
//!     v6 = select v5, v1, v2         ──►
//!     v7 = load.i32 v6                       v7 = select v5, v3, v4
//! ```
//!
//! That is what `std::max` of two elements is, which gives a reference, or a `?:` that a front end makes of addresses. It is legal if the
//! three loads are the same but for the address, stand in one block, and nothing between them writes: then memory has not changed,
//! and the load cannot trap as none of the two did. Besides the load, which waits for the choice, an address that nothing knows
//! is gone: such an access may overlap all others.

use crate::analysis::memory::alias::{Access, address_operand};
use crate::analysis::memory::effects::Effects;
use crate::analysis::scev::linear_expr::Sum;
use crate::claim::is_marked;
use crate::edit::materialize::assertion::assert_loads;
use crate::options::Options;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Block, Function, Inst, InstBuilder, InstructionData, Opcode, Value};

/// Instructions that an address is looked through to find a choice: an extension, a base, an offset.
const MAX_DEPTH: usize = 4;

/// Loads that are remembered: the two are close by.
const MAX_LOADS: usize = 8;

/// Does it for the loads of all blocks. Linear in the size of the function.
pub(crate) fn choose_loaded(func: &mut Function, options: &Options) {
    let mut blocks = func.layout.entry_block();
    while let Some(block) = blocks {
        if has_choice(func, block) {
            choose_in(func, block, options);
        }
        blocks = func.layout.next_block(block);
    }
}

/// Whether an integer is chosen in `block`.
fn has_choice(func: &Function, block: Block) -> bool {
    func.layout.block_insts(block).any(|inst| {
        func.dfg.insts[inst].opcode() == Opcode::Select && func.dfg.value_type(func.dfg.first_result(inst)).is_int()
    })
}

fn choose_in(func: &mut Function, block: Block, options: &Options) {
    let mut loads: Vec<Inst> = Vec::new();
    let mut next = func.layout.first_inst(block);
    while let Some(inst) = next {
        next = func.layout.next_inst(inst);
        let effects = Effects::of(func, inst);
        if effects.writes || effects.fences {
            loads.clear();
            continue;
        }
        let InstructionData::Load { arg, flags, .. } = func.dfg.insts[inst] else { continue };
        if options.is_asynchronous(func, func.dfg.mem_flags[flags]) {
            continue;
        }
        if let Some((condition, values)) = choice(func, arg).and_then(|choice| loaded(func, inst, choice, &loads)) {
            if is_marked(func) {
                let chosen = FuncCursor::new(func).at_inst(inst).ins().select(condition, values[0], values[1]);
                assert_loads(func, inst, inst, chosen);
            }
            func.replace(inst).select(condition, values[0], values[1]);
            continue;
        }
        if loads.len() == MAX_LOADS {
            loads.remove(0);
        }
        loads.push(inst);
    }
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
    let value_at = |way: Value| {
        let leaf = &mut |leaf| Some(if leaf == chosen { Sum::of(func, way) } else { Sum::of_leaf(func, leaf) });
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context, verify};

    /// How many loads remain of the block.
    fn remaining(body: &str) -> usize {
        let mut ctx = context(&format!(
            "function %f(i64, i32, i32) -> i32 {{
            block0(v0: i64, v1: i32, v2: i32):
                {body}
                return v15
            }}"
        ));
        choose_loaded(&mut ctx.func, &Options::default());
        verify(&ctx);
        let insts = ctx.func.layout.block_insts(block(0));
        insts.filter(|&inst| ctx.func.dfg.insts[inst].opcode().can_load()).count()
    }

    const TWO: &str = "v3 = uextend.i64 v1
        v4 = iadd v0, v3
        v5 = load.i32 v4+8
        v6 = uextend.i64 v2
        v7 = iadd v0, v6
        v8 = load.i32 v7+8
        v9 = icmp ugt v5, v8
        v10 = select v9, v1, v2
        v11 = uextend.i64 v10
        v12 = iadd v0, v11";

    #[test]
    fn what_is_loaded_is_chosen() {
        assert_eq!(remaining(&format!("{TWO}\nv15 = load.i32 v12+8")), 2);
    }

    #[test]
    fn another_place_or_type_is_loaded() {
        assert_eq!(remaining(&format!("{TWO}\nv15 = load.i32 v12+12")), 3);
        assert_eq!(remaining(&format!("{TWO}\nv15 = uload16.i32 v12+8")), 3);
        assert_eq!(remaining(&format!("{TWO}\nv15 = load.i32 little v12+8")), 3);
    }

    #[test]
    fn a_store_may_change_it() {
        assert_eq!(remaining(&format!("{TWO}\nstore v1, v12+8\nv15 = load.i32 v12+8")), 3);
    }
}
