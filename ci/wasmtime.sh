#!/usr/bin/env bash
# loopopt inside Wasmtime: builds the patched Cranelift, the crate for embedders and the harness, and tests all programs in all modes.
set -euo pipefail
cd jit-harness/wasmtime
./patch.sh
cargo fmt --all --check
# Build scripts and procedural macros are those of the release build.
time cargo clippy --release --workspace --all-targets --locked -- -D warnings
time cargo test --release --workspace --locked
time cargo build --release --workspace --locked
