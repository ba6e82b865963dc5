//! Apply: the loads and stores of one variable become values.
//!
//! What is in memory has the type of the access, the variable has a type of its own. Between them `bitcast` changes the type
//! and keeps all bits; where it also changes the number of lanes, it says what a store and a load of this machine do. An
//! extending load extends, a truncating store reduces.

use super::{Variable, is_load};
use crate::analysis::memory::slots::Access;
use crate::edit::inst::labels::leave_labels;
use crate::edit::ssa::construct::{Construction, EndValues};
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Endianness, Function, InstBuilder, InstructionData, MemFlagsData, Opcode, Type, Value};

/// Rewrites all accesses. Leaves aliases.
pub(super) fn rewrite(ctx: &mut Context, ends: &mut EndValues, variable: &Variable, native: Endianness) {
    let func = &mut ctx.func;
    if !variable.accesses.iter().any(|access| is_load(func, access.inst)) {
        for access in &variable.accesses {
            func.layout.remove_inst(access.inst);
        }
        return;
    }
    let mut values = Construction::new(ctx, ends, variable.ty, &variable.meets.blocks);
    let mut known = None;
    for &access in &variable.accesses {
        let block = values.func.layout.inst_block(access.inst).expect("an access is in the layout");
        let value = if is_load(values.func, access.inst) {
            let here = known.filter(|&(home, _)| home == block);
            let value = here.map_or_else(|| values.read(block), |(_, value)| value);
            replace_load(values.func, access, value, native);
            value
        } else {
            let value = stored(values.func, access, variable.ty, native);
            values.write(block, value);
            value
        };
        values.func.layout.remove_inst(access.inst);
        known = Some((block, value));
    }
    values.finish();
}

/// Lets `value`, which the variable is, stand for what `load` loads.
fn replace_load(func: &mut Function, load: Access, value: Value, native: Endianness) {
    let result = func.dfg.first_result(load.inst);
    let ty = func.dfg.value_type(result);
    let opcode = func.dfg.insts[load.inst].opcode();
    let bits = cast(func, load, value, load.ty, native);
    let mut pos = at(func, load);
    let loaded = match opcode {
        Opcode::Load => bits,
        Opcode::Sload8 | Opcode::Sload16 | Opcode::Sload32 => pos.ins().sextend(ty, bits),
        _ => pos.ins().uextend(ty, bits),
    };
    leave_labels(func, result, loaded);
    func.dfg.detach_inst_results(load.inst);
    func.dfg.change_to_alias(result, loaded);
}

/// What the variable of type `ty` is after `store`.
fn stored(func: &mut Function, store: Access, ty: Type, native: Endianness) -> Value {
    let value = func.dfg.resolve_aliases(func.dfg.inst_args(store.inst)[0]);
    let bits = match func.dfg.insts[store.inst].opcode() {
        Opcode::Store => value,
        _ => at(func, store).ins().ireduce(store.ty, value),
    };
    cast(func, store, bits, ty, native)
}

/// The bits of `value` as a value of type `ty`, made right before `access`. Casts there and back are left out, which the
/// egraph pass would keep.
fn cast(func: &mut Function, access: Access, value: Value, ty: Type, native: Endianness) -> Value {
    let value = func.dfg.resolve_aliases(value);
    let from = func.dfg.value_type(value);
    if from == ty {
        return value;
    }
    if let Some(original) = cast_from(func, value, native).filter(|&original| func.dfg.value_type(original) == ty) {
        return original;
    }
    let mut flags = MemFlagsData::new();
    if from.lane_count() != ty.lane_count() {
        flags = flags.with_endianness(native);
    }
    at(func, access).ins().bitcast(ty, flags, value)
}

/// What `value` was cast from in the byte order of memory. A cast that changes the number of lanes puts bytes elsewhere in the other
/// order.
fn cast_from(func: &Function, value: Value, native: Endianness) -> Option<Value> {
    let inst = func.dfg.value_def(value).inst()?;
    let InstructionData::LoadNoOffset { opcode: Opcode::Bitcast, flags, arg } = func.dfg.insts[inst] else {
        return None;
    };
    let original = func.dfg.resolve_aliases(arg);
    let keeps_lanes = func.dfg.value_type(original).lane_count() == func.dfg.value_type(value).lane_count();
    let order = func.dfg.mem_flags[flags].explicit_endianness();
    (keeps_lanes || order == Some(native)).then_some(original)
}

/// Right before `access`, with its source location.
fn at(func: &mut Function, access: Access) -> FuncCursor<'_> {
    let srcloc = func.srcloc(access.inst);
    FuncCursor::new(func).at_inst(access.inst).with_srcloc(srcloc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{block, context};
    use cranelift_codegen::ir::types;

    #[test]
    fn a_cast_in_the_other_byte_order_is_not_undone() {
        for (flag, order, other) in
            [("little", Endianness::Little, Endianness::Big), ("big", Endianness::Big, Endianness::Little)]
        {
            let mut ctx = context(&format!(
                "function %f(i64x2, i64) {{
                    ss0 = explicit_slot 16
                block0(v0: i64x2, v1: i64):
                    v2 = bitcast.i32x4 {flag} v0
                    v3 = bitcast.f64 v1
                    v4 = stack_addr.i64 ss0
                    store v2, v4
                    return
                }}"
            ));
            let insts: Vec<_> = ctx.func.layout.block_insts(block(0)).collect();
            let access = Access { inst: insts[3], ty: types::I32X4, start: 0 };
            let [v0, v1, v2, v3] = [0, 1, 2, 3].map(Value::from_u32);
            assert_eq!(cast(&mut ctx.func, access, v2, types::I64X2, order), v0);
            assert_ne!(cast(&mut ctx.func, access, v2, types::I64X2, other), v0);
            assert_eq!(cast(&mut ctx.func, access, v3, types::I64, other), v1, "one lane has one order");
        }
    }
}
