//! In which iteration a checked program traps: inputs that its checks depend on.
//!
//! An array with `k` elements makes a walk over it trap when it reaches the element `k`. So the small call of a checked
//! program is made again with smaller lengths, or with other limits, to see that a trap comes when it should.

use std::ops::Range;

use crate::{Arg, Input, Value, memory};

/// An input that checks depend on.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Where it is.
    pub place: Place,
    /// The small call traps with each of these.
    pub traps: Range<i64>,
    /// It returns with this one, and with what its input has.
    pub passes: i64,
}

/// A place in an input.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// The argument of this index, an integer.
    Arg(usize),
    /// A field of 64 bits, at an offset from the pointer that is the argument of this index.
    Field(usize, usize),
}

impl Limit {
    /// A length that is too short below `needed`.
    pub(crate) const fn len(place: Place, needed: i64) -> Self {
        Self { place, traps: 0..needed, passes: needed }
    }

    /// Any number.
    pub(crate) const fn number(place: Place, traps: Range<i64>, passes: i64) -> Self {
        Self { place, traps, passes }
    }

    /// The input with another value in the place.
    pub fn set(&self, mut input: Input, value: i64) -> Input {
        match self.place {
            Place::Arg(index) => match &mut input.args[index] {
                Arg::Value(Value::I64(old)) => *old = value,
                Arg::Value(Value::I32(old)) => *old = value as i32,
                other => panic!("argument {index} is {other:?}, which is no integer"),
            },
            Place::Field(index, offset) => {
                let at = input.at(index) + offset;
                memory::write(&mut input.memory, at, &[value]);
            }
        }
        input
    }
}
