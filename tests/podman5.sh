#!/bin/bash
# Tests with Debian 13's Podman (5.4) on any Debian: a debootstrap of trixie, entered with a mount namespace of its
# own (bind mount and pivot_root; Podman does not work in a plain chroot). The root is cached outside the tree.
#   usage: podman5.sh [pytest arguments]          default: the contract suite and ten end-to-end tests
# EDGELET_PODMAN5_CACHE: where (~/.cache/edgelet-podman5). As root.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
cache=${EDGELET_PODMAN5_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/edgelet-podman5}
packages=podman,crun,runc,conmon,netavark,aardvark-dns,catatonit,iptables,nftables,busybox-static,ca-certificates,procps
packages=$packages,python3,python3-yaml,python3-requests,python3-tornado,python3-watchdog,python3-prometheus-client
packages=$packages,python3-cryptography,python3-cffi-backend,python3-pytest,python3-pytest-timeout,python3-hypothesis,python3-venv,iproute2
root=$cache/trixie-$(echo "$packages" | sha256sum | cut -c1-12)
[ "$(id -u)" -eq 0 ] || { echo "cannot run: this needs root" >&2; exit 2; }

if [ ! -e "$root/done" ]; then
    command -v debootstrap >/dev/null ||
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null; }
    rm -rf "$cache"/trixie-*
    mkdir -p "$cache"
    echo "installing Debian 13 below $cache (a few minutes, once)" >&2
    debootstrap --variant=minbase --include="$packages" trixie "$root" >"$cache/debootstrap.log" 2>&1 ||
        { tail -20 "$cache/debootstrap.log" >&2; exit 1; }
    rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
    touch "$root/done"
fi

if [ $# -eq 0 ]; then
    life=tests/e2e/test_lifecycle.py
    set -- tests/contract tests/adapters/podman $life tests/e2e/test_probes.py tests/e2e/test_examples.py
fi
exec unshare --mount --propagation private "$top/tests/podman5_inside.sh" "$root" "$top" "$@"
