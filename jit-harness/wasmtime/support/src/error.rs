//! Why loopopt could not be installed.

use std::error::Error;
use std::fmt;

/// Why loopopt could not be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InstallError {
    /// [`install`](crate::install) was called before. What it was given then counts.
    AlreadyInstalled,
    /// Someone else has set the hook of Cranelift: there is one for the process.
    HookTaken,
}

impl fmt::Display for InstallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyInstalled => {
                "loopopt is installed already: install it once, or use with_settings for one thread"
            }
            Self::HookTaken => {
                "another pass has set Cranelift's mid-end hook: a process has one; let that pass call loopopt"
            }
        })
    }
}

impl Error for InstallError {}
