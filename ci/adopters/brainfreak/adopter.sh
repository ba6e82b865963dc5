# shellcheck shell=bash disable=SC2034
crate=brainfreak version=0.1.0-alpha
