#!/usr/bin/env bash
# Formatting, clippy and docs, all without warnings.
set -euo pipefail
cargo fmt --all --check
cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --locked
