#!/usr/bin/env bash
# Files that documents name in backquotes exist, and so do the harness's commands. docs/upstream.md names files of Cranelift.
set -euo pipefail
failed=0
for doc in README.md ARCHITECTURE.md CONTRIBUTING.md CHANGELOG.md docs/[!u]*.md jit-harness/README.md jit-harness/wasmtime/{README,PROPOSAL,support/README}.md bench-programs/README.md bench-programs/wasm/README.md ci/README.md; do
    folder=$(dirname "$doc")
    while read -r path; do
        for base in . "$folder" loopopt loopopt/src loopopt/src/{pass,analysis,analysis/memory} loopopt/tests/clif jit-harness/wasmtime/support/src; do
            compgen -G "$base/$path" >/dev/null && continue 2
        done
        echo "$doc names $path, which does not exist"
        failed=1
    done < <(grep -oE '`[A-Za-z0-9_./*-]+\.(rs|md|sh|clif|toml)`|`[A-Za-z0-9_-]+/[A-Za-z0-9_/-]*/`' "$doc" | tr -d '`' | sort -u)
done
known=$("$(bash ci/build.sh)/jit-harness" --help)
for command in $(grep -ohE '(jit-harness|jit-harness --) (bench|run|explain|show|list|[a-z]+)\b' README.md ARCHITECTURE.md |
    awk '{print $NF}' | sort -u); do
    grep -qE "^  $command " <<<"$known" || { echo "no command jit-harness $command"; failed=1; }
done
# The figures of the README are those of docs/results.md.
rows=$(sed -n '/^| sample loop | Cranelift /,/^$/p' README.md | tr -d '*' | grep -E '^\| [a-z0-9-]+ \|')
while read -r row; do
    grep -qF -- "$row" docs/results.md || { echo "README.md has figures that docs/results.md has not: $row"; failed=1; }
done <<<"$rows"
means=$(sed -n 's/^| \*\*all [0-9]*\*\*, geometric mean | | | \*\*\([0-9.]*\)\*\* | \(.*\) |$/geometric mean \1, \2/p' README.md | head -1)
grep -qF -- "${means:-no mean}" docs/results.md || { echo "README.md has means that docs/results.md has not: $means"; failed=1; }
exit "$failed"
