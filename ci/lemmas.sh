#!/usr/bin/env bash
# What the proofs rest on is true: the engines are held to runs of small loops, more of them than in the tests, and a solver shows
# their rules at the widths of types. Installs the solver from PyPI if there is none.
set -euo pipefail
cd "$(dirname "$0")/.."
lemmas=$(bash ci/build.sh)/examples/lemmas
"$lemmas" "${LOOPOPT_LEMMAS:-4800}" 0 12

z3=$(command -v z3 || true)
if [ -z "$z3" ]; then
    venv=target/lemmas
    [ -x "$venv/bin/z3" ] || { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet z3-solver==5.4.0.0; }
    z3=$venv/bin/z3
fi
start=$SECONDS
# Each formula is named with its width and what the solver has to say of it, `unsat` unless it is wrong on purpose.
"$lemmas" formulas | "$z3" -t:120000 -in | awk -F'|' '
    NF == 3 { name = $1; width = $2; expected = $3; next }
    { answers++; widths[width]++; if (expected == "sat") wrong++ }
    $0 != expected { print name " (" width " bits): " $0 ", not " expected; failed++ }
    END {
        line = answers + 0 " formulas, " wrong + 0 " of them wrong on purpose;"
        for (width in widths) line = line " " widths[width] " of " width " bits"
        print line
        exit (failed > 0 || answers < 400 || wrong < 3)
    }'
echo "shown in $((SECONDS - start)) s by $("$z3" --version)"
