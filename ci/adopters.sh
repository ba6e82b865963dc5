#!/usr/bin/env bash
# Other people's compilers with loopopt in them: `ci/adopters.sh [name…]`, all of ci/adopters/ if none is named. Each is got from the registry
# and is there twice: as it is but for Cranelift's version and opt_level (port.patch), and with loopopt as well (loopopt.patch). Its own tests run with
# loopopt in it, then programs in both. The compilers are built without optimization: they make the same code, and building them is what takes time.
# ci/adopters/NAME/ is the driver; all are in one workspace in target/adopters/, so that Cranelift is built once. It is the lowest patch release of its
# line, and loopopt is the package that would be published: what nothing else builds.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
folder=$root/target/adopters
export CARGO_TARGET_DIR=$folder/target
# Other people's code has its own lints.
unset RUSTC_WORKSPACE_WRAPPER

fail() {
    echo "error: $1" >&2
    exit 1
}

# Runs cargo in the workspace, quietly if it succeeds. 3 if the registry cannot be reached.
online() {
    local log=$folder/cargo.log
    cargo "$@" 2>"$log" && return
    grep -qE -f "$root/ci/unreachable.txt" "$log" && return 3
    cat "$log" >&2
    return 1
}

# Ends the script with a word if there is no registry, and with an error if something else is wrong.
reached() {
    [[ $1 != 3 ]] || { echo "skipped: the registry cannot be reached"; exit 0; }
    [[ $1 == 0 ]] || fail "$2"
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

# Unpacks loopopt's package. Files in packages are all of one age, by which cargo could not tell what has changed.
pack() {
    cargo package --quiet --package loopopt --locked --allow-dirty --no-verify
    rm -rf "$folder/loopopt"
    mkdir "$folder/loopopt"
    tar --extract --gzip --touch --strip-components 1 --file "$CARGO_TARGET_DIR"/package/loopopt-*.crate --directory "$folder/loopopt"
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

# Makes the workspace, of those that are named. What it has of Cargo.lock is what ci/adopters/workspace.lock has for them.
workspace() {
    local name crate version unpacked status members=
    for name in "$@"; do
        # shellcheck source=/dev/null
        source "ci/adopters/$name/adopter.sh"
        members+="\"$name\", \"$name/without\", \"$name/with\", "
        status=0
        unpacked=$(source_of "$crate" "$version") || status=$?
        reached $status "cargo cannot get $crate $version"
        assemble "$root/ci/adopters/$name" "$folder/$name" "$unpacked"
    done
    sed "s|^members = .*|members = [${members%, }]|" ci/adopters/workspace.toml >"$folder/Cargo.toml"
    cp ci/adopters/workspace.lock "$folder/Cargo.lock"
    # Those that are not named go out of it, and nothing else changes.
    status=0
    online update --workspace --manifest-path "$folder/Cargo.toml" || status=$?
    reached $status "cargo cannot read the workspace in $folder"
    [[ $# != $(all | wc -l) ]] || cmp --silent ci/adopters/workspace.lock "$folder/Cargo.lock" ||
        fail "ci/adopters/workspace.lock does not fit; put $folder/Cargo.lock in its place"
}

# The names of all adopters.
all() {
    (cd ci/adopters && dirname -- */adopter.sh)
}

# Builds the compilers, the drivers and the tests of all that are named, in one go: then they share what they need.
build() {
    local name crate version
    local -a packages=(--locked --ignore-rust-version --manifest-path "$folder/Cargo.toml") without=()
    for name in "$@"; do
        # shellcheck source=/dev/null
        source "ci/adopters/$name/adopter.sh"
        packages+=(--package "adopter-$name" --package "$crate-with")
        without+=(--package "$crate-without")
    done
    local status=0
    online build "${packages[@]}" "${without[@]}" || status=$?
    reached $status "cargo cannot build them"
    online test --no-run --message-format json "${packages[@]}" >"$folder/built.json" || fail "cargo cannot build their tests"
}

# Runs the tests of the crate with loopopt in it, where cargo would run them. Tests in documents are left out.
own_tests() {
    local log=$folder/$1/tests.log test
    : >"$log"
    while read -r test; do
        (cd "$folder/$1/with" && "$test") >>"$log" 2>&1 || { cat "$log"; fail "its own tests fail"; }
    done < <(grep "/$1/with#" "$folder/built.json" | grep '"test":true' | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
    grep -q '^test result: ' "$log" || fail "cargo has built no tests of $1"
    awk '/^test result: / { passed += $4 } END { print passed ? passed " of its own tests pass with loopopt" : "it has no tests of its own" }' "$log"
}

adopter() {
    local crate version
    # shellcheck source=/dev/null
    source "ci/adopters/$1/adopter.sh"
    echo "== $crate $version"
    echo "attached with $(changed "ci/adopters/$1/loopopt.patch")"
    own_tests "$1"
    "$CARGO_TARGET_DIR/debug/adopter-$1"
}

mkdir -p "$folder"
mapfile -t names < <(if [[ $# == 0 ]]; then all; else printf '%s\n' "$@"; fi)
for name in "${names[@]}"; do
    [[ -f ci/adopters/$name/adopter.sh ]] || fail "no adopter $name; there are: $(all | xargs)"
done
pack
workspace "${names[@]}"
build "${names[@]}"
for name in "${names[@]}"; do adopter "$name"; done
