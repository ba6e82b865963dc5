#!/usr/bin/env bash
# Other people's compilers with loopopt in them: `ci/adopters.sh [name…]`, all of ci/adopters/ if none is named. Each is got from the registry and is
# there twice: as it is but for Cranelift's version and opt_level (port.patch), and with loopopt as well (loopopt.patch). Its own tests run with
# loopopt in it, then programs in both. ci/adopters/NAME/ is the driver; all is built in target/adopters/.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
folder=$root/target/adopters
export CARGO_TARGET_DIR=$folder/target

fail() {
    echo "error: $1" >&2
    exit 1
}

# Runs cargo, quietly if it succeeds. 3 if the registry cannot be reached.
online() {
    local log=$folder/cargo.log
    cargo "$@" 2>"$log" && return
    grep -qE 'Could not resolve|Could not connect|Connection|timed out|offline|403|50[0-9]' "$log" && return 3
    cat "$log" >&2
    return 1
}

# Prints the folder in which cargo unpacks this version of a crate.
source_of() {
    local crate=$1 version=$2 fetch=$folder/fetch/$1
    mkdir -p "$fetch/src"
    : >"$fetch/src/lib.rs"
    printf '%s\n' '[package]' 'name = "fetch"' '[workspace]' '[dependencies]' "$crate = \"=$version\"" >"$fetch/Cargo.toml"
    online fetch --manifest-path "$fetch/Cargo.toml" || return
    compgen -G "${CARGO_HOME:-$HOME/.cargo}/registry/src/*/$crate-$version" | head -1
}

# How many lines of Rust a patch adds and takes away.
changed() {
    awk '/^\+\+\+ / { rust = /\.rs/; next } /^--- / { next } rust && /^\+/ { more++ } rust && /^-/ { less++ }
        END { printf "%d lines of Rust more, %d less\n", more, less }' "$1"
}

apply() {
    patch --directory "$1" --strip 1 --forward --fuzz 0 --quiet <"$2" || fail "${2#"$root/"} does not apply"
}

# Makes the two copies beside a copy of the driver.
assemble() {
    local here=$1 work=$2 unpacked=$3 arm
    rm -rf "$work"
    cp -R "$here" "$work"
    for arm in without with; do
        cp -R "$unpacked" "$work/$arm"
        chmod -R u+w "$work/$arm"
        # Patches have the line ends of this repository, whatever the crate has.
        find "$work/$arm" -name '*.rs' -exec sed -i 's/\r$//' {} +
        [[ ! -f $here/port.patch ]] || apply "$work/$arm" "$here/port.patch"
        # One workspace has both, so that they need two names. The library keeps its own.
        sed -i "0,/^name = \"\(.*\)\"/s//name = \"\1-$arm\"/" "$work/$arm/Cargo.toml"
    done
    apply "$work/with" "$here/loopopt.patch"
}

adopter() {
    local here=$root/ci/adopters/$1 work=$folder/$1 crate version unpacked status=0
    local -a tests=() flags=()
    # shellcheck source=/dev/null
    source "$here/adopter.sh"
    echo "== $crate $version"
    unpacked=$(source_of "$crate" "$version") || status=$?
    [[ $status != 3 ]] || { echo "skipped: the registry cannot be reached"; return; }
    [[ $status == 0 ]] || fail "cargo cannot get $crate $version"
    assemble "$here" "$work" "$unpacked"
    online fetch --locked --manifest-path "$work/Cargo.toml" || status=$?
    [[ $status != 3 ]] || { echo "skipped: the registry cannot be reached"; return; }
    [[ $status == 0 ]] || fail "Cargo.lock does not fit; remove it from ${here#"$root/"}, run this again and commit $work/Cargo.lock"
    echo "attached with $(changed "$here/loopopt.patch")"
    cargo test --quiet --release --locked "${flags[@]}" --manifest-path "$work/with/Cargo.toml" "${tests[@]}" >"$work/tests.log" 2>&1 ||
        { cat "$work/tests.log"; fail "its own tests fail"; }
    awk '/^test result: / { passed += $4 } END { print passed ? passed " of its own tests pass with loopopt" : "it has no tests of its own" }' "$work/tests.log"
    cargo run --quiet --release --locked "${flags[@]}" --manifest-path "$work/Cargo.toml"
}

mkdir -p "$folder"
names=("$@")
[[ $# != 0 ]] || for file in ci/adopters/*/adopter.sh; do names+=("$(basename "$(dirname "$file")")"); done
for name in "${names[@]}"; do
    [[ -f ci/adopters/$name/adopter.sh ]] || fail "no adopter $name; there are: $(cd ci/adopters && dirname -- */adopter.sh | xargs)"
    adopter "$name"
done
