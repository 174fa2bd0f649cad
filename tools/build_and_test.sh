#!/usr/bin/env bash
# Installs what is missing, builds kvick in build/PRESET and runs its tests.
#
#   tools/build_and_test.sh [PRESET]     default: release
#
# JOBS: how many compilers and tests run side by side; default: the cores of this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset="${1:-release}"
tools/build.sh "$preset" tests
ctest --preset "$preset" -j "${JOBS:-$(nproc)}"
