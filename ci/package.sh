#!/usr/bin/env bash
# The library can be packaged, and what is in the package compiles by itself.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo package --package loopopt --locked --allow-dirty --no-verify
crate=$(ls -t target/package/loopopt-*.crate | head -1)
copy=target/package/unpacked
rm -rf "$copy"
mkdir -p "$copy"
tar --extract --gzip --strip-components 1 --file "$crate" --directory "$copy"
# A workspace of its own, not a part of the one around. `cranelift-versions.sh` needs the same dependencies.
printf '\n[workspace]\n' >>"$copy/Cargo.toml"
CARGO_TARGET_DIR=$PWD/target/cranelift-versions/target cargo check --quiet --locked --manifest-path "$copy/Cargo.toml"
