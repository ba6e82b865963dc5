//! Why the addresses of a loop stay as they are.

use crate::analysis::scev::nowrap::MayWrap;
use crate::pass::licm::MAX_HEIGHT;
use crate::remark::Refusal;
use cranelift_codegen::ir::{Function, Inst};
use std::fmt;

/// Why the addresses of a loop stay as they are.
#[derive(Clone, Debug)]
pub(super) enum Decline {
    /// No address is made of an extended number.
    NothingExtended,
    /// The loop has more loads and stores than the options allow.
    TooManyAccesses { accesses: usize, max: usize },
    /// Too many loops are inside this one.
    TooDeep,
    /// (L1) The sum that is extended may be too large for its type.
    MayWrap { inst: Inst, why: MayWrap },
    /// (P1) What is extended is one number each, and no counter.
    NothingAdded,
    /// (P1) As many instructions would come as go.
    NoGain { before: usize, after: usize },
    /// (P2) The loop is short of registers.
    NoRegister { bases: usize, needed: usize, available: usize },
    /// Fuel is used up, or stress mode says no.
    Withheld,
}

/// A reason, with the function that its instructions are in.
pub(super) struct Because<'a> {
    pub(super) func: &'a Function,
    pub(super) why: Decline,
}

impl Refusal for Because<'_> {
    fn slug(&self) -> &'static str {
        match self.why {
            Decline::NothingExtended => "nothing-extended",
            Decline::TooManyAccesses { .. } => "too-many-accesses",
            Decline::TooDeep => "too-deep",
            Decline::MayWrap { .. } => "may-wrap",
            Decline::NothingAdded | Decline::NoGain { .. } => "no-gain",
            Decline::NoRegister { .. } => "no-register",
            Decline::Withheld => "withheld",
        }
    }

    fn fixed(&self) -> Option<&'static str> {
        match self.why {
            Decline::NothingExtended => Some("no address is made of a number that is extended"),
            Decline::NothingAdded => Some("no address is added up before it is extended, or counted"),
            Decline::Withheld => Some("withheld: the fuel is used up, or stress mode says no"),
            _ => None,
        }
    }

    fn help(&self) -> &'static str {
        match self.why {
            Decline::TooManyAccesses { .. } => "raise Options::widen_indices_max_accesses",
            Decline::MayWrap { .. } => "bound the index by a constant, or compute it in 64 bits",
            _ => "",
        }
    }
}

impl fmt::Display for Because<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Decline::NothingExtended | Decline::NothingAdded | Decline::Withheld => {
                f.write_str(self.fixed().unwrap_or(""))
            }
            Decline::TooManyAccesses { accesses, max } => {
                write!(f, "the loop has {accesses} loads and stores, more than {max}")
            }
            Decline::TooDeep => write!(f, "there are more than {MAX_HEIGHT} loops inside"),
            Decline::MayWrap { inst, why: MayWrap { sum, value } } => {
                let inst = self.func.dfg.display_inst(*inst);
                let bits = sum.bits();
                write!(f, "the address of \"{inst}\" extends {sum}, which may be too large for {bits} bits")?;
                match value {
                    Some(value) => write!(f, ": nothing says how large {value} can be"),
                    None => Ok(()),
                }
            }
            Decline::NoGain { before, after } => {
                write!(f, "{after} instructions would take the place of {before}")
            }
            Decline::NoRegister { bases, needed, available } => {
                write!(
                    f,
                    "{bases} bases more would live through the loop, where {needed} values take {available} registers"
                )
            }
        }
    }
}
