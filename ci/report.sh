#!/usr/bin/env bash
# The report of all samples, the table of its figures, docs/results.md, and the picture of its first page, docs/report.png, all of one run:
# `ci/report.sh [folder, target/report if not given]`, in six minutes. With `--no-time` before the folder: the pages alone, without figures, in seconds; their
# pictures are beside them, and the filter and a link are tried. Needs chromium for pictures (`ci/chromium.sh`).
set -euo pipefail
cd "$(dirname "$0")/.."
how=(--page docs/results.md)
harness=(cargo run --quiet --release --locked --package jit-harness --)
if [[ ${1:-} == --no-time ]]; then
    how=(--no-time)
    harness=("$(bash ci/build.sh)/jit-harness")
    shift
fi
folder=${1:-target/report}
picture=docs/report.png
[[ ${how[0]} != --no-time ]] || picture=$folder/index.png
"${harness[@]}" report "${how[@]}" --out "$folder"
size=$(cat "$folder"/*.html "$folder"/*.css | wc -c)
echo "$(find "$folder" -name '*.html' | wc -l) pages, $size bytes"
[[ $size -lt 3000000 ]] || { echo "that is more than 3 MB"; exit 1; }
browser=$(command -v chromium || command -v chromium-browser || true)
[[ -n $browser ]] || { echo "no picture was made: there is no chromium; ci/chromium.sh installs it"; exit 0; }
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
# Root has no sandbox.
flags=(--headless --disable-gpu --hide-scrollbars --no-first-run --disable-background-networking --force-color-profile=srgb --user-data-dir="$profile")
[[ $(id -u) != 0 ]] || flags+=(--no-sandbox)
# Makes a picture of a page, given with what is selected in it, in a window of this height.
shoot() {
    timeout 120 "$browser" "${flags[@]}" --window-size="1400,$3" --screenshot="$(realpath "$1")" "file://$(realpath "$folder")/$2" >/dev/null 2>&1
    echo "$1: $(stat --format=%s "$1") bytes"
}
shoot "$picture" index.html 1500
size=$(stat --format=%s "$picture")
# One that is committed stays small.
[[ $picture != docs/* || $size -lt 300000 ]] || { echo "that is more than 300 kB"; exit 1; }
[[ ${how[0]} == --no-time ]] || exit 0
# What is selected looks different: the programs with one tag, and a block that a flow graph leads to. The whole page is in the window: a picture of a page that
# has scrolled is empty.
program=$folder/sum-checked
shoot "$folder/filtered.png" 'index.html#call' 1500
shoot "$program.png" sum-checked.html 9000
shoot "$program-block.png" 'sum-checked.html#f0b-block0' 9000
for pair in "$picture $folder/filtered.png" "$program.png $program-block.png"; do
    read -r before after <<<"$pair"
    ! cmp --silent "$before" "$after" || { echo "$after does not differ from $before"; exit 1; }
done
