//! The library functions that Cranelift calls where the processor has no instruction.
//!
//! Those on memory are in the C library, which every Rust program is linked with; those on floats need not be.

macro_rules! on_floats {
    ($($name:ident($($arg:ident),+: $ty:ty) = $body:expr;)+) => {
        $(extern "C" fn $name($($arg: $ty),+) -> $ty { $body })+

        /// Their names and addresses.
        pub(super) fn symbols() -> impl Iterator<Item = (&'static str, *const u8)> {
            [$((stringify!($name), $name as *const u8)),+].into_iter()
        }
    };
}

on_floats! {
    ceilf(x: f32) = x.ceil();
    ceil(x: f64) = x.ceil();
    floorf(x: f32) = x.floor();
    floor(x: f64) = x.floor();
    truncf(x: f32) = x.trunc();
    trunc(x: f64) = x.trunc();
    nearbyintf(x: f32) = x.round_ties_even();
    nearbyint(x: f64) = x.round_ties_even();
    fmaf(x, y, z: f32) = x.mul_add(y, z);
    fma(x, y, z: f64) = x.mul_add(y, z);
}
