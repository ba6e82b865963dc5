#!/usr/bin/env bash
# Programs of csmith, which knows nothing of loopopt, in Wasmtime with and without it: `ci/csmith.sh [programs, 100 if not given] [first seed]`. Built
# at several levels, run in several modes, half with claims asserted. Those that differ stay in target/csmith/. Needs csmith, clang and lld.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-100}
first=${2:-1}
for tool in csmith clang wasm-ld; do
    command -v "$tool" >/dev/null || { echo "$tool is missing: install csmith, libcsmith-dev, clang and lld"; exit 2; }
done
harness=jit-harness/wasmtime/target/release/loopopt-wasmtime
[[ -x $harness ]] || (cd jit-harness/wasmtime && ./patch.sh && cargo build --release --locked)
folder=target/csmith
mkdir -p "$folder"
levels=("-O0" "-O1 -fno-inline" "-O1" "-O2 -fno-unroll-loops -fno-vectorize")
how=("--assert-claims" "--assert-claims --stress" "--effort full --verify" "")
shape=(--no-bitfields --no-packed-struct --concise --max-funcs 6 --max-block-depth 4 --max-block-size 5 --max-array-dim 3
    --max-array-len-per-dim 12)
read -ra modes <<<"--mode guard --mode explicit --mode explicit+epochs --mode fuel"
compared=0 late=0 differ=0
for ((seed = first; seed < first + count; seed++)); do
    source=$folder/$seed.c module=$folder/$seed.wasm output=$folder/$seed.txt
    # It writes what it found out of the machine into the folder that it is in.
    (cd "$folder" && csmith --seed "$seed" "${shape[@]}" --output "$seed.c")
    read -ra level <<<"${levels[seed % 4]}"
    clang --target=wasm32 -w -nostdlib -ffreestanding -Ici/csmith -idirafter /usr/include "${level[@]}" "$source" -Wl,--no-entry -o "$module"
    read -ra options <<<"${how[seed / 4 % 4]}"
    [[ ${options[*]} != *--stress ]] || options+=("$seed")
    status=0
    timeout 60 "$harness" run "$module" "${modes[@]}" "${options[@]}" --invoke run >"$output" 2>&1 || status=$?
    # 2 is a trap in both arms, or something else.
    if [[ $status == 0 ]] || { [[ $status == 2 ]] && grep -q trapped "$output"; }; then
        compared=$((compared + 1))
    elif [[ $status == 124 ]]; then
        late=$((late + 1))
    else
        differ=$((differ + 1))
        echo "seed $seed (${level[*]}) ${options[*]}: exit code $status, $output"
        continue
    fi
    rm -f "$source" "$module" "$output"
done
echo "$compared programs compared, $late took too long, $differ differ"
[[ $differ == 0 ]]
