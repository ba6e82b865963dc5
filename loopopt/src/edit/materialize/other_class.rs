//! Values that are saved in the other class of registers.
//!
//! Cranelift's allocator (regalloc2 0.15) gives one place to all values that are passed on to each other, as far as it can. Two of different classes of registers
//! cannot have one. So a value that is cast, and cast back, has a place of its own.

use cranelift_codegen::cursor::FuncCursor;
use cranelift_codegen::ir::{Endianness, Function, Inst, InstBuilder, MemFlagsData, Opcode, Type, Value, types};
use smallvec::SmallVec;

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

/// Whether `inst` makes a part of what a value is saved as, or the value of such parts.
pub(crate) fn is_cast(func: &Function, inst: Inst) -> bool {
    func.dfg.insts[inst].opcode() == Opcode::Bitcast
}

impl Saved {
    /// Saves `value`, which [can be](can_save).
    pub(crate) fn new(cursor: &mut FuncCursor<'_>, value: Value) -> Self {
        let ty = cursor.func.dfg.value_type(value);
        let parts = match ty {
            _ if ty.is_vector() => {
                let lanes = cast(cursor, types::I64X2, value);
                [0, 1].into_iter().map(|lane| cursor.ins().extractlane(lanes, lane)).collect()
            }
            types::I8 | types::I16 => {
                let wide = cursor.ins().uextend(types::I32, value);
                SmallVec::from_slice(&[cast(cursor, types::F32, wide)])
            }
            types::I32 => SmallVec::from_slice(&[cast(cursor, types::F32, value)]),
            types::I64 => SmallVec::from_slice(&[cast(cursor, types::F64, value)]),
            _ => SmallVec::from_slice(&[cast(cursor, ty.as_int(), value)]),
        };
        Self { ty, parts }
    }

    /// The value again.
    pub(crate) fn back(&self, cursor: &mut FuncCursor<'_>) -> Value {
        let first = self.parts[0];
        match self.ty {
            _ if let Some(&second) = self.parts.get(1) => {
                let low = cursor.ins().scalar_to_vector(types::I64X2, first);
                let both = cursor.ins().insertlane(low, second, 1);
                cast(cursor, self.ty, both)
            }
            types::I8 | types::I16 => {
                let wide = cast(cursor, types::I32, first);
                cursor.ins().ireduce(self.ty, wide)
            }
            _ => cast(cursor, self.ty, first),
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
