//! Profiles in files.

use anyhow::{Result, anyhow};
use loopopt::profile::Profile;
use std::fs;
use std::path::Path;

/// Reads what [`write()`] has written.
pub fn read(path: &Path) -> Result<Profile> {
    let name = path.display();
    let text =
        fs::read_to_string(path).map_err(|error| anyhow!("{name}: {error}; `profile --out {name}` records one"))?;
    Profile::from_json(&text)
        .map_err(|error| anyhow!("{name}: no profile: {error}; `profile --out {name}` records one"))
}

/// Writes a profile.
pub fn write(path: &Path, profile: &Profile) -> Result<()> {
    let text = profile.to_json();
    fs::write(path, text).map_err(|error| anyhow!("{}: {error}; give a path that can be written", path.display()))
}
