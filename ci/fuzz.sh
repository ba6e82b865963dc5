#!/usr/bin/env bash
# Every fuzz target for some seconds: `ci/fuzz.sh [seconds, 30 if not given] [targets…]`. A failing input stays in
# loopopt/fuzz/artifacts/.
set -euo pipefail
seconds=${1:-30}
shift || true
command -v cargo-fuzz >/dev/null || cargo install cargo-fuzz --locked
# The sanitizer coverage that libFuzzer needs is not stable in rustc.
export RUSTC_BOOTSTRAP=1
cd loopopt
targets=("$@")
[[ $# -gt 0 ]] || mapfile -t targets < <(cargo fuzz list)
for target in "${targets[@]}"; do
    # No address sanitizer: the oracle has signal handlers, stacks and mappings of its own, and there is no unsafe code in
    # what is tested. `fork` is off, so that a crash fails the script.
    cargo fuzz run --sanitizer none "$target" -- -max_total_time="$seconds" -max_len=4096 -handle_segv=0 -handle_bus=0 \
        -handle_ill=0 -handle_fpe=0 -handle_alrm=0
done
