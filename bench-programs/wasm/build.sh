#!/usr/bin/env bash
# Builds all WebAssembly programs and the list of them, after installing what that needs. Arguments are those of build.py.
set -euo pipefail
cd "$(dirname "$0")"
tools=${CARGO_TARGET_DIR:-../../target}/wasm-programs
assemblyscript=0.27.37
wasmtime=48.0.0

missing=()
while read -r package check; do
    $check </dev/null >/dev/null 2>&1 || missing+=("$package")
done <<'END'
clang-19 clang-19 --version
lld-19 wasm-ld-19 --version
llvm-19 llc-19 --version
gcc gcc --version
libc6-dev dpkg -s libc6-dev
python3-venv python3 -m ensurepip --version
nodejs node --version
npm npm --version
END
if [ ${#missing[@]} -gt 0 ]; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
fi

mkdir -p "$tools"
[ -x "$tools/python/bin/python" ] || python3 -m venv "$tools/python"
"$tools/python/bin/pip" install --quiet --disable-pip-version-check "wasmtime==$wasmtime"
[ "$("$tools/node_modules/.bin/asc" --version 2>/dev/null)" = "Version $assemblyscript" ] ||
    npm install --silent --no-save --prefix "$tools" "assemblyscript@$assemblyscript"
"$tools/python/bin/python" build.py --tools "$tools" "$@"
