//! Runs of the binary in a folder of their own.
#![allow(dead_code, unreachable_pub, reason = "each file of tests uses what it needs")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A program with a loop and one without.
pub const GOOD: &str = "function %sum(i64, i64) -> i64 {
block0(v0: i64, v1: i64):
    v2 = iconst.i64 0
    jump block1(v2, v2)
block1(v3: i64, v4: i64):
    v5 = icmp slt v3, v1
    brif v5, block2, block3
block2:
    v6 = iadd v0, v3
    v7 = uload8.i64 v6
    v8 = iadd v4, v7
    v9 = iconst.i64 1
    v10 = iadd v3, v9
    jump block1(v10, v8)
block3:
    return v4
}
; run: %sum(mem, 5) == 10
; run: %sum(mem, 0) == 0
; bench: %sum(mem, 20000)

function %half(f64) -> f64 {
block0(v0: f64):
    v1 = f64const 0x1.0p-1
    v2 = fmul v0, v1
    return v2
}
; run: %half(0x1.8p0) == 0x1.8p-1
";

/// A program that cannot be timed.
pub const TRAPS: &str = "function %check(i32) -> i32 {
block0(v0: i32):
    trapz v0, heap_oob
    return v0
}
; bench: %check(0)
";

/// A run of the binary on files of a folder of its own.
pub struct Bench(TempDir);

impl Bench {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room for files"))
    }

    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        fs::write(self.path(name), text).expect("the file can be written");
        name.to_owned()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jit-harness"));
        command.current_dir(self.0.path()).args(args).output().expect("the binary is there")
    }

    /// What it prints if all is well.
    #[track_caller]
    pub fn prints(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr), "");
        text(&output.stdout)
    }

    /// What a command prints that takes long, and says on the standard error how far it is.
    #[track_caller]
    pub fn measures(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let progress = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{progress}");
        assert!(progress.lines().all(|line| line.contains(" %, ") && line.contains(" left: ")), "{progress}");
        assert!(progress.lines().last().is_some_and(|line| line.starts_with("100 %, ")), "{progress}");
        text(&output.stdout)
    }

    /// Bad input: exit code 2 and one line on the standard error, which has all these words.
    #[track_caller]
    pub fn complains(&self, args: &[&str], words: &[&str]) {
        let output = self.run(args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.starts_with("error: ") && error.ends_with('\n'), "{args:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
        assert!(!error.contains("panicked"), "{args:?}: {error}");
        assert!(error.contains("; "), "{args:?} is not told what to do: {error}");
        for word in words {
            assert!(error.contains(word), "{args:?}: `{word}` is not in: {error}");
        }
    }
}

/// What was printed.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is text")
}
