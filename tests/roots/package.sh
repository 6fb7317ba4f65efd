#!/bin/bash
# The package's life in a Debian 12 that is thrown away: the first version that was a package, and this tree's.
#   usage: package.sh [pytest arguments]        PYTHON: an interpreter with edgelet's libraries (.venv). As root.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
export PYTHON=${PYTHON:-$top/.venv/bin/python}
FIRST=f034803fc7
out=$top/build/package
rm -rf "$out"
mkdir -p "$out/tree"
git -C "$top" archive "$FIRST" 2>/dev/null | tar -x -C "$out/tree" ||
    { echo "skipped: this clone lacks the history down to $FIRST" >&2; exit 0; }
# A version below and a version above: both trees call themselves the same.
mv "$(DEB_VERSION=0.0.1 "$out/tree/systemd/debian/build")" "$out/old.deb"
mv "$(DEB_VERSION=999 "$top/systemd/debian/build")" "$out/new.deb"
rm -rf "$out/tree"
export EDGELET_PACKAGES=/src/build/package
# A network of its own: Podman's default bridge and addresses are the machine's otherwise.
exec unshare --net bash -ec 'ip link set lo up; exec "$@"' net "$top/tests/roots/podman.sh" bookworm "${@:-tests/roots/test_package_life.py}"
