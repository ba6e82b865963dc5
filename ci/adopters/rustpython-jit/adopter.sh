# shellcheck shell=bash disable=SC2034
crate=rustpython-jit version=0.6.0
# The Python parser, which only the tests and the driver use, says that it needs Rust 1.96. It builds with 1.95.
flags=(--ignore-rust-version)
