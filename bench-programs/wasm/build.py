"""Builds the programs, checks that all builds agree, and writes `programs.toml`.

The first lines of a source are comments. The first says what the program is; the others, in any order:

    test: 16            the argument for tests, 1 to 20 ms
    bench: 200          the argument for measurements, 100 to 300 ms
    long: 900           an argument that takes over a second; optional
    levels: o0 o2-simd  C: what to build it as; `o0 o1 o2` if absent
    features: gc        WAT: what it needs beyond WebAssembly 2.0
    trap: NAME          `run` ends with this trap
    restartable: no     each call needs a new instance
    endless: yes        `run` never returns; there are no arguments
"""

import argparse
import dataclasses
import pathlib
import tempfile
import time
import tomllib

import engine
from compilers import C, CLANG, command, compile_simply, compile_with_clang, link

HERE = pathlib.Path(__file__).parent
BUILT = HERE / "built"
COMMENTS = {".c": "//", ".ts": "//", ".wat": ";;"}
MARKS = ("<!-- programs -->", "<!-- end -->")
CASES = ("test", "bench", "long")
NATIVE = {
    "gcc": ["gcc", "-O2"],
    "clang": ["clang-19", "-O2"],
    "sanitized": ["gcc", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"],
}


@dataclasses.dataclass
class Program:
    """A source and what its first lines say."""

    source: pathlib.Path
    about: str
    header: dict[str, str]

    @property
    def name(self):
        return self.source.stem

    @property
    def origin(self):
        return self.source.parent.name

    def flag(self, key, default):
        return self.header.get(key, default) == "yes"

    def arguments(self):
        return {case: int(self.header[case]) for case in CASES if case in self.header}


@dataclasses.dataclass
class Module:
    """One build of a program."""

    program: Program
    variant: str

    @property
    def name(self):
        base = self.program.name.replace("_", "-")
        return base if self.program.origin == "wat" else f"{base}-{self.variant}"

    @property
    def path(self):
        return BUILT / f"{self.name}.wasm"

    @property
    def features(self):
        return self.program.header.get("features", "").split() + self.variant.split("-")[1:]


def read(source):
    """The program that a source's first lines describe."""
    mark = COMMENTS[source.suffix]
    lines = []
    for line in source.read_text().splitlines():
        if not line.startswith(mark):
            break
        lines.append(line.removeprefix(mark).strip())
    header = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    return Program(source, lines[0], header)


def programs():
    """All programs, in the order of the list."""
    c = [path for path in sorted(HERE.glob("c/*.c")) if path.stem not in ("native", "library")]
    others = [*sorted(HERE.glob("assemblyscript/*.ts")), *sorted(HERE.glob("wat/*.wat"))]
    return [read(path) for path in [*c, *others]]


def modules(program):
    """The modules that are built from a program."""
    variants = {"c": "o0 o1 o2", "assemblyscript": "o0 o2", "wat": "hand"}[program.origin]
    return [Module(program, variant) for variant in program.header.get("levels", variants).split()]


def build_c(module, scratch, _tools):
    """Compiles and links a C program."""
    level = module.variant.removesuffix("-memory64")
    wide = module.variant != level
    target = "wasm64" if wide else "wasm32"
    objects = []
    for source in (module.program.source, HERE / "c/library.c"):
        out = scratch / f"{source.stem}.o"
        if level == "o0":
            compile_simply(target, source, out)
        else:
            compile_with_clang(target, CLANG[level], source, out)
        objects.append(out)
    link(objects, module.path, ["-mwasm64"] if wide else [])


def build_assemblyscript(module, _scratch, tools):
    """Compiles an AssemblyScript program."""
    asc = tools / "node_modules/.bin/asc"
    flags = [f"-{module.variant.upper()}", "--runtime", "incremental", "--use", "abort="]
    command(asc, module.program.source, *flags, "-o", module.path)


def build_wat(module, _scratch, _tools):
    """Assembles a text program."""
    module.path.write_bytes(engine.assemble(module.program.source.read_text()))


def expected(program, scratch):
    """What each case must give, agreed on by the native builds."""
    arguments = program.arguments()
    source = program.source.with_suffix(".c")
    found = {}
    for name, compiler in NATIVE.items():
        out = scratch / name
        command(*compiler, *C, "-I", HERE / "c", source, HERE / "c/native.c", "-o", out, "-lm")
        cases = [case for case in arguments if case == "test" or name != "sanitized"]
        printed = command(out, *(arguments[case] for case in cases)).split()
        for case, value in zip(cases, map(int, printed), strict=True):
            if found.setdefault(case, value) != value:
                raise SystemExit(f"{program.name}, {case}: {name} gives {value}, not {found[case]}")
    return found


def check(module, results, times):
    """Runs all cases of a module in an unchanged Wasmtime."""
    trap = module.program.header.get("trap")
    for case, argument in module.program.arguments().items():
        begin = time.perf_counter()
        instance = engine.Instance(module.path.read_bytes(), module.features)
        ready = time.perf_counter()
        for _ in range(2 if case == "test" and module.program.flag("restartable", "yes") else 1):
            called = time.perf_counter()
            outcome = instance.run(argument)
            took = time.perf_counter() - called
            wanted = engine.Outcome(trap, results[case])
            if outcome != wanted:
                raise SystemExit(f"{module.name}, {case}: {outcome}, not {wanted}")
        if times:
            print(f"{module.name:32} {case:6} {argument:10} {took * 1e3:10.2f} ms, built {1e3 * (ready - begin):.0f} ms")


def entry(module, results):
    """The lines of the list for a module."""
    program = module.program
    lines = {
        "name": module.name,
        "program": program.name.replace("_", "-"),
        "about": program.about,
        "from": program.origin,
        "level": module.variant.split("-")[0],
        "file": str(module.path.relative_to(HERE)),
        "source": str(program.source.relative_to(HERE)),
        "features": module.features,
        "invoke": "run",
        "restartable": program.flag("restartable", "yes"),
    }
    text = ["[[module]]"]
    for key, value in lines.items():
        shown = {bool: str(value).lower(), list: str(value).replace("'", '"')}.get(type(value), f'"{value}"')
        text.append(f"{key} = {shown}")
    if program.flag("endless", "no"):
        text.append("endless = true")
    trap = program.header.get("trap")
    for case, argument in program.arguments().items():
        end = f'trap = "{trap}", seen' if trap else "result"
        text.append(f"{case} = {{ argument = {argument}, {end} = {results[case]} }}")
    return "\n".join(text)


def table(entries):
    """The programs as a table: what each is about, and its modules."""
    rows = {}
    for module in tomllib.loads("\n\n".join(entries))["module"]:
        row = rows.setdefault(module["source"], {"about": module["about"], "modules": [], "notes": set()})
        variant = module["name"].removeprefix(module["program"]).lstrip("-")
        row["modules"].append(variant or "hand")
        row["notes"].update(module["features"] if module["from"] == "wat" else [])
        row["notes"].update(["long"] if "long" in module else [])
        row["notes"].update([f"trap: {module['test']['trap']}"] if "trap" in module.get("test", {}) else [])
        row["notes"].update(["endless"] if module.get("endless") else [])
        row["notes"].update([] if module["restartable"] else ["not restartable"])
    lines = ["| source | what | modules | notes |", "|---|---|---|---|"]
    for source, row in rows.items():
        notes = ", ".join(sorted(row["notes"]))
        lines.append(f"| `{source}` | {row['about']} | {', '.join(row['modules'])} | {notes} |")
    return "\n".join(lines)


def write_table(entries):
    """Puts the table into the README, between its marks."""
    readme = HERE / "README.md"
    before, rest = readme.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    readme.write_text(f"{before}{MARKS[0]}\n{table(entries)}\n{MARKS[1]}{after}")


def known():
    """The lines that the list has for each module now."""
    parts = (HERE / "programs.toml").read_text().strip().split("\n\n")[1:]
    return {part.split('name = "')[1].split('"')[0]: part for part in parts}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="programs to build; all if none")
    parser.add_argument("--tools", type=pathlib.Path, required=True, help="folder with the npm packages")
    parser.add_argument("--times", action="store_true", help="print how long each case takes")
    options = parser.parse_args()
    build = {"c": build_c, "assemblyscript": build_assemblyscript, "wat": build_wat}
    BUILT.mkdir(exist_ok=True)
    entries = []
    kept = known() if options.names else {}
    for program in programs():
        if options.names and program.name not in options.names:
            entries.extend(kept[module.name] for module in modules(program) if module.name in kept)
            continue
        with tempfile.TemporaryDirectory() as folder:
            scratch = pathlib.Path(folder)
            results = expected(program, scratch) if program.arguments() else {}
            for module in modules(program):
                build[program.origin](module, scratch, options.tools.resolve())
                check(module, results, options.times)
                entries.append(entry(module, results))
    head = "# Made by build.sh. What the keys mean: README.md."
    (HERE / "programs.toml").write_text("\n\n".join([head, *entries]) + "\n")
    write_table(entries)
    paths = {module.path for program in programs() for module in modules(program)}
    for path in set(BUILT.glob("*.wasm")) - paths:
        path.unlink()


if __name__ == "__main__":
    main()
