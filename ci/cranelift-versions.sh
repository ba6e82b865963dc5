#!/usr/bin/env bash
# The library builds with the lowest and with the highest patch release of its Cranelift line, in a copy that leaves Cargo.lock alone.
# `ci/cranelift-versions.sh [--test] [VERSION…]` takes others; with --test, the tests of the ways in run as well.
set -euo pipefail
cd "$(dirname "$0")/.."
command=(check)
if [[ ${1:-} == --test ]]; then
    command=(test --test embedding --test options)
    shift
fi
versions=("$@")
[[ $# -gt 0 ]] || versions=("=0.135.0" "0.135")
copy=target/cranelift-versions
mkdir -p "$copy"
for version in "${versions[@]}"; do
    rm -rf "$copy/loopopt" "$copy/Cargo.lock"
    cp -R loopopt README.md LICENSE "$copy"
    # The patch releases of one number ask for each other by it, so all are set at once.
    sed "s/\"0\.135\"/\"$version\"/; /^members = /s/=.*/= [\"loopopt\"]/; /^bench-programs = /d" Cargo.toml >"$copy/Cargo.toml"
    (cd "$copy" && cargo "${command[@]}" --quiet --package loopopt --features object)
    used=$(sed -n '/^name = "cranelift-codegen"$/{n;s/.*"\(.*\)"/\1/p}' "$copy/Cargo.lock")
    [[ $version != =* || $version == "=$used" ]] || { echo "Cranelift $used was used, not $version"; exit 1; }
    echo "Cranelift $used: ${command[0]} passed"
done
