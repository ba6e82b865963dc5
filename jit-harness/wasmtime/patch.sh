#!/usr/bin/env bash
# Makes `cranelift-codegen/` beside this script: cargo's own download of cranelift-codegen, of the version that the
# patch is for, with the patch applied. Does nothing if that is there already.
set -euo pipefail
version=0.135.8
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
patch=$here/cranelift-codegen.patch
copy=$here/cranelift-codegen
stamp="$version $(sha256sum <"$patch" | cut -d' ' -f1)"

fail() {
    echo "error: $1" >&2
    exit 1
}

[[ -f $copy/.made-of && $(<"$copy/.made-of") == "$stamp" ]] && exit 0
# The main workspace uses the same version unpatched; asking for its packages downloads them.
manifest=$(cargo metadata --locked --format-version 1 --manifest-path "$here/../../Cargo.toml" |
    grep -oE '"manifest_path":"[^"]*/cranelift-codegen-[0-9][^"/]*/Cargo\.toml"' | cut -d'"' -f4 | sort -u) ||
    fail "the main workspace does not use cranelift-codegen"
[[ $manifest == */cranelift-codegen-$version/Cargo.toml ]] ||
    fail "the patch is for cranelift-codegen $version, the main workspace uses $(basename "$(dirname "$manifest")")"
rm -rf "$copy"
cp -R "$(dirname "$manifest")" "$copy"
chmod -R u+w "$copy"
# A registry download is no git tree; `git apply` would skip files of an ignored folder inside one.
patch --directory "$copy" --strip 1 --forward --fuzz 0 --quiet <"$patch" >/dev/null ||
    fail "cranelift-codegen.patch does not apply to cranelift-codegen $version"
echo "$stamp" >"$copy/.made-of"
