#!/usr/bin/env bash
# All crates could be published. Unpacks the library's package, which `cranelift-versions.sh` builds by itself.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo package --workspace --exclude measure --locked --allow-dirty --no-verify
# Asks the registry, which `package` does not.
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! cargo publish --workspace --dry-run --locked --allow-dirty --no-verify 2>"$log"; then
    cat "$log" >&2
    grep -qE -f ci/unreachable.txt "$log" || exit 1
    echo "package.sh: the registry cannot be asked whether these packages could be published" >&2
fi
crate=$(ls -t target/package/loopopt-*.crate | head -1)
copy=target/package/unpacked
rm -rf "$copy"
mkdir -p "$copy"
tar --extract --gzip --strip-components 1 --file "$crate" --directory "$copy"
