#!/usr/bin/env bash
# The report of all samples, and the picture of its first page, docs/report.png: `ci/report.sh [folder, target/report if not given]`. With `--no-time` in
# front, the pages alone, without figures, in seconds, and the picture is beside them. Needs chromium for the picture (`ci/chromium.sh`).
set -euo pipefail
cd "$(dirname "$0")/.."
how=(--quick)
harness=(cargo run --quiet --release --locked --package jit-harness --)
if [[ ${1:-} == --no-time ]]; then
    how=(--no-time)
    harness=("$(bash ci/build.sh)/jit-harness")
    shift
fi
folder=${1:-target/report}
picture=docs/report.png
[[ ${how[0]} == --quick ]] || picture=$folder/index.png
"${harness[@]}" report "${how[@]}" --out "$folder"
size=$(cat "$folder"/*.html "$folder"/*.css | wc -c)
echo "$(find "$folder" -name '*.html' | wc -l) pages, $size bytes"
[[ $size -lt 3000000 ]] || { echo "that is more than 3 MB"; exit 1; }
browser=$(command -v chromium || command -v chromium-browser || true)
[[ -n $browser ]] || { echo "no picture was made: there is no chromium; ci/chromium.sh installs it"; exit 0; }
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
# Root has no sandbox.
flags=(--headless --disable-gpu --hide-scrollbars --no-first-run --disable-background-networking --force-color-profile=srgb --user-data-dir="$profile" --window-size=1400,1500)
[[ $(id -u) != 0 ]] || flags+=(--no-sandbox)
timeout 120 "$browser" "${flags[@]}" --screenshot="$(realpath "$picture")" "file://$(realpath "$folder")/index.html" >/dev/null 2>&1
size=$(stat --format=%s "$picture")
echo "$picture: $size bytes"
# One that is committed stays small.
[[ $picture != docs/* || $size -lt 300000 ]] || { echo "that is more than 300 kB"; exit 1; }
