//! Names in texts that mean nothing.

use std::error::Error;
use std::fmt::{self, Display};

/// A name that means nothing where it is. The message says which names are like it, or else which names there are, and needs no further advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// What is said of the name.
    what: String,
    /// What may be meant, or what there is.
    known: String,
}

impl Unknown {
    /// A name and what is said of it, of what kind it should be, in the plural, and all names of that kind.
    pub(super) fn new<N: AsRef<str>>((name, what): (&str, String), kind: &str, names: &[N]) -> Self {
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        Self::or_else((name, what), &names, || format!("the {kind} are {}", names.join(", ")))
    }

    /// The same, where there are too many names to say them all.
    pub(super) fn of_many((name, what): (&str, String), names: &[&str]) -> Self {
        Self::or_else((name, what), names, || format!("there are {}, and `jit-harness list` prints them", names.len()))
    }

    /// The same. `all` says which names there are, if none is like it.
    fn or_else((name, what): (&str, String), names: &[&str], all: impl FnOnce() -> String) -> Self {
        let known = alike(name, names).map_or_else(all, |meant| format!("is {meant} meant?"));
        Self { what, known }
    }
}

/// The name that is most like this one, if one is like it, by the measure of Jaro and Winkler. The threshold is a matter of taste.
fn alike<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    const ALIKE: f64 = 0.88;
    let rated = names.iter().map(|known| (strsim::jaro_winkler(name, known), *known));
    let most = rated.max_by(|(one, _), (other, _)| one.total_cmp(other));
    most.filter(|(rate, _)| *rate >= ALIKE).map(|(_, known)| known)
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
/// let error = require_passes(["rotates"]).unwrap_err().to_string();
/// assert_eq!(error, "unknown pass `rotates`; is rotate meant?");
/// ```
pub fn require_passes<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), Unknown> {
    match names.into_iter().find(|name| !crate::pass_names().any(|known| known == *name)) {
        None => Ok(()),
        Some(name) => {
            let known: Vec<&str> = crate::pass_names().collect();
            let what = if name.is_empty() {
                "no name of a pass is given".to_owned()
            } else {
                format!("unknown pass `{name}`")
            };
            Err(Unknown::new((name, what), "passes", &known))
        }
    }
}
