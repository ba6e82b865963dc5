"""LLVM's compilers, and how they are called for C programs."""

import subprocess

C = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"]
O2 = ["-O2", "-mbulk-memory", "-mnontrapping-fptoint"]
CLANG = {"o1": ["-O1"], "o2": [*O2, "-fno-vectorize", "-fno-slp-vectorize"], "o2-simd": [*O2, "-msimd128"]}


def command(*words):
    """Runs a command, and gives what it prints."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}\n{done.stdout}{done.stderr}")
    return done.stdout


def compile_simply(target, source, out, passes=(), llc=("-O1", "-disable-lsr", "-disable-machine-licm")):
    """An object file as a simple compiler would make it, with more passes of LLVM if there are any."""
    plain, values = out.with_suffix(".plain.ll"), out.with_suffix(".values.ll")
    front_end = ["-O1", "-Xclang", "-disable-llvm-passes", "-S", "-emit-llvm"]
    command("clang-19", f"--target={target}", *C, *front_end, source, "-o", plain)
    passes = ",".join(["mem2reg", "instcombine<no-verify-fixpoint>", "simplifycfg", *passes])
    command("opt-19", f"-passes={passes}", "-S", plain, "-o", values)
    command("llc-19", *llc, "-filetype=obj", values, "-o", out)


def compile_with_clang(target, flags, source, out):
    """An object file of clang."""
    plain = ["-fno-builtin"] if source.stem == "library" else []
    command("clang-19", f"--target={target}", *C, *flags, *plain, "-c", source, "-o", out)


def link(objects, path, flags=()):
    """A module of object files."""
    always = ["--no-entry", "--stack-first", "-z", "stack-size=65536", "--strip-debug", "--gc-sections"]
    command("wasm-ld-19", *flags, *always, *objects, "-o", path)
    path.chmod(0o644)
