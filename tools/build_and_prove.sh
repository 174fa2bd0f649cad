#!/usr/bin/env bash
# Installs missing packages, builds kvick in build/release and runs `kvick prove`.
#
#   tools/build_and_prove.sh [OPTIONS of kvick prove]
#
# JOBS: number of compilers that run in parallel; default: the number of cores.
set -euo pipefail
root="$(dirname "${BASH_SOURCE[0]}")/.."

"$root/tools/build.sh" release program
exec "$root/build/release/kvick" prove "$@"
