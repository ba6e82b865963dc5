#!/usr/bin/env bash
# Installs Debian's chromium, with which `report.sh` makes its picture, where that can be done and there is none. Says so if it is not.
set -euo pipefail
command -v chromium >/dev/null && exit 0
[[ $(id -u) == 0 ]] && command -v apt-get >/dev/null || { echo "no chromium, and it cannot be installed here"; exit 0; }
install() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium
}
{ install || { apt-get update && install; }; } >/dev/null 2>&1 || echo "no chromium: Debian's packages cannot be reached"
