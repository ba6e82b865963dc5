"""What LLVM makes of the simple builds of the C programs before Wasmtime sees them: what loopopt can be compared with.

    python3 peers.py ../../jit-harness/wasmtime/target/release/loopopt-wasmtime [PROGRAM ...]

Each figure is a time of the `test` call in an unchanged Wasmtime with guard pages, divided by that of the simple build (level
o0), but for the first, which is the simple build with loopopt. `build.sh` installs the compilers.

    loop passes    LLVM's own loop passes, and those that clean up between them: rotation, invariant code motion,
                   unswitching, induction variables, idioms, deletion, unrolling, GVN, strength reduction
    -O2, no calls inlined
                   all of clang -O2 but inlining and vectors: no pass over loops can gain what inlining does
    -O2, each function alone
                   the same, without what one function tells of another: arguments that are the same in all calls, static
                   arrays that no pointer points to. WebAssembly says neither to a compiler of one function
"""

import argparse
import json
import math
import pathlib
import tempfile
import tomllib

from compilers import CLANG, command, compile_simply, compile_with_clang, link

HERE = pathlib.Path(__file__).parent
CLEAN = "instcombine<no-verify-fixpoint>"
LOOP_PASSES = [
    "early-cse<memssa>",
    "loop-mssa(loop-rotate<header-duplication>,licm,simple-loop-unswitch<nontrivial>)",
    *("simplifycfg", CLEAN),
    "loop(loop-idiom,indvars,loop-deletion,loop-unroll-full)",
    *("gvn", "loop-mssa(licm)", CLEAN),
    *("loop-unroll<O2>", CLEAN, "loop-mssa(licm)", "sink", "simplifycfg"),
]
NO_INLINING = [*CLANG["o2"], "-fno-inline"]
ALONE = [*NO_INLINING, "-Dstatic=static __attribute__((used))"]


def compile_with_loop_passes(source, out):
    """An object file of the simple front end and LLVM's loop passes."""
    compile_simply("wasm32", source, out, LOOP_PASSES, ["-O2"])


def compile_without_inlining(source, out):
    """An object file of clang that inlines nothing."""
    compile_with_clang("wasm32", NO_INLINING, source, out)


def compile_alone(source, out):
    """An object file of clang that takes each function and each array for one that others may use."""
    compile_with_clang("wasm32", ALONE, source, out)


KINDS = {
    "loop passes": compile_with_loop_passes,
    "-O2, no calls inlined": compile_without_inlining,
    "-O2, each function alone": compile_alone,
}


def built(source, compile_one, scratch):
    """A module that a compiler makes of a program."""
    objects = []
    for part in (source, HERE / "c/library.c"):
        objects.append(scratch / f"{part.stem}.o")
        compile_one(part, objects[-1])
    link(objects, scratch / "module.wasm")
    return scratch / "module.wasm"


def times(binary, path, module, scratch):
    """Nanoseconds of the call, without and with loopopt."""
    figures, test = scratch / "figures.json", module["test"]
    call = ["--invoke", module["invoke"], test["argument"], "--seconds", "0.2", "--json", figures]
    command(binary, "bench", path, *call)
    record = json.loads(figures.read_text())["records"][0]
    if record["outcome"] != f"returned {test['result']}":
        raise SystemExit(f"{path}: {record['outcome']}, not {test['result']}")
    return record["ns"]


def compare(binary, module):
    """The figures of a program."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        simple, with_loopopt = times(binary, HERE / module["file"], module, scratch)
        row = {"loopopt": with_loopopt / simple}
        for kind, compile_one in KINDS.items():
            path = built(HERE / module["source"], compile_one, scratch)
            row[kind] = times(binary, path, module, scratch)[0] / simple
        return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=pathlib.Path, help="loopopt-wasmtime")
    parser.add_argument("programs", nargs="*", help="programs to compare; all if none")
    options = parser.parse_args()
    rows = []
    print(f"{'program':24}{'loopopt':>12}" + "".join(f"{kind:>26}" for kind in KINDS))
    for module in tomllib.loads((HERE / "programs.toml").read_text())["module"]:
        if module["from"] != "c" or not module["name"].endswith("-o0") or "result" not in module["test"]:
            continue
        if not options.programs or module["program"] in options.programs:
            row = compare(options.binary.resolve(), module)
            rows.append(list(row.values()))
            line(module["program"], rows[-1])
    line("geometric mean", [math.exp(sum(map(math.log, column)) / len(rows)) for column in zip(*rows)])


def line(name, figures):
    """Prints the figures of a program."""
    print(f"{name:24}{figures[0]:12.3f}" + "".join(f"{figure:26.3f}" for figure in figures[1:]), flush=True)


if __name__ == "__main__":
    main()
