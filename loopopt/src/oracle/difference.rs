//! What two arms do that is not the same.

use super::run::Fault;
use super::{Call, HostCall, Observation, Outcome};
use cranelift_codegen::data_value::DataValue;
use cranelift_codegen::ir::{Function, Type, types};
use std::fmt;

/// A way to run a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arm {
    /// Cranelift's interpreter.
    Interpreter,
    /// Machine code, with [`Pipeline::None`](super::Pipeline::None).
    None,
    /// Machine code, with [`Pipeline::Speed`](super::Pipeline::Speed).
    Speed,
    /// Machine code, with [`Pipeline::LoopOpt`](super::Pipeline::LoopOpt).
    LoopOpt,
}

/// That something is wrong. The error of [`check`](super::check) can be downcast to it.
#[derive(Clone, Debug)]
pub enum Difference {
    /// Two arms do not do the same.
    Behavior {
        /// Which of the cases it is, from 0.
        case: usize,
        /// Its call.
        call: Call,
        /// The two arms.
        arms: [Arm; 2],
        /// What is not the same.
        mismatch: Mismatch,
    },
    /// loopopt says that it did not change a function that it changed.
    Unreported {
        /// The name of the function.
        function: String,
        /// The function before, as text.
        before: String,
        /// The function after, as text.
        after: String,
    },
    /// loopopt changes its own output.
    Unsettled {
        /// The name of the function.
        function: String,
        /// The function after the first run, as text.
        once: String,
        /// The function after the second run, as text. If it is the same, the report alone says that it changed.
        twice: String,
    },
}

/// What is not the same in two arms. Two values are in the order of the arms.
#[derive(Clone, Debug)]
pub enum Mismatch {
    /// How the call ended.
    Outcome(Box<[Outcome; 2]>),
    /// The memory image at the end.
    Memory {
        /// The first byte that is not the same.
        offset: usize,
        /// Its values.
        bytes: [u8; 2],
        /// How many bytes are not the same.
        count: usize,
    },
    /// The calls to host functions.
    HostCall {
        /// The number of the first call that is not the same, from 0.
        index: usize,
        /// The calls.
        calls: Box<[Option<HostCall>; 2]>,
    },
    /// The second arm accessed what cannot be accessed, where no trap is possible. The first did not.
    Fault(Fault),
}

/// The first thing that is not the same.
pub(super) fn mismatch(function: &Function, a: &Observation, b: &Observation, srcloc: bool) -> Option<Mismatch> {
    if !same_outcome(function, &a.outcome, &b.outcome, srcloc) {
        return Some(Mismatch::Outcome(Box::new([a.outcome.clone(), b.outcome.clone()])));
    }
    let calls = a.calls.len().max(b.calls.len());
    for index in 0..calls {
        let calls = [a.calls.get(index), b.calls.get(index)];
        if !same_host_call(calls) {
            return Some(Mismatch::HostCall { index, calls: Box::new(calls.map(Option::<&HostCall>::cloned)) });
        }
    }
    if a.memory == b.memory {
        return None;
    }
    let mut differing = a.memory.iter().zip(&b.memory).enumerate().filter(|(_, (a, b))| a != b);
    let (offset, (&first, &second)) = differing.next().expect("images are of the same size, and not equal");
    Some(Mismatch::Memory { offset, bytes: [first, second], count: 1 + differing.count() })
}

pub(super) fn same_outcome(function: &Function, a: &Outcome, b: &Outcome, compare_srcloc: bool) -> bool {
    match (a, b) {
        (Outcome::Returned(a), Outcome::Returned(b)) => {
            let types = function.signature.returns.iter().map(|ret| ret.value_type);
            a.len() == b.len() && a.iter().zip(b).zip(types).all(|((a, b), ty)| same_value(a, b, ty))
        }
        (
            Outcome::Trapped { code: code_a, function: function_a, srcloc: srcloc_a },
            Outcome::Trapped { code: code_b, function: function_b, srcloc: srcloc_b },
        ) => code_a == code_b && function_a == function_b && (!compare_srcloc || srcloc_a == srcloc_b),
        _ => a == b,
    }
}

fn same_host_call(calls: [Option<&HostCall>; 2]) -> bool {
    match calls {
        [Some(a), Some(b)] => {
            a.name == b.name
                && a.memory == b.memory
                && a.thrown == b.thrown
                && a.args.len() == b.args.len()
                && a.args.iter().zip(&b.args).all(|(a, b)| same_value(a, b, a.ty()))
        }
        _ => false,
    }
}

/// Whether two values of a type are the same to the bit, or NaN.
fn same_value(a: &DataValue, b: &DataValue, ty: Type) -> bool {
    if a.bitwise_eq(b) {
        return true;
    }
    let (mut bytes_a, mut bytes_b) = ([0; 16], [0; 16]);
    a.write_to_slice_ne(&mut bytes_a);
    b.write_to_slice_ne(&mut bytes_b);
    let lane = match ty.lane_type() {
        types::F32 => 4,
        types::F64 => 8,
        _ => return false,
    };
    a.ty() == b.ty() && bytes_a.chunks(lane).zip(bytes_b.chunks(lane)).all(|(a, b)| a == b || (is_nan(a) && is_nan(b)))
}

fn is_nan(bytes: &[u8]) -> bool {
    match *bytes {
        [a, b, c, d] => f32::from_ne_bytes([a, b, c, d]).is_nan(),
        [a, b, c, d, e, f, g, h] => f64::from_ne_bytes([a, b, c, d, e, f, g, h]).is_nan(),
        _ => false,
    }
}

impl std::error::Error for Difference {}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Behavior { case, call, arms: [a, b], mismatch } => {
                write!(f, "case {case}, {call}: {a} and {b} differ: {mismatch}")
            }
            Self::Unreported { function, before, after } => {
                write!(
                    f,
                    "{function} is reported as unchanged, but was
{before}
and is
{after}"
                )
            }
            Self::Unsettled { function, once, twice } if once == twice => {
                write!(
                    f,
                    "{function} is reported as changed by a second run that does not change it:
{once}"
                )
            }
            Self::Unsettled { function, once, twice } => {
                write!(
                    f,
                    "a second run changes {function} from
{once}
to
{twice}"
                )
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outcome(outcomes) => {
                write!(f, "the first {}, the second {}", outcomes[0], outcomes[1])
            }
            Self::Memory { offset, bytes: [a, b], count } => {
                write!(f, "{count} bytes of memory, the first at mem+{offset}: {a:#04x} and {b:#04x}")
            }
            Self::HostCall { index, calls } => {
                let [a, b] = calls.each_ref().map(|call| call.as_ref().map_or("none".to_owned(), HostCall::to_string));
                write!(f, "host call {index}: {a} and {b}")
            }
            Self::Fault(fault) => write!(f, "in the second, {fault}"),
        }
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interpreter => "the interpreter",
            Self::None => "Cranelift at opt_level=none",
            Self::Speed => "Cranelift at opt_level=speed",
            Self::LoopOpt => "loopopt",
        })
    }
}
