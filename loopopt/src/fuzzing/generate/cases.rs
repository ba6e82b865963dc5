//! Calls of a program: arguments and memory images.

use super::choices::Choices;
use super::effects::main_name;
use super::features::Feature;
use super::interface::Interface;
use super::memory::IMAGE;
use crate::oracle::{Arg, Call, Case};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::immediates::{Ieee32, Ieee64};
use cranelift_codegen::ir::{Type, types};

/// A few calls of the program's first function.
pub(super) fn draw(random: &mut Choices<'_, '_>, interface: &Interface) -> Vec<Case> {
    (0..2 + random.below(3)).map(|_| case(random, interface)).collect()
}

fn case(random: &mut Choices<'_, '_>, interface: &Interface) -> Case {
    let has_memory = interface.features.has(Feature::Memory);
    let mut args = Vec::new();
    for (index, param) in interface.functions[0].params.iter().enumerate() {
        args.push(match index {
            0 if has_memory => Arg::Memory(0),
            _ => Arg::Value(value(random, param.value_type)),
        });
    }
    let memory = if has_memory { image(random) } else { Vec::new() };
    Case { call: Call { function: main_name(), args }, memory }
}

fn value(random: &mut Choices<'_, '_>, ty: Type) -> DataValue {
    if ty.is_vector() {
        let (low, high) = (random.integer(64) as u64, random.word());
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        return DataValue::V128(bytes);
    }
    match ty {
        types::F32 => DataValue::F32(Ieee32::with_float(random.pick(&[0.0, 1.0, -2.5, 1e20, f32::NAN]))),
        types::F64 => DataValue::F64(Ieee64::with_float(random.pick(&[0.0, 1.0, -2.5, 1e200, f64::NAN]))),
        _ => DataValue::from_integer(random.integer(ty.bits()), ty).expect("integer types up to i128 are known"),
    }
}

/// Zeros, or small numbers, or anything.
fn image(random: &mut Choices<'_, '_>) -> Vec<u8> {
    let mask = random.pick(&[0, 0xff, 3, 0xff]);
    let mut state = random.word() | 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 56) as u8 & mask
    };
    (0..IMAGE).map(|_| next()).collect()
}
