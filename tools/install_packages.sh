#!/usr/bin/env bash
# Installs the Debian packages that are missing, and nothing where none is.
#
#   tools/install_packages.sh [build] [tests] [checks]     default: build tests
#
#   build    what kvick is built of       tests    what its tests need on top
#   checks   clang: the fuzzers, clang-format, clang-tidy
set -euo pipefail

declare -A packages=(
  [build]="g++ cmake ninja-build libhwy-dev libexpected-dev libfmt-dev libxxhash-dev
           nlohmann-json3-dev libcli11-dev libpcre2-dev libctemplate-dev"
  [tests]="libgtest-dev libbenchmark-dev python3 python3-numpy chromium fonts-dejavu-core"
  [checks]="clang libclang-rt-dev clang-format clang-tidy"
)

is_installed() {
  [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

wanted=()
for set_name in "${@:-build tests}"; do
  for name in $set_name; do
    if [[ -z "${packages[$name]:-}" ]]; then
      echo "$0: '$name' is no set of packages: build, tests or checks are possible" >&2
      exit 2
    fi
    read -r -d '' -a more <<<"${packages[$name]}" || true
    wanted+=("${more[@]}")
  done
done

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "Not a Debian system. These packages, or what they are called here, are needed:" >&2
  echo "  ${wanted[*]}" >&2
  exit 0
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
