//! Inputs and their memory: little-endian arrays and deterministic data.

use crate::{Arg, Input, Value};

/// A number as it lies in memory.
pub(crate) trait Element: Copy {
    /// Bytes per element.
    const SIZE: usize;
    /// The element in the first bytes.
    fn get(bytes: &[u8]) -> Self;
    /// Overwrites the first bytes.
    fn put(self, bytes: &mut [u8]);
}

macro_rules! elements {
    ($($ty:ty),*) => {$(
        impl Element for $ty {
            const SIZE: usize = size_of::<$ty>();
            fn get(bytes: &[u8]) -> Self {
                let (head, _) = bytes.split_first_chunk().expect("an access is inside the memory");
                Self::from_le_bytes(*head)
            }
            fn put(self, bytes: &mut [u8]) {
                bytes[..Self::SIZE].copy_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

elements!(u8, u16, u32, i32, i64, f64);

/// The element at byte `at`.
pub(crate) fn get<T: Element>(memory: &[u8], at: usize) -> T {
    T::get(&memory[at..])
}

/// The `count` elements from byte `at` on.
pub(crate) fn read<T: Element>(memory: &[u8], at: usize, count: usize) -> Vec<T> {
    memory[at..][..count * T::SIZE].chunks_exact(T::SIZE).map(T::get).collect()
}

/// Overwrites the elements from byte `at` on.
pub(crate) fn write<T: Element>(memory: &mut [u8], at: usize, values: &[T]) {
    let bytes = &mut memory[at..][..values.len() * T::SIZE];
    for (place, value) in bytes.chunks_exact_mut(T::SIZE).zip(values) {
        value.put(place);
    }
}

/// Arrays start at multiples of this, as does the memory itself.
const ALIGNMENT: usize = 64;

/// Inputs are put together argument by argument, and read again by the reference.
impl Input {
    /// No arguments and no memory yet.
    pub(crate) fn new() -> Self {
        Self { args: Vec::new(), memory: Vec::new() }
    }

    /// Places an array in the memory and passes a pointer to it.
    pub(crate) fn array<T: Element>(mut self, values: &[T]) -> Self {
        let at = self.memory.len().next_multiple_of(ALIGNMENT);
        self.memory.resize(at + values.len() * T::SIZE, 0);
        write(&mut self.memory, at, values);
        self.args.push(Arg::Pointer(at));
        self
    }

    /// Places `count` zeros in the memory and passes a pointer to them.
    pub(crate) fn zeros<T: Element + Default>(self, count: usize) -> Self {
        self.array(&vec![T::default(); count])
    }

    /// Passes an integer.
    pub(crate) fn int(mut self, value: impl TryInto<i64>) -> Self {
        let value = value.try_into().ok().expect("integer arguments fit into 64 bits");
        self.args.push(Arg::Value(Value::I64(value)));
        self
    }

    /// Passes a 32-bit integer.
    pub(crate) fn int32(mut self, value: i32) -> Self {
        self.args.push(Arg::Value(Value::I32(value)));
        self
    }

    /// Passes a float.
    pub(crate) fn float(mut self, value: f64) -> Self {
        self.args.push(Arg::Value(Value::F64(value)));
        self
    }

    /// Where the pointer argument `index` points to.
    pub(crate) fn at(&self, index: usize) -> usize {
        match self.args[index] {
            Arg::Pointer(at) => at,
            Arg::Value(_) => panic!("argument {index} is not a pointer"),
        }
    }

    /// The integer argument `index`.
    pub(crate) fn get_int(&self, index: usize) -> i64 {
        match self.args[index] {
            Arg::Value(Value::I64(value)) => value,
            Arg::Value(Value::I32(value)) => value.into(),
            _ => panic!("argument {index} is not an integer"),
        }
    }

    /// The integer argument `index`, which is a length.
    pub(crate) fn size(&self, index: usize) -> usize {
        self.get_int(index).try_into().expect("lengths are not negative")
    }

    /// The float argument `index`.
    pub(crate) fn get_float(&self, index: usize) -> f64 {
        match self.args[index] {
            Arg::Value(Value::F64(value)) => value,
            _ => panic!("argument {index} is not a float"),
        }
    }
}

/// Pseudo-random numbers (splitmix64), the same for the same seed.
pub(crate) fn random(seed: u64) -> impl Iterator<Item = u64> {
    (1..).map(move |step: u64| {
        let z = seed.wrapping_add(step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// Random integers of any type from 0 up to below `limit`.
pub(crate) fn numbers<T: TryFrom<u64>>(seed: u64, count: usize, limit: u64) -> Vec<T> {
    let narrow = |number| T::try_from(number % limit).ok().expect("the limit fits the type");
    random(seed).map(narrow).take(count).collect()
}

/// Random 64-bit integers from 0 up to below `limit`.
pub(crate) fn ints(seed: u64, count: usize, limit: u64) -> Vec<i64> {
    numbers(seed, count, limit)
}

/// Random bytes from 0 up to below `limit`.
pub(crate) fn bytes(seed: u64, count: usize, limit: u64) -> Vec<u8> {
    numbers(seed, count, limit)
}

/// Random floats from 0 up to below 1, multiples of 1/1024.
pub(crate) fn floats(seed: u64, count: usize) -> Vec<f64> {
    random(seed).map(|number| (number % 1024) as f64 / 1024.0).take(count).collect()
}
