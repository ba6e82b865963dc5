#!/usr/bin/env bash
# Builds all WebAssembly programs and the list of them, after installing what that needs. Arguments are those of build.py.
set -euo pipefail
cd "$(dirname "$0")"
tools=${CARGO_TARGET_DIR:-../../target}/wasm-programs
assemblyscript=0.28.20
wasmtime=48.0.0

missing=()
for package in clang-19 lld-19 llvm-19 gcc libc6-dev python3-venv nodejs npm; do
    command=$package
    case $package in
        lld-19) command=wasm-ld-19 ;;
        llvm-19) command=llc-19 ;;
        libc6-dev | python3-venv) command=python3 ;;
        nodejs) command=node ;;
    esac
    command -v "$command" >/dev/null || missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
fi

mkdir -p "$tools"
[ -x "$tools/python/bin/python" ] || python3 -m venv "$tools/python"
"$tools/python/bin/pip" install --quiet --disable-pip-version-check "wasmtime==$wasmtime"
[ -x "$tools/node_modules/.bin/asc" ] ||
    npm install --silent --no-save --prefix "$tools" "assemblyscript@$assemblyscript"
"$tools/python/bin/python" build.py --tools "$tools" "$@"
