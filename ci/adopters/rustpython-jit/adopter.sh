# shellcheck shell=bash disable=SC2034
crate=rustpython-jit version=0.6.0
