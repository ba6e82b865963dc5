//! A call, and everything about it that can be seen from outside.

use cranelift_codegen::data_value::{DataValue, DisplayDataValues, write_data_value_list};
use cranelift_codegen::ir::{SourceLoc, TrapCode};
use std::fmt;

/// A call to a function of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its name, without `%`.
    pub function: String,
    /// The arguments, in the order of the signature.
    pub args: Vec<Arg>,
}

/// An argument of a [`Call`].
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// A number or vector.
    Value(DataValue),
    /// The address of this byte of the memory image.
    Memory(usize),
}

/// What another thread writes into the memory image while a call runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrentWrite<'a> {
    /// Where, in bytes from the image's begin.
    pub offset: usize,
    /// What.
    pub bytes: &'a [u8],
    /// If this is said, it writes only while the byte at this offset is not what it was when the call began: it answers.
    pub answers: Option<usize>,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It returned.
    Returned(Vec<DataValue>),
    /// It trapped.
    Trapped {
        /// The code, as the program states it.
        code: TrapCode,
        /// The function that trapped.
        function: String,
        /// Where it trapped.
        srcloc: SourceLoc,
    },
    /// It took too long and was stopped. Such a call is not compared.
    TimedOut,
}

/// Everything about a call that may not change.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// How it ended.
    pub outcome: Outcome,
    /// The memory image at the end.
    pub memory: Vec<u8>,
    /// The calls to host functions.
    pub calls: Vec<HostCall>,
}

/// A call from the program to a host function.
#[derive(Clone, Debug, PartialEq)]
pub struct HostCall {
    /// The name, without `%`.
    pub name: String,
    /// The arguments.
    pub args: Vec<DataValue>,
    /// A hash of the memory image at the call.
    pub memory: u64,
    /// Whether it threw an exception that a handler of the program took.
    pub thrown: bool,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}(", self.function)?;
        for (index, arg) in self.args.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{arg}")?;
        }
        write!(f, ")")
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "{value}"),
            Self::Memory(0) => write!(f, "mem"),
            Self::Memory(offset) => write!(f, "mem+{offset}"),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Returned(values) => write!(f, "returned {}", DisplayDataValues(values)),
            Self::Trapped { code, function, srcloc } if srcloc.is_default() => {
                write!(f, "trapped with {code} in %{function}")
            }
            Self::Trapped { code, function, srcloc } => write!(f, "trapped with {code} in %{function} {srcloc}"),
            Self::TimedOut => write!(f, "did not end in time"),
        }
    }
}

impl fmt::Display for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%{}(", self.name)?;
        write_data_value_list(f, &self.args)?;
        write!(f, ") with memory {:016x}", self.memory)
    }
}
