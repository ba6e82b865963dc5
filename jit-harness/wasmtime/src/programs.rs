//! The programs of `bench-programs/wasm/`: modules with calls and what these give.

use crate::arm::Program;
use crate::guest::Call;
use crate::observation::{Observation, Outcome};
use crate::world::World;
use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// All programs, as they are in the file.
#[derive(Debug, Deserialize)]
struct File {
    module: Vec<Listed>,
}

/// A module of the list.
#[derive(Clone, Debug, Deserialize)]
pub struct Listed {
    /// The name, unlike all others.
    pub name: String,
    /// How well the front end optimized: `o0`, `o1`, `o2`, or `hand`.
    pub level: String,
    file: PathBuf,
    invoke: Option<String>,
    /// Whether the function never returns.
    #[serde(default)]
    pub endless: bool,
    test: Option<Case>,
    bench: Option<Case>,
    long: Option<Case>,
}

/// A call, and what it gives.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    argument: i32,
    result: Option<i64>,
    /// The trap that it ends with.
    trap: Option<String>,
    /// What the function `seen` returns after the trap.
    seen: Option<i64>,
}

/// Which call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// Some milliseconds.
    Test,
    /// Some tenths of a second.
    Bench,
    /// More than a second; not all programs have it.
    Long,
}

/// The modules of a list, with the folder that their files are in.
#[derive(Debug)]
pub struct Programs {
    folder: PathBuf,
    /// All of them.
    pub listed: Vec<Listed>,
}

impl Programs {
    /// Reads a list.
    pub fn open(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let file: File = toml::from_str(&text).with_context(|| path.display().to_string())?;
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { folder, listed: file.module })
    }

    /// Reads a module.
    pub fn program(&self, listed: &Listed) -> Result<Program> {
        Ok(Program { name: listed.name.clone(), ..Program::open(&self.folder.join(&listed.file))? })
    }
}

impl Listed {
    /// The call of this size, if there is one.
    pub fn case(&self, size: Size) -> Option<&Case> {
        match size {
            Size::Test => self.test.as_ref(),
            Size::Bench => self.bench.as_ref(),
            Size::Long => self.long.as_ref(),
        }
    }

    /// The function to be called with this argument.
    pub fn call(&self, argument: i32) -> Call {
        let invoke = self.invoke.as_ref().map(|name| (name.clone(), vec![argument.to_string()]));
        let world = World { args: vec![self.name.clone(), argument.to_string()], ..World::default() };
        Call { invoke, world, ..Call::default() }
    }
}

impl Case {
    /// The call.
    pub fn call(&self, listed: &Listed) -> Call {
        Call { then: self.seen.map(|_| "seen".to_owned()), ..listed.call(self.argument) }
    }

    /// Whether a run did what is known; if not, what it did.
    pub fn check(&self, seen: &Observation) -> Result<()> {
        let is_right = match (&seen.outcome, &self.trap) {
            (Outcome::Returned(values), None) => {
                values.as_slice() == self.result.map(|value| value.to_string()).as_slice()
            }
            (Outcome::Trapped { code, .. }, Some(trap)) => code == trap,
            _ => false,
        };
        if !is_right {
            let wanted = self.trap.clone().or(self.result.map(|value| value.to_string()));
            bail!("it {}, which should be {}", seen.outcome, wanted.unwrap_or_default());
        }
        let wanted = self.seen.map(|value| Outcome::Returned(vec![value.to_string()]));
        if seen.then != wanted {
            bail!("`seen` did not return {} after the trap", self.seen.unwrap_or_default());
        }
        Ok(())
    }
}

/// The level, with what its front end is in words.
pub fn level_in_words(level: &str) -> &str {
    match level {
        "o0" => "simple front ends",
        "o1" => "-O1",
        "o2" => "-O2",
        "hand" => "by hand",
        other => other,
    }
}
