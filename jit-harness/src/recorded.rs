//! Profiles in files.

use anyhow::{Result, anyhow};
use loopopt::profile::Profile;
use std::fs;
use std::path::Path;

const ADVICE: &str = "give a file that `profile --out` has written";

/// Reads what [`write()`] has written.
pub fn read(path: &Path) -> Result<Profile> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| anyhow!("{name}: {error}; {ADVICE}"))?;
    Profile::from_json(&text).map_err(|error| anyhow!("{name}: not a profile: {error}; {ADVICE}"))
}

/// Writes a profile.
pub fn write(path: &Path, profile: &Profile) -> Result<()> {
    let text = profile.to_json();
    fs::write(path, text).map_err(|error| anyhow!("{}: {error}; give a path that can be written", path.display()))
}
