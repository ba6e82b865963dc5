//! Profiles as JSON.

use super::{FunctionProfile, Profile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the format, which goes up if older readers would misunderstand what is written.
const VERSION: u32 = 1;

/// What is in a file.
#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    functions: BTreeMap<String, FunctionProfile>,
}

impl Profile {
    /// The profile as JSON: an object with `version`, which is 1, and `functions`, by name. What else is in it is as the fields of [`FunctionProfile`] and
    /// of what it holds.
    ///
    /// ```
    /// use loopopt::profile::Profile;
    ///
    /// let text = Profile::default().to_json();
    /// assert_eq!(Profile::from_json(&text)?, Profile::default());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn to_json(&self) -> String {
        let file = File { version: VERSION, functions: self.functions.clone() };
        serde_json::to_string(&file).expect("strings and numbers are JSON")
    }

    /// Reads what [`to_json`](Self::to_json) has written.
    ///
    /// # Errors
    ///
    /// If the text is no such JSON, or of another version.
    pub fn from_json(text: &str) -> Result<Self, serde_json::Error> {
        let File { version, functions } = serde_json::from_str(text)?;
        if version != VERSION {
            return Err(serde::de::Error::custom(format!("a profile of version {version}, and not {VERSION}")));
        }
        Ok(Self { functions })
    }
}
