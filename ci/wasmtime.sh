#!/usr/bin/env bash
# loopopt inside Wasmtime: builds the patched Cranelift, the crate for embedders and the harness, and tests all programs in all modes.
set -euo pipefail
cd "$(dirname "$0")/../jit-harness/wasmtime"
./patch.sh
cargo fmt --all --check
# Clippy is a compiler, too: what it builds is tested, and Wasmtime's many crates need not be checked besides. The arguments are as `cargo clippy` passes them.
export RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS='-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__'
# Programs run as fast as ever; it is Wasmtime that is not optimized as far.
export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=false
time cargo test --release --workspace --locked --no-run
time cargo test --release --workspace --locked
