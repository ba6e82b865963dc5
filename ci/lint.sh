#!/usr/bin/env bash
# Formatting, clippy and docs, all without warnings. Where clippy already is the compiler of our own crates, as in `.ci/run`, building them was enough.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo fmt --all --check
[[ ${RUSTC_WORKSPACE_WRAPPER:-} == clippy-driver ]] || cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
RUSTDOC=$PWD/ci/rustdoc.sh cargo test --workspace --locked --doc
