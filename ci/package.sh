#!/usr/bin/env bash
# The library can be packaged and builds from its package.
set -euo pipefail
cargo package --package loopopt --locked --allow-dirty
