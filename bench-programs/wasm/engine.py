"""Runs modules in an unchanged Wasmtime."""

import dataclasses

import wasmtime

# Where the C interface says it in other words than `Trap`.
NAMES = {"unreachable": "unreachable-code-reached"}


@dataclasses.dataclass
class Outcome:
    """How a call ended: the trap, if it was one, and the checksum."""

    trap: str | None
    value: int


def assemble(text):
    """The binary of a module in text form."""
    return bytes(wasmtime.wat2wasm(text))


class Instance:
    """A module, instantiated."""

    def __init__(self, binary, features):
        config = wasmtime.Config()
        config.wasm_memory64 = "memory64" in features
        config.wasm_exceptions = "exceptions" in features
        config.wasm_function_references = "gc" in features
        config.wasm_gc = "gc" in features
        config.wasm_threads = "threads" in features
        config.shared_memory = "threads" in features
        config.wasm_tail_call = "tail-call" in features
        config.wasm_multi_memory = "multi-memory" in features
        engine = wasmtime.Engine(config)
        self.store = wasmtime.Store(engine)
        module = wasmtime.Module(engine, binary)
        self.exports = wasmtime.Instance(self.store, module, []).exports(self.store)

    def run(self, argument):
        """Calls `run`, and `seen` after a trap."""
        try:
            return Outcome(None, self.exports["run"](self.store, argument))
        except wasmtime.Trap as trap:
            name = trap.trap_code.name.lower().replace("_", "-")
            name = NAMES.get(name, name)
            return Outcome(name, self.exports["seen"](self.store))
