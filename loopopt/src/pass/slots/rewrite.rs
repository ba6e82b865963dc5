//! Apply: the loads and stores of one variable become values.
//!
//! What is in memory has the type of the access, the variable has a type of its own. Between them `bitcast` changes the type
//! and keeps all bits; where it also changes the number of lanes, it says what a store and a load of this machine do. An
//! extending load extends, a truncating store reduces.

use super::{Variable, is_load};
use crate::analysis::slots::Access;
use crate::edit::construct::{Construction, EndValues};
use crate::edit::labels::leave_labels;
use cranelift_codegen::Context;
use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Endianness, Function, InstBuilder, MemFlagsData, Opcode, Type, Value};

/// Rewrites all accesses. Leaves aliases behind.
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
    if let Some(inst) = func.dfg.value_def(value).inst()
        && func.dfg.insts[inst].opcode() == Opcode::Bitcast
        && func.dfg.value_type(func.dfg.inst_args(inst)[0]) == ty
    {
        return func.dfg.resolve_aliases(func.dfg.inst_args(inst)[0]);
    }
    let mut flags = MemFlagsData::new();
    if from.lane_count() != ty.lane_count() {
        flags = flags.with_endianness(native);
    }
    at(func, access).ins().bitcast(ty, flags, value)
}

/// Right before `access`, with its source location.
fn at(func: &mut Function, access: Access) -> FuncCursor<'_> {
    let srcloc = func.srcloc(access.inst);
    FuncCursor::new(func).at_inst(access.inst).with_srcloc(srcloc)
}
