//! Operations of which only the low bits are asked for.
//!
//! ```text
//! block1(v4: i8):                  block1(v4: i8):
//!     v5 = uextend.i32 v4
//!     v6 = uload8.i32 v1               v6 = uload8.i32 v1
//!                                      v9 = ireduce.i8 v6
//!     v7 = iadd v5, v6      ──►        v8 = iadd v4, v9
//!     v8 = ireduce.i8 v7
//!     istore8 v7, v2                   store v8, v2
//! ```
//!
//! The low bits of a sum, a difference, a product, and of what is done to each bit by itself, follow from the low bits of the operands. A cell of 8 bits
//! that is counted in 32 is extended before the operation and truncated after it, in each iteration: the one costs nothing, but the
//! other is part of what the next iteration depends on.
//!
//! # References
//!
//! LLVM `InstCombiner::EvaluateInDifferentType`.

use crate::analysis::cfg::edges::count_uses;
use crate::analysis::inst::number::{constant_of, mask};
use crate::analysis::memory::alias::memory_type;
use crate::edit::at;
use crate::edit::inst::extending_load::extended_by;
use crate::edit::materialize::dce::remove_unused;
use crate::ir::all_insts;
use cranelift_codegen::FxHashMap;
use cranelift_codegen::entity::SecondaryMap;
use cranelift_codegen::ir::{Function, Inst, InstBuilder, InstructionData, Opcode, Type, Value};

/// Operations inside operations that are computed in fewer bits. 4: a sum of a few summands.
const MAX_DEPTH: usize = 4;

/// Computes in fewer bits what `reductions`, truncating instructions, are made of, where nothing asks for the other bits and something is extended for
/// that. Linear in the size of the function.
pub(crate) fn narrow(func: &mut Function, reductions: &[Inst]) {
    if reductions.is_empty() {
        return;
    }
    let narrowing = Narrowing { uses: count_uses(func), stores: narrow_stores(func, reductions) };
    let mut unused = Vec::new();
    for &reduction in reductions {
        unused.extend(narrowing.narrow(func, reduction));
    }
    remove_unused(func, unused);
}

/// What is known of the uses of values.
struct Narrowing {
    uses: SecondaryMap<Value, u32>,
    /// Stores of what is truncated, or of a part of it.
    stores: FxHashMap<Value, Vec<Inst>>,
}

impl Narrowing {
    /// Gives the wide value, if nothing uses it any more.
    fn narrow(&self, func: &mut Function, reduction: Inst) -> Option<Value> {
        let wide = func.dfg.inst_args(reduction)[0];
        let ty = func.dfg.value_type(func.dfg.first_result(reduction));
        let stores = self.stores.get(&wide).cloned().unwrap_or_default();
        let is_low = |store: &Inst| memory_type(func, *store).is_some_and(|stored| stored.bits() <= ty.bits());
        let asks_for_less = stores.iter().all(is_low) && self.uses[wide] as usize == stores.len() + 1;
        let (opcode, args) = operation(func, wide, ty).filter(|_| asks_for_less)?;
        if !args.iter().any(|&arg| self.is_extended(func, arg, ty, MAX_DEPTH)) {
            return None;
        }
        let place = func.dfg.value_def(wide).unwrap_inst();
        let args = args.map(|arg| self.narrowed(func, (arg, place), ty, MAX_DEPTH));
        // Stores after the operation, but before the reduction, need it.
        func.layout.remove_inst(reduction);
        func.layout.insert_inst(reduction, place);
        func.replace(reduction).Binary(opcode, ty, args[0], args[1]);
        let value = func.dfg.first_result(reduction);
        for store in stores {
            store_low(func, store, value);
        }
        Some(wide)
    }

    /// Whether `value` is made of something of type `ty` that was extended.
    fn is_extended(&self, func: &Function, value: Value, ty: Type, depth: usize) -> bool {
        if extended_from(func, value, ty).is_some() {
            return true;
        }
        let inside = operation(func, value, ty).filter(|_| depth > 0 && self.uses[value] == 1);
        inside.is_some_and(|(_, args)| args.iter().any(|&arg| self.is_extended(func, arg, ty, depth - 1)))
    }

    /// The low bits of `value`, computed before `place`.
    fn narrowed(&self, func: &mut Function, (value, place): (Value, Inst), ty: Type, depth: usize) -> Value {
        if let Some(number) = constant_of(func, value) {
            return at(func, place).ins().iconst(ty, (number & mask(ty.bits())).cast_signed());
        }
        if let Some(narrow) = extended_from(func, value, ty) {
            return narrow;
        }
        match operation(func, value, ty).filter(|_| depth > 0 && self.uses[value] == 1) {
            Some((opcode, args)) => {
                let args = args.map(|arg| self.narrowed(func, (arg, place), ty, depth - 1));
                let (inst, _) = at(func, place).ins().Binary(opcode, ty, args[0], args[1]);
                func.dfg.first_result(inst)
            }
            None => at(func, place).ins().ireduce(ty, value),
        }
    }
}

/// What `value` is, extended, if that is of type `ty`.
fn extended_from(func: &Function, value: Value, ty: Type) -> Option<Value> {
    let (narrow, _) = extended_by(func, func.dfg.value_def(value).inst()?)?;
    (func.dfg.value_type(narrow) == ty).then_some(narrow)
}

/// The operation that gives `value`, if low bits of operands give low bits of it and the machine has it for `ty`.
fn operation(func: &Function, value: Value, ty: Type) -> Option<(Opcode, [Value; 2])> {
    use Opcode::{Band, Bor, Bxor, Iadd, Imul, Isub};
    let InstructionData::Binary { opcode, args } = func.dfg.insts[func.dfg.value_def(value).inst()?] else {
        return None;
    };
    let has_it = match opcode {
        Iadd | Isub | Band | Bor | Bxor => true,
        // x86-64 has a product of 8 bits in one register only.
        Imul => ty.bits() > 8,
        _ => false,
    };
    (has_it && func.dfg.value_type(value).is_int()).then_some((opcode, args))
}

/// The stores of what `reductions` truncate, or of a part of it.
fn narrow_stores(func: &Function, reductions: &[Inst]) -> FxHashMap<Value, Vec<Inst>> {
    let cut = reductions.iter().map(|&reduction| (func.dfg.inst_args(reduction)[0], Vec::new()));
    let mut stores: FxHashMap<Value, Vec<Inst>> = cut.collect();
    for inst in all_insts(func) {
        if let InstructionData::Store { args: [stored, address], .. } = func.dfg.insts[inst]
            && stored != address
            && let Some(all) = stores.get_mut(&stored)
        {
            all.push(inst);
        }
    }
    stores
}

/// Lets `store` store the low bits of `value`, or all of it.
fn store_low(func: &mut Function, store: Inst, value: Value) {
    let is_all = memory_type(func, store) == Some(func.dfg.value_type(value));
    if let InstructionData::Store { opcode, args, .. } = &mut func.dfg.insts[store] {
        args[0] = value;
        if is_all {
            *opcode = Opcode::Store;
        }
    }
}
