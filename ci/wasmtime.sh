#!/usr/bin/env bash
# loopopt inside Wasmtime: builds the patched Cranelift and the harness, and tests all programs in all modes.
set -euo pipefail
cd jit-harness/wasmtime
./patch.sh
cargo fmt --check
# Build scripts and procedural macros are those of the release build.
cargo clippy --release --all-targets --locked -- -D warnings
cargo test --release --locked
cargo build --release --locked
