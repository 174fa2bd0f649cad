#!/usr/bin/env bash
# Installs missing packages and builds kvick in build/PRESET.
#
#   tools/build.sh PRESET program      only the command line
#   tools/build.sh PRESET tests        everything
#
# JOBS: number of compilers that run in parallel; default: the number of cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset="$1"
configure=()
build=()
case "$2" in
  program)
    packages=(build)
    build=(--target kvick)
    # A build folder configured with tests keeps them.
    [[ -e "build/$preset/CMakeCache.txt" ]] || configure=(-DKVICK_BUILD_TESTS=OFF)
    ;;
  tests)
    packages=(build tests)
    configure=(-DKVICK_BUILD_TESTS=ON)
    ;;
  *)
    echo "$0: second argument: expected program or tests, got '$2'" >&2
    exit 2
    ;;
esac

case "$preset" in
  aarch64) packages+=(aarch64) ;;
  asan) packages+=(checks) ;;
esac
tools/install_packages.sh "${packages[@]}"
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
fi
cmake --preset "$preset" "${configure[@]}"
cmake --build --preset "$preset" -j "${JOBS:-$(nproc)}" "${build[@]}"
