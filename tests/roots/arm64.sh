#!/bin/bash
# The package and the archive on arm64 under qemu's user emulation: Debian 12 arm64, entered as a throw-away copy.
#   usage: arm64.sh [pytest arguments]        needs dist/*.deb; takes dist/edgelet.pyz too where it is. As root.
# EDGELET_ROOTS_CACHE: where the root is kept. It takes five minutes of CPU to make, once: its second half is emulated.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=root.sh
. "$top/tests/roots/root.sh"

# The kernel is told of the emulator: "F" opens it at once, so that it need not be in the root.
emulated() {
    local place=/proc/sys/fs/binfmt_misc magic mask
    [ "$(uname -m)" = aarch64 ] && return
    installed qemu-aarch64-static qemu-user-static
    mountpoint -q $place || mount -t binfmt_misc binfmt_misc $place || skipped "the kernel has no binfmt_misc here"
    grep -qs '^enabled' $place/*aarch64* && return
    magic='\x7f\x45\x4c\x46\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    trap "echo -1 >$place/edgelet-aarch64" EXIT
    echo ":edgelet-aarch64:M::$magic:$mask:$(command -v qemu-aarch64-static):F" >$place/register
}

emulated
packages=python3,python3-yaml,python3-requests,python3-urllib3,python3-tornado,python3-watchdog,python3-prometheus-client
packages=$packages,init-system-helpers
cached_root "${EDGELET_ROOTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/edgelet-roots}" bookworm arm64 "$packages"
export EDGELET_ARM64_ROOT=$root
"$top/.venv/bin/python" -m pytest -q "${@:-$top/tests/roots/test_arm64.py}"
