#!/usr/bin/env bash
# What `RUSTDOC=ci/rustdoc.sh cargo test --doc` runs for each crate: makes its pages, without warnings, in the place of running its examples. `cargo doc`
# does the same, and checks all dependencies for it, which takes four minutes of a core; this has what the tests were built from.
set -euo pipefail
# Asked for its version, or for its configuration.
[[ " $* " == *" --test "* ]] || exec rustdoc "$@"
args=()
while [[ $# -gt 0 ]]; do
    case $1 in
        --test) ;;
        --test-run-directory) shift ;;
        *) args+=("$1") ;;
    esac
    shift
done
exec rustdoc "${args[@]}" --deny warnings --output "${CARGO_TARGET_DIR:-target}/doc"
