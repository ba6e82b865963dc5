#!/usr/bin/env bash
# The commands of the harness, with as little timing as there is: the tests put every sample loop through the oracle. In the profile of the tests:
# nothing is built twice.
set -euo pipefail
harness=$(bash ci/build.sh)/jit-harness
"$harness" bench --quick --filter call
"$harness" list >/dev/null
"$harness" explain sum-checked
"$harness" show sum --asm
"$harness" run loopopt/tests/clif/rotate/fires-nest.clif
bash ci/report.sh --no-time
