//! Runs of `bench` that are kept, so that later ones can be compared with them.

use super::json::{Bench, Measured};
use anyhow::{Context as _, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// Of what is written here. Counts up if what is written changes its meaning.
const VERSION: u32 = 1;

/// The folder of runs that are given by a name.
const FOLDER: &str = "target/loopopt-bench";

/// A run that is kept.
#[derive(Debug, Serialize, Deserialize)]
pub struct Saved {
    version: u32,
    /// The processor that it was measured on.
    pub cpu: String,
    /// The options that it was measured with.
    pub options: String,
    /// The programs that do the same in all arms.
    pub programs: Vec<SavedProgram>,
}

/// What is kept of a program.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedProgram {
    /// Its name.
    pub name: String,
    /// Time with loopopt by time without.
    pub ratio: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// The largest change that may be noise.
    pub margin: f64,
}

/// Only the version: the rest is for those who know it.
#[derive(Deserialize)]
struct Header {
    version: u32,
}

/// Where a run is kept: a path, or else a name in a folder for all of them.
pub fn place(name: &str) -> PathBuf {
    if name.contains('/') || name.ends_with(".json") {
        return name.into();
    }
    Path::new(FOLDER).join(format!("{name}.json"))
}

impl Saved {
    /// What is kept of a run.
    pub fn new(bench: &Bench, options: String) -> Self {
        let measured = bench.programs.iter().filter_map(|record| Some((&record.name, record.measured.as_ref()?)));
        let programs = measured.map(|(name, measured)| SavedProgram::new(name, measured)).collect();
        Self { version: VERSION, cpu: bench.cpu.clone(), options, programs }
    }

    /// Reads a run of this machine.
    pub fn read(path: &Path, cpu: &str) -> Result<Self> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(|error| {
            anyhow!("{name}: {error}; give the name or the path of a run that `bench --save` has kept")
        })?;
        let saved =
            Self::parse(&text).map_err(|error| anyhow!("{name}: {error}; keep another run with `bench --save`"))?;
        ensure!(
            saved.cpu == cpu,
            "{name}: this run is of another machine, {} and not {cpu}; keep one of this machine with `bench --save`",
            saved.cpu
        );
        Ok(saved)
    }

    fn parse(text: &str) -> Result<Self> {
        let damaged = |error: serde_json::Error| anyhow!("this is no run, or it is damaged: {error}");
        let Header { version } = serde_json::from_str(text).map_err(damaged)?;
        ensure!(version == VERSION, "this run is of version {version}, and this program reads version {VERSION}");
        let saved: Self = serde_json::from_str(text).map_err(damaged)?;
        match saved.programs.iter().find(|program| !program.is_possible()) {
            Some(program) => Err(anyhow!("this run is damaged: the figures of {} cannot be", program.name)),
            None => Ok(saved),
        }
    }
}

impl SavedProgram {
    /// What is kept of this program.
    pub fn new(name: &str, measured: &Measured) -> Self {
        let Measured { ratio, low, high, margin, .. } = *measured;
        Self { name: name.to_owned(), ratio, low, high, margin }
    }

    /// Whether a measurement can have given these figures.
    fn is_possible(&self) -> bool {
        let Self { ratio, low, high, margin, .. } = *self;
        0.0 < low && low <= ratio && ratio <= high && margin >= 0.0
    }
}

/// Creates the folder for runs that are given by a name, if this is one.
pub fn make_room(path: &Path) -> Result<()> {
    if path.starts_with(FOLDER) {
        fs::create_dir_all(FOLDER).with_context(|| format!("{FOLDER}: cannot be created"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_folder_and_paths_are_paths() {
        assert_eq!(place("main"), Path::new("target/loopopt-bench/main.json"));
        assert_eq!(place("main.json"), Path::new("main.json"));
        assert_eq!(place("./main"), Path::new("./main"));
    }

    #[test]
    fn damaged_runs_are_named_as_such() {
        let run = |program: &str| format!(r#"{{"version":1,"cpu":"","options":"","programs":[{program}]}}"#);
        let good = r#"{"name":"a","ratio":0.5,"low":0.4,"high":0.6,"margin":0.01}"#;
        assert_eq!(Saved::parse(&run(good)).expect("it is a run").programs.len(), 1);
        let damaged = [
            String::new(),
            "{}".to_owned(),
            run(good)[..40].to_owned(),
            run(&good.replace("0.4", "0.55")),
            run(&good.replace("0.4", "-0.4")),
            run(&good.replace("0.4", "null")),
            run(&good.replace("0.6", "1e999")),
        ];
        for text in damaged {
            let error = Saved::parse(&text).expect_err("it is damaged").to_string();
            assert!(error.contains("damaged"), "{text}: {error}");
        }
        let error = Saved::parse(r#"{"version":7,"runs":3}"#).expect_err("it is of another version").to_string();
        assert!(error.contains("version 7"), "{error}");
    }
}
