#!/usr/bin/env bash
# Builds what the tests need, which is what the other scripts run: `--package jit-harness` alone has other features, and would build Cranelift once more.
# Prints the folder of the programs.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo test --workspace --locked --no-run --quiet >&2
echo "${CARGO_TARGET_DIR:-target}/debug"
