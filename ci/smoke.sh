#!/usr/bin/env bash
# Every sample loop through the oracle and the harness, with as little timing as there is. In the profile of the tests: nothing is built twice.
set -euo pipefail
harness=$(bash ci/build.sh)/jit-harness
"$harness" bench --quick
"$harness" list >/dev/null
"$harness" explain sum-checked
"$harness" show sum --asm
"$harness" run loopopt/tests/clif/rotate/fires-nest.clif
bash ci/report.sh --no-time
