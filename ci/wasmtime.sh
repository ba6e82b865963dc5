#!/usr/bin/env bash
# loopopt inside Wasmtime: builds the patched Cranelift, the crate for embedders and the harness, lints them, and tests all programs in all modes.
set -euo pipefail
cd "$(dirname "$0")/../jit-harness/wasmtime"
./patch.sh
cargo fmt --all --check
# As in `.ci/run`, clippy is the compiler of our own crates.
CLIPPY_ARGS=-Dwarnings RUSTC_WORKSPACE_WRAPPER=clippy-driver cargo test --profile ci --workspace --locked
