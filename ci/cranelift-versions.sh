#!/usr/bin/env bash
# What `package.sh` has packed builds with the highest patch release of the library's Cranelift line, in a copy that leaves Cargo.lock alone. That is
# mostly the one in Cargo.lock, with which all else is built; `adopters.sh` has the lowest.
# `ci/cranelift-versions.sh [--test] [VERSION…]` takes others; with --test, the tests of the ways in run as well, of the library as it is here.
set -euo pipefail
cd "$(dirname "$0")/.."
command=(check)
source=target/package/unpacked
if [[ ${1:-} == --test ]]; then
    command=(test --test embedding --test options)
    source=loopopt
    shift
fi
[[ -d $source ]] || bash ci/package.sh
versions=("$@")
[[ $# -gt 0 ]] || versions=("0.135")
copy=target/cranelift-versions
mkdir -p "$copy"
version_in() {
    sed -n '/^name = "cranelift-codegen"$/{n;s/.*"\(.*\)"/\1/p}' "$1"
}
for version in "${versions[@]}"; do
    rm -rf "$copy/loopopt" "$copy/Cargo.lock"
    cp -R "$source" "$copy/loopopt"
    cp README.md LICENSE "$copy"
    sed '/^members = /s/=.*/= ["loopopt"]/; /^bench-programs = /d' Cargo.toml >"$copy/Cargo.toml"
    # The patch releases of one number ask for each other by it, so all are set at once.
    sed -i "s/\"0\.135\"/\"$version\"/" "$copy/Cargo.toml" "$copy/loopopt/Cargo.toml"
    (cd "$copy" && cargo generate-lockfile --quiet)
    used=$(version_in "$copy/Cargo.lock")
    [[ $version != =* || $version == "=$used" ]] || { echo "Cranelift $used was used, not $version"; exit 1; }
    if [[ $# == 0 && $used == "$(version_in Cargo.lock)" ]]; then
        echo "Cranelift $used: it is the one in Cargo.lock"
        continue
    fi
    (cd "$copy" && cargo "${command[@]}" --quiet --package loopopt --features object)
    echo "Cranelift $used: ${command[0]} passed"
done
