//! Arguments from text, and results as text that differs if they do in any bit.

use anyhow::{Context as _, Result, bail};
use wasmtime::{AsContext, FuncType, Val, ValType};

/// The arguments of a call of a function of this type.
pub fn parse(ty: &FuncType, texts: &[String]) -> Result<Vec<Val>> {
    if ty.params().len() != texts.len() {
        bail!("the function takes {} arguments, {} are given", ty.params().len(), texts.len());
    }
    ty.params().zip(texts).map(|(ty, text)| value(&ty, text).with_context(|| format!("argument `{text}`"))).collect()
}

fn value(ty: &ValType, text: &str) -> Result<Val> {
    Ok(match ty {
        ValType::I32 => Val::I32(integer(text, 32)? as i32),
        ValType::I64 => Val::I64(integer(text, 64)? as i64),
        ValType::F32 => Val::F32(text.parse::<f32>()?.to_bits()),
        ValType::F64 => Val::F64(text.parse::<f64>()?.to_bits()),
        ValType::V128 => Val::V128(integer(text, 128)?.into()),
        ValType::Ref(ty) if ty.is_nullable() && text == "null" => Val::null_ref(ty.heap_type()),
        ValType::Ref(ty) => bail!("a value of type {ty} cannot be given"),
    })
}

/// A signed or unsigned integer of this many bits, decimal or hexadecimal.
fn integer(text: &str, bits: u32) -> Result<u128> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let magnitude = match digits.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16)?,
        None => digits.parse()?,
    };
    let limit = if negative { 1 << (bits - 1) } else { u128::MAX >> (128 - bits) };
    if magnitude > limit {
        bail!("it does not fit in {bits} bits");
    }
    Ok(if negative { magnitude.wrapping_neg() } else { magnitude })
}

/// A value as text. Of references it says only what does not depend on where things are.
pub fn show(store: impl AsContext, value: &Val) -> String {
    match value {
        Val::I32(value) => value.to_string(),
        Val::I64(value) => value.to_string(),
        Val::F32(bits) => float(f64::from(f32::from_bits(*bits)), u64::from(*bits), f32::from_bits(*bits).is_nan()),
        Val::F64(bits) => float(f64::from_bits(*bits), *bits, f64::from_bits(*bits).is_nan()),
        Val::V128(value) => format!("{:#034x}", value.as_u128()),
        Val::FuncRef(reference) => kind("func", reference.is_none()),
        Val::ExternRef(reference) => kind("extern", reference.is_none()),
        Val::ExnRef(reference) => kind("exn", reference.is_none()),
        Val::ContRef(_) => "cont".to_owned(),
        Val::AnyRef(None) => kind("any", true),
        Val::AnyRef(Some(reference)) => match reference.as_i31(store) {
            Ok(Some(value)) => format!("i31 {}", value.get_i32()),
            _ => kind("any", false),
        },
    }
}

fn kind(name: &str, is_null: bool) -> String {
    format!("{name} {}", if is_null { "null" } else { "reference" })
}

/// NaNs with their bits.
fn float(value: f64, bits: u64, is_nan: bool) -> String {
    if is_nan { format!("nan:{bits:#x}") } else { format!("{value:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_signed_or_unsigned() {
        assert_eq!(integer("-1", 32).expect("fits") as i32, -1);
        assert_eq!(integer("4294967295", 32).expect("fits") as i32, -1);
        assert_eq!(integer("0xff", 32).expect("fits"), 255);
        assert_eq!(integer("-0x8000000000000000", 64).expect("fits") as i64, i64::MIN);
        for wrong in ["4294967296", "-2147483649", "x", ""] {
            assert!(integer(wrong, 32).is_err(), "{wrong}");
        }
    }

    #[test]
    fn floats_differ_if_their_bits_do() {
        assert_ne!(float(0.0, 0, false), float(-0.0, 1 << 63, false));
        assert_ne!(float(f64::NAN, 1, true), float(f64::NAN, 2, true));
    }
}
