#!/usr/bin/env bash
# Installs what is missing, builds kvick in build/PRESET and runs its tests.
#
#   tools/build_and_test.sh [PRESET]     default: release
#
# JOBS: how many compilers and tests run side by side; default: the cores of this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset="${1:-release}"
jobs="${JOBS:-$(nproc)}"
tools/install_packages.sh build tests
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
fi

cmake --preset "$preset"
cmake --build --preset "$preset" -j "$jobs"
ctest --preset "$preset" -j "$jobs"
