//! Brainfuck programs that brainfreak compiles to object files without and with loopopt. `cc` links them.

use anyhow::{Context as _, Result, ensure};
use measure::Table;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The compiler of this arm, which was built with this program.
fn compiler(arm: &str) -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(format!("brainfreak-{arm}"));
    ensure!(path.is_file(), "{} is not there; build the whole workspace", path.display());
    Ok(path)
}

/// Compiles and links a program, and returns the path of what came out.
fn executable(compiler: &Path, name: &str, source: &str) -> Result<PathBuf> {
    let base = compiler.with_extension(name);
    let (text, object) = (base.with_extension("bf"), base.with_extension("o"));
    std::fs::write(&text, source)?;
    let compiled = Command::new(compiler).arg("build-obj").arg(&text).arg("-o").arg(&object).status()?;
    ensure!(compiled.success(), "{} cannot compile {name}", compiler.display());
    let linked = Command::new("cc").args(["-no-pie", "-o"]).args([&base, &object]).status().context("cc is missing")?;
    ensure!(linked.success(), "cc cannot link {}", object.display());
    Ok(base)
}

/// What a program prints.
fn run(executable: &Path) -> Vec<u8> {
    let output = Command::new(executable).output();
    output.map_or_else(|error| error.to_string().into_bytes(), |output| output.stdout)
}

/// What it has to print.
fn interpret(source: &str) -> Vec<u8> {
    let code = source.as_bytes();
    let (mut cells, mut cell, mut place, mut output) = ([0u8; 64], 0, 0, vec![]);
    while place < code.len() {
        match code[place] {
            b'>' => cell += 1,
            b'<' => cell -= 1,
            b'+' => cells[cell] = cells[cell].wrapping_add(1),
            b'-' => cells[cell] = cells[cell].wrapping_sub(1),
            b'.' => output.push(cells[cell]),
            b'[' if cells[cell] == 0 => place = partner(code, place, 1),
            b']' if cells[cell] != 0 => place = partner(code, place, -1),
            _ => {}
        }
        place += 1;
    }
    output
}

/// The bracket that belongs to the one at this place, in this direction.
fn partner(code: &[u8], mut place: usize, direction: isize) -> usize {
    let mut open = 0;
    loop {
        open += match code[place] {
            b'[' => 1,
            b']' => -1,
            _ => 0,
        };
        if open == 0 {
            return place;
        }
        place = place.strict_add_signed(direction);
    }
}

/// Adds a number to the cell.
fn add(number: usize) -> String {
    "+".repeat(number)
}

fn main() -> Result<()> {
    let compilers = (compiler("without")?, compiler("with")?);
    let (many, some) = (add(250), add(40));
    let programs = [
        // A cell is moved to the next one, which is cleared.
        ("move", format!("{many}[->{some}[->{many}[->+<]>[-]<<]<]>>>{}.", add(65))),
        // A cell is copied to two others, and one of them back.
        ("copy", format!("{many}>{many}>{some}<<[->[->[->+>+<<]>>[-<<+>>]<[-]<<]{some}<]>>.>.>.")),
        // Loops of 7 and 9 iterations in each other.
        ("multiply", format!("{some}[->{many}[->+++++++[->+++++++++[->+++++++<]<]<]<]>>>>>.")),
    ];
    let mut table = Table::default();
    for (name, source) in &programs {
        let (slow, fast) = (executable(&compilers.0, name, source)?, executable(&compilers.1, name, source)?);
        table.compare(name, &interpret(source), || run(&slow), || run(&fast))?;
    }
    // Letters: too little to be timed.
    let letters = format!("{}>{}[<.+>-]", add(65), add(26));
    for compiler in [&compilers.0, &compilers.1] {
        let printed = run(&executable(compiler, "letters", &letters)?);
        ensure!(printed == *b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "letters prints {printed:?} with {}", compiler.display());
    }
    table.finish()
}
