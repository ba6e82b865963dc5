#!/usr/bin/env bash
# The test command of the README.
set -euo pipefail
cargo test --workspace --locked
