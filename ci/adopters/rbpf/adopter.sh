# shellcheck shell=bash disable=SC2034
crate=rbpf version=0.4.1
