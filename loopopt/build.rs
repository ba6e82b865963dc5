//! Hashes the sources, for `Options::fingerprint`: with other passes the code is other code, whatever the version's number is.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Result;
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=src");
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort_unstable();
    let mut hasher = DefaultHasher::new();
    for file in files {
        // The same on machines on which lines end in another way.
        fs::read_to_string(file)?.lines().for_each(|line| line.hash(&mut hasher));
    }
    println!("cargo::rustc-env=LOOPOPT_SOURCES={:016x}", hasher.finish());
    Ok(())
}
