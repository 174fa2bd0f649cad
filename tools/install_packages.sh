#!/usr/bin/env bash
# Installs the Debian packages that are missing. If none is missing, it does nothing.
#
#   tools/install_packages.sh [build] [tests] [checks] [node] [aarch64]     default: build tests
#
#   build    packages to build kvick      tests    packages that its tests also need
#   checks   clang: the fuzzers, clang-format, clang-tidy
#   node     npm, to check recorded tokens against the package that they come from
#   aarch64  to build for 64-bit Arm on another machine and to run the tests there: a cross compiler,
#            an emulator, and the libraries of build and tests for arm64 in build/aarch64-libraries
set -euo pipefail

declare -A packages=(
  [build]="g++ cmake ninja-build libhwy-dev libexpected-dev libfmt-dev libxxhash-dev
           nlohmann-json3-dev libcli11-dev libonig-dev libutf8proc-dev
           libctemplate-dev libssl-dev"
  [tests]="libgtest-dev libbenchmark-dev python3 python3-numpy chromium fonts-dejavu-core"
  [checks]="clang libclang-rt-dev clang-format clang-tidy"
  [node]="nodejs npm"
  [aarch64]="g++-aarch64-linux-gnu qemu-user"
)

is_installed() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

wanted=()
for set_name in "${@:-build tests}"; do
  for name in $set_name; do
    if [[ -z "${packages[$name]:-}" ]]; then
      echo "$0: expected build, tests, checks, node or aarch64, got '$name'" >&2
      exit 2
    fi
    read -r -d '' -a more <<<"${packages[$name]}" || true
    wanted+=("${more[@]}")
  done
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "This is not a Debian system. Install these packages, or their equivalents, yourself:" >&2
  echo "  ${wanted[*]}" >&2
  exit 0
fi

if [[ " $* " == *" aarch64 "* ]]; then
  read -r -d '' -a libraries < <(tr -s ' \n' '\n' <<<"${packages[build]} ${packages[tests]}" |
    grep -e '-dev$') || true
  "$(dirname "${BASH_SOURCE[0]}")/unpack_aarch64_libraries.sh" "${libraries[@]}"
fi

missing=()
for package in "${wanted[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi

echo "Installing ${missing[*]}"
as_root=()
if ((EUID != 0)); then
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}"
