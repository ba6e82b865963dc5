//! Names in texts that mean nothing.

use std::error::Error;
use std::fmt::{self, Display};

/// A name that means nothing where it stands. The message says which names there are, and needs no further advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What is said of the name.
    what: String,
    /// What there is, in the plural, and the names.
    known: String,
}

impl Unknown {
    /// What is said of a name, of what kind it should be, in the plural, and all names of that kind.
    pub(super) fn new<N: AsRef<str>>(what: String, kind: &str, names: &[N]) -> Self {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        Self { what, known: format!("the {kind} are {}", names.join(", ")) }
    }
}

impl Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.known)
    }
}

impl Error for Unknown {}

/// Whether all of these are names of passes.
///
/// # Errors
///
/// For the first that is none.
///
/// ```
/// use loopopt::oracle::require_passes;
///
/// assert!(require_passes(["licm", "rotate"]).is_ok());
/// let error = require_passes(["fold"]).unwrap_err().to_string();
/// assert!(error.starts_with("unknown pass `fold`; the passes are "));
/// ```
pub fn require_passes<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), Unknown> {
    match names.into_iter().find(|name| !crate::pass_names().any(|known| known == *name)) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = crate::pass_names().collect();
            Err(Unknown::new(format!("unknown pass `{name}`"), "passes", &known))
        }
    }
}
