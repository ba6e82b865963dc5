# shellcheck shell=bash disable=SC2034
crate=wasmer-compiler-cranelift version=7.4.2
