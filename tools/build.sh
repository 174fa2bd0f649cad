#!/usr/bin/env bash
# Installs what is missing and builds kvick in build/PRESET.
#
#   tools/build.sh PRESET program      the command line alone
#   tools/build.sh PRESET tests        everything
#
# JOBS: how many compilers run side by side; default: the cores of this machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset="$1"
configure=()
build=()
case "$2" in
  program)
    packages=(build)
    build=(--target kvick)
    # A folder that has tests keeps them.
    [[ -e "build/$preset/CMakeCache.txt" ]] || configure=(-DKVICK_BUILD_TESTS=OFF)
    ;;
  tests)
    packages=(build tests)
    configure=(-DKVICK_BUILD_TESTS=ON)
    ;;
  *)
    echo "$0: '$2' is nothing to build: program or tests are possible" >&2
    exit 2
    ;;
esac

tools/install_packages.sh "${packages[@]}"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
fi
cmake --preset "$preset" "${configure[@]}"
cmake --build --preset "$preset" -j "${JOBS:-$(nproc)}" "${build[@]}"
