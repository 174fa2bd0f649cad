#!/usr/bin/env bash
# Installs missing packages, builds kvick in build/PRESET and runs its tests.
#
#   tools/build_and_test.sh [PRESET]     default: release
#
# JOBS: number of compilers and tests that run in parallel; default: the number of cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset="${1:-release}"
tools/build.sh "$preset" tests
ctest --preset "$preset" -j "${JOBS:-$(nproc)}"
