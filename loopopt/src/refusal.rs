//! Refusals: why a pass leaves a loop as it is, as one table for each pass.
//!
//! ```text
//! refusals! {
//!     /// Why a loop is not peeled.
//!     enum Decline {
//!         /// (P3) Too much would be copied for what is gained.
//!         TooLarge { insts: usize, max: usize } => "too-large", "{insts} instructions would be copied, more than {max}",
//!             help "raise Options::peel_max_insts if the loop is hot";
//!     }
//!     shared { Withheld, ColdLoop }
//! }
//! ```
//!
//! The table makes the enum, its [`Refusal`], and `REASONS`, the list of its names. So each name is written once, and what a pass says is
//! in its list. The fields of a variant are in its text by their names; instructions are shown as they are written. What several passes
//! say in the same words is in [`shared`] alone.

use cranelift_codegen::ir::{Block, Function, Inst, Opcode, Type, Value};
use std::borrow::Cow;
use std::fmt;

/// Why a pass leaves a loop as it is: implemented by the table of each pass.
pub(crate) trait Refusal {
    /// The reason in kebab-case, one of those that the pass lists.
    fn slug(&self) -> &'static str;

    /// The reason in words, for the function that it is about.
    fn message(&self, func: &Function) -> Cow<'static, str>;

    /// What would help, or nothing.
    fn help(&self) -> &'static str;

    /// Distinguishes what a pass says of several things with one header: the number of a stack slot.
    fn subject(&self) -> u32 {
        0
    }
}

/// A reason in the words of the time when it arose, for passes that change what it is about.
pub(crate) struct Said {
    slug: &'static str,
    help: &'static str,
    message: Cow<'static, str>,
}

impl Said {
    /// What `why` says now.
    pub(crate) fn new(func: &Function, why: &dyn Refusal) -> Self {
        Self { slug: why.slug(), help: why.help(), message: why.message(func) }
    }
}

impl Refusal for Said {
    fn slug(&self) -> &'static str {
        self.slug
    }

    fn message(&self, _: &Function) -> Cow<'static, str> {
        self.message.clone()
    }

    fn help(&self) -> &'static str {
        self.help
    }
}

/// What can be in the text of a refusal.
pub(crate) trait Shown {
    /// It, as a user reads it.
    fn shown<'a>(&'a self, func: &'a Function) -> impl fmt::Display + 'a;
}

impl Shown for Inst {
    fn shown<'a>(&'a self, func: &'a Function) -> impl fmt::Display + 'a {
        fmt::from_fn(move |f| write!(f, "\"{}\"", func.dfg.display_inst(*self)))
    }
}

/// What shows itself.
macro_rules! shows_itself {
    ($($type:ty),*) => {
        $(impl Shown for $type {
            fn shown<'a>(&'a self, _: &'a Function) -> impl fmt::Display + 'a {
                self
            }
        })*
    };
}

shows_itself!(usize, u64, u128, String, Block, Value, Opcode, Type);

/// The refusals that several passes have, in their words: `doc`, `slug`, `text` and `help` of each.
macro_rules! shared {
    (doc Withheld) => {
        "Fuel is used up, or stress mode says no."
    };
    (slug Withheld) => {
        "withheld"
    };
    (text Withheld) => {
        "withheld: the fuel is used up, or stress mode says no"
    };
    (help Withheld) => {
        ""
    };

    (doc ColdLoop) => {
        "The loop is cold."
    };
    (slug ColdLoop) => {
        "cold-loop"
    };
    (text ColdLoop) => {
        "the loop is cold"
    };
    (help ColdLoop) => {
        "do not mark the loop cold if it runs often"
    };

    (doc NotDuplicable) => {
        "An instruction is tied to its place in the program."
    };
    (slug NotDuplicable) => {
        "not-duplicable"
    };
    (text NotDuplicable) => {
        "{opcode} is tied to its place in the program, so it must not be copied"
    };
    (help NotDuplicable) => {
        ""
    };

    (doc NotInnermost) => {
        "There is an inner loop."
    };
    (slug NotInnermost) => {
        "not-innermost"
    };
    (text NotInnermost) => {
        "there is an inner loop, in which the time is spent"
    };
    (help NotInnermost) => {
        ""
    };

    (doc TooDeep) => {
        "Too many loops are inside this one."
    };
    (slug TooDeep) => {
        "too-deep"
    };
    (text TooDeep) => {
        "more than {max} loops are nested inside this one"
    };
    (help TooDeep) => {
        "nest less deeply"
    };

    (doc UsuallyShort) => {
        "The loop ends soon, as a profile or an estimate says."
    };
    (slug UsuallyShort) => {
        "usually-short"
    };
    (text UsuallyShort) => {
        "{usual}, fewer than {min}"
    };
    (help UsuallyShort) => {
        ""
    };

    (doc FunctionTooLarge) => {
        "The function has grown too much already."
    };
    (slug FunctionTooLarge) => {
        "function-too-large"
    };
    (text FunctionTooLarge) => {
        "with {copied} instructions more, the function would have more than {max}"
    };
    (help FunctionTooLarge) => {
        "split the function, or raise Options::max_function_insts"
    };
}

/// Declares the refusals of a pass. See the [module](self).
macro_rules! refusals {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $(
                $(#[$doc:meta])*
                $variant:ident $(($($item:ident: $item_type:ty),*))? $({ $($field:ident: $field_type:ty),* })?
                    => $slug:literal, $text:literal $(, help $help:literal)?;
            )*
        }
        $(shared { $($shared:ident $(($($part:ident: $part_type:ty),*))? ),* })?
    ) => {
        $(#[$meta])*
        $vis enum $name {
            $($(#[$doc])* $variant $(($($item_type),*))? $({ $($field: $field_type),* })?,)*
            $($(#[doc = $crate::refusal::shared!(doc $shared)] $shared $(($($part_type),*))?,)*)?
        }

        impl $name {
            /// The names of these reasons.
            $vis const REASONS: &[&str] = &[$($slug,)* $($($crate::refusal::shared!(slug $shared),)*)?];
        }

        impl $crate::refusal::Refusal for $name {
            fn slug(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => $slug,)*
                    $($(Self::$shared { .. } => $crate::refusal::shared!(slug $shared),)*)?
                }
            }

            #[allow(unused_variables, reason = "there may be no field")]
            fn message(&self, func: &cranelift_codegen::ir::Function) -> std::borrow::Cow<'static, str> {
                match self {
                    $(Self::$variant $(($($item),*))? $({ $($field),* })? => {
                        $crate::refusal::text!(func, $text; $($($item)*)? $($($field)*)?)
                    })*
                    $($(Self::$shared $(($($part),*))? => {
                        $crate::refusal::text!(func, $crate::refusal::shared!(text $shared); $($($part)*)?)
                    })*)?
                }
            }

            fn help(&self) -> &'static str {
                match self {
                    $(Self::$variant { .. } => concat!("", $($help)?),)*
                    $($(Self::$shared { .. } => $crate::refusal::shared!(help $shared),)*)?
                }
            }
        }
    };
}

/// A text with these fields in it.
macro_rules! text {
    ($func:ident, $text:expr;) => {
        std::borrow::Cow::Borrowed($text)
    };
    ($func:ident, $text:expr; $($field:ident)+) => {
        std::borrow::Cow::Owned(format!($text, $($field = $crate::refusal::Shown::shown($field, $func)),+))
    };
}

pub(crate) use {refusals, shared, text};
