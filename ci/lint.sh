#!/usr/bin/env bash
# Formatting, clippy and docs, all without warnings.
set -euo pipefail
cargo fmt --all --check
cargo clippy --workspace --all-targets --all-features --locked -- -D warnings
# With the examples, the features of the dependencies are those of the line above, which has checked them.
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --locked --lib --examples
