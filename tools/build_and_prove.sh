#!/usr/bin/env bash
# Installs what is missing, builds kvick in build/release and lets it prove its claims.
#
#   tools/build_and_prove.sh [OPTIONS of kvick prove]
#
# JOBS: how many compilers run side by side; default: the cores of this machine.
set -euo pipefail
root="$(dirname "${BASH_SOURCE[0]}")/.."

"$root/tools/build.sh" release program
exec "$root/build/release/kvick" prove "$@"
