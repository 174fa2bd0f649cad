#!/usr/bin/env bash
# Downloads Debian packages for arm64, and the libraries that they depend on, and unpacks them in
# build/aarch64-libraries. Nothing is installed: libonig-dev and libctemplate-dev cannot be installed
# for two architectures. If the same packages are there already, it does nothing.
#
#   tools/unpack_aarch64_libraries.sh PACKAGE...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly folder=build/aarch64-libraries
if [[ "$(cat "$folder/packages" 2>/dev/null)" == "$*" ]]; then
  exit 0
fi

rm -rf "$folder"
mkdir -p "$folder"/apt/{archives,state/lists}
cd "$folder"

# apt with a state of its own: the machine's list of architectures stays as it is.
touch apt/state/status
export APT_CONFIG="$PWD/apt/apt.conf"
cat >"$APT_CONFIG" <<END
APT::Architecture "arm64";
APT::Architectures {"arm64";};
Acquire::Languages "none";
APT::Sandbox::User "$(id -un)";
Dir::State "$PWD/apt/state";
Dir::State::status "$PWD/apt/state/status";
Dir::Cache "$PWD/apt";
END
apt-get update -q

# The C and C++ libraries are those of the cross compiler.
mapfile -t libraries < <(apt-cache depends "$@" |
  sed -nE 's/^ *Depends: (lib.*)$/\1/p' | grep -vE '^lib(c6|gcc|stdc\+\+)' | sort -u)
(cd apt/archives && apt-get download -q "$@" "${libraries[@]}")
for package in apt/archives/*.deb; do
  dpkg-deb --extract "$package" .
done
rm -rf apt
echo "$*" >packages
