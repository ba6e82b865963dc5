//! Files that are whole at any time: what is written takes the place of what was there at once.

use super::json::write_json;
use anyhow::{Context as _, Error, Result, anyhow};
use serde::Serialize;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A file of JSON that is written again and again.
pub struct WholeFile {
    /// Without links.
    path: PathBuf,
    /// What is no regular file, like a pipe, is written once, at the end.
    stream: Option<File>,
}

impl WholeFile {
    /// Looks early whether the file can be written, so that a wrong path does not cost a measurement. What is there stays there until
    /// [`Self::write`].
    pub fn new(path: &Path) -> Result<Self> {
        Self::open(path).map_err(|error| cannot_write(path, &error))
    }

    fn open(path: &Path) -> io::Result<Self> {
        let Ok(metadata) = fs::metadata(path) else {
            let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
            let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            let path = folder.canonicalize()?.join(name);
            beside(&path)?;
            return Ok(Self { path, stream: None });
        };
        let file = File::options().write(true).open(path)?;
        Ok(Self { path: path.canonicalize()?, stream: (!metadata.is_file()).then_some(file) })
    }

    /// Writes what may be written again.
    pub fn write(&self, record: &impl Serialize) -> Result<()> {
        if self.stream.is_some() {
            return Ok(());
        }
        let file = beside(&self.path).map_err(|error| cannot_write(&self.path, &error))?;
        write_json(file.reopen()?, record)?;
        file.persist(&self.path).with_context(|| self.path.display().to_string())?;
        Ok(())
    }

    /// Writes what stays.
    pub fn finish(mut self, record: &impl Serialize) -> Result<()> {
        match self.stream.take() {
            Some(stream) => write_json(stream, record),
            None => self.write(record),
        }
    }
}

/// A file in the same folder, with the rights of this one, or those of any new file.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    let rights = fs::metadata(path).map_or(Permissions::from_mode(0o666), |metadata| metadata.permissions());
    let folder = path.parent().unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".").permissions(rights).tempfile_in(folder)
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    anyhow!("{}: {error}; give a path that can be written", path.display())
}
