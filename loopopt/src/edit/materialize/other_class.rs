//! Values that are saved in the other class of registers.
//!
//! Cranelift's allocator (regalloc2 0.15) gives one place to all values that are passed to each other, as far as it can. Two of different classes of registers
//! cannot have one. So a value that is cast, and cast back, has a place of its own.

use cranelift_codegen::cursor::{Cursor, FuncCursor};
use cranelift_codegen::ir::{Endianness, Function, Inst, InstBuilder, MemFlagsData, Opcode, Type, Value, types};
use smallvec::{SmallVec, smallvec};

/// A value in the other class of registers.
pub(crate) struct Saved {
    ty: Type,
    /// Floats for an integer, integers for what a float or a vector consists of.
    pub(crate) parts: SmallVec<[Value; 2]>,
}

/// Whether values of type `ty` can be saved. No integers of 128 bits: on s390x they are in registers for floats. No floats of 16 and of 128 bits: some targets
/// have no casts of them.
pub(crate) fn can_save(ty: Type) -> bool {
    ty.is_int() && ty.bits() <= 64 || is_float_class(ty)
}

/// Whether values of type `ty` can be saved and are in a register for floats.
pub(crate) fn is_float_class(ty: Type) -> bool {
    matches!(ty, types::F32 | types::F64) || ty.is_vector() && ty.bits() == 128
}

/// Whether `inst` may be the first or the last instruction of those that save a value or give it back: a cast, even of a vector of two integers.
pub(crate) fn is_cast(func: &Function, inst: Inst) -> bool {
    func.dfg.insts[inst].opcode() == Opcode::Bitcast
}

impl Saved {
    /// Saves `value`, which [can be](can_save).
    ///
    /// Lowering may take a load for an operand of what is made here, so that it traps there: that is labelled as the load is.
    pub(crate) fn new(cursor: &mut FuncCursor<'_>, value: Value) -> Self {
        let place = cursor.srcloc();
        if let Some(def) = cursor.func.dfg.value_def(value).inst() {
            cursor.set_srcloc(cursor.func.srcloc(def));
        }
        let saved = Self::with_labels(cursor, value);
        cursor.set_srcloc(place);
        saved
    }

    /// Saves `value`, by instructions with the labels that the cursor has.
    fn with_labels(cursor: &mut FuncCursor<'_>, value: Value) -> Self {
        let ty = cursor.func.dfg.value_type(value);
        let parts = if ty.is_vector() {
            let lanes = cast(cursor, types::I64X2, value);
            [0, 1].into_iter().map(|lane| cursor.ins().extractlane(lanes, lane)).collect()
        } else {
            let is_narrow = ty.bits() < 32;
            let wide = if is_narrow { cursor.ins().uextend(types::I32, value) } else { value };
            let other = match ty {
                types::F32 | types::F64 => ty.as_int(),
                types::I64 => types::F64,
                _ => types::F32,
            };
            smallvec![cast(cursor, other, wide)]
        };
        Self { ty, parts }
    }

    /// The value again.
    pub(crate) fn back(&self, cursor: &mut FuncCursor<'_>) -> Value {
        match self.parts[..] {
            [low, high] => {
                let lanes = cursor.ins().scalar_to_vector(types::I64X2, low);
                let lanes = cursor.ins().insertlane(lanes, high, 1);
                cast(cursor, self.ty, lanes)
            }
            _ if self.ty.bits() < 32 => {
                let wide = cast(cursor, types::I32, self.parts[0]);
                cursor.ins().ireduce(self.ty, wide)
            }
            _ => cast(cursor, self.ty, self.parts[0]),
        }
    }
}

/// `value` as one of type `ty`.
fn cast(cursor: &mut FuncCursor<'_>, ty: Type, value: Value) -> Value {
    let lanes = cursor.func.dfg.value_type(value).lane_count();
    // Casts of lanes ask in which order they are. There and back, any one does.
    let flags = match lanes == ty.lane_count() {
        true => MemFlagsData::new(),
        false => MemFlagsData::new().with_endianness(Endianness::Little),
    };
    cursor.ins().bitcast(ty, flags, value)
}
