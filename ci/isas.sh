#!/usr/bin/env bash
# The passes on every target that Cranelift has, other pointer widths and byte orders among them.
set -euo pipefail
cargo test --locked --package loopopt --test bad_input --features cranelift-codegen/all-arch -- --nocapture
