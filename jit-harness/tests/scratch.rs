use clap::Parser as _;
use jit_harness::{cli::Cli, command};
use loopopt::fault::{self, Fault};
#[test]
fn scratch() {
    jit_harness::error::silence_panics();
    let dirs = std::fs::read_dir("../loopopt/tests/clif").unwrap();
    let mut files: Vec<_> = dirs.flat_map(|d| std::fs::read_dir(d.unwrap().path()).unwrap()).map(|f| f.unwrap().path().display().to_string()).collect();
    files.sort();
    let begin = std::time::Instant::now();
    let mut done = 0;
    for &fault in Fault::ALL {
        let mut reduced = 0;
        for file in &files {
            for c in ["bisect", "reduce"] {
                if reduced >= 2 || begin.elapsed().as_secs() > 240 { break; }
                let mut out = Vec::new();
                let start = std::time::Instant::now();
                let args: Vec<&str> = if c == "bisect" { vec!["x", c, &file] } else { vec!["x", c, &file, "--seconds", "5"] };
                let r = fault::with(fault, || command::run(&Cli::try_parse_from(args).unwrap(), &mut out));
                done += 1;
                if !matches!(&r, Ok(command::Ending::Fine)) {
                    let r = r.map_err(|e| jit_harness::error::one_line(&e));
                    println!("=== {fault:?} {file} {c} {r:?} {:?}\n{}", start.elapsed(), String::from_utf8(out).unwrap());
                    if c == "reduce" && r.is_ok() { reduced += 1; }
                } else { break; }
            }
        }
    }
    println!("{done} done");
}
