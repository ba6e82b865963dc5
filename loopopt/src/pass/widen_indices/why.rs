//! Why the addresses of a loop stay as they are.

use crate::analysis::facts::nowrap::MayWrap;
use crate::refusal::{Shown, refusals};
use cranelift_codegen::ir::{Function, Inst, Value};
use std::fmt;

refusals! {
    /// Why no address of a loop is widened.
    pub(super) enum Decline {
        /// No address is made of an extended number.
        NothingExtended => "nothing-extended", "no address is computed from an extended value";
        /// (L3) The embedder says that extensions are what confines accesses.
        Confined => "confined", "the embedder says that it is their extension that keeps addresses within a memory";
        /// The loop has more loads and stores than the options allow.
        TooManyAccesses { accesses: usize, max: usize }
            => "too-many-accesses", "the loop has {accesses} loads and stores, more than {max}",
            help "raise Options::widen_indices_max_accesses";
        /// (L1) The sum that is extended may be too large for its type.
        MayWrap { access: Inst, why: MayWrap } => "may-wrap", "the address of {access} extends {why}",
            help "bound the index by a constant, or compute it in 64 bits";
        /// (P1) What is extended is one number each, and no counter.
        NothingAdded => "no-gain", "no address is added up before it is extended, or counted";
        /// (P1) As many instructions would be added as removed.
        NoGain { before: usize, after: usize } => "no-gain", "{after} instructions would take the place of {before}";
        /// What is passed from one iteration to the next is loaded, but not always.
        ComesOtherwise { param: Value, value: Value }
            => "comes-otherwise", "{param} is not always loaded: {value} would have to be extended for the next iteration",
            help "let what the next iteration extends be loaded, or a constant, or what it was";
        /// (P2) The loop is short of registers.
        NoRegister { bases: usize, needed: usize, available: usize }
            => "no-register",
            "{bases} bases more would live through the loop, where {needed} values take {available} registers";
    }
    shared { TooDeep(max: usize), Withheld }
}

impl Shown for MayWrap {
    fn shown<'a>(&'a self, _: &'a Function) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| {
            write!(f, "{}, which may be too large for {} bits", self.sum, self.sum.bits())?;
            match self.value {
                Some(value) => write!(f, ": nothing says how large {value} can be"),
                None => Ok(()),
            }
        })
    }
}
