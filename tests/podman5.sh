#!/bin/bash
# Tests with Debian 13's Podman (5.4) on any Debian: a debootstrap of trixie, entered with a mount namespace of its
# own (bind mount and pivot_root; Podman does not work in a plain chroot). The root is cached outside the tree.
#   usage: podman5.sh [pytest arguments]          default: the contract suite and ten end-to-end tests
# Where there is no debootstrap, or no network for it, this says so and counts as done.
# EDGELET_PODMAN5_CACHE: where (~/.cache/edgelet-podman5). As root.
set -euo pipefail
top=$(cd "$(dirname "$0")/.." && pwd)
cache=${EDGELET_PODMAN5_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/edgelet-podman5}
packages=podman,crun,runc,conmon,netavark,aardvark-dns,catatonit,iptables,nftables,busybox-static,ca-certificates,procps
packages=$packages,python3,python3-yaml,python3-requests,python3-tornado,python3-watchdog,python3-prometheus-client
packages=$packages,python3-cryptography,python3-cffi-backend,python3-pytest,python3-pytest-timeout,python3-hypothesis,python3-venv,iproute2
root=$cache/trixie-$(echo "$packages" | sha256sum | cut -c1-12)
[ "$(id -u)" -eq 0 ] || { echo "cannot run: this needs root" >&2; exit 2; }

skipped() { echo "skipped: no Debian 13 to run in: $*" >&2; exit 0; }

# Mounts of a debootstrap that was interrupted end with its namespace: rm never walks into them.
make_root() {
    rm -rf "$cache"/trixie-*
    mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
    echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/edgelet"
    echo "installing Debian 13 below $cache (a few minutes, once)" >&2
    unshare --mount --propagation private \
        debootstrap --variant=minbase --include="$packages" trixie "$root" >"$cache/debootstrap.log" 2>&1 ||
        { tail -20 "$cache/debootstrap.log" >&2; skipped "debootstrap failed, see above and $cache/debootstrap.log"; }
    rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
    touch "$root/done"
}

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # two at once would each make the root
if [ ! -e "$root/done" ]; then
    command -v debootstrap >/dev/null ||
        { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap >/dev/null; } ||
        skipped "debootstrap is not installed and cannot be"
    make_root
fi
flock -u 9

if [ $# -eq 0 ]; then
    e2e=tests/e2e
    set -- tests/contract tests/adapters/podman \
        $e2e/test_lifecycle.py::test_a_pod_starts_and_says_so \
        $e2e/test_lifecycle.py::test_an_edit_replaces_the_pod_and_two_generations_never_run_at_once \
        $e2e/test_lifecycle.py::test_a_deleted_pod_leaves_nothing \
        $e2e/test_probes.py::test_pain_1_exec_liveness_kills_and_restarts \
        $e2e/test_commands.py::test_exec_gives_output_input_and_the_exit_code \
        $e2e/test_fields.py::test_a_host_port_can_be_reached_and_is_free_again_afterwards \
        $e2e/test_hooks.py::test_pain_37_a_pre_stop_hook_runs_before_the_signal \
        $e2e/test_sidecars.py::test_a20_pain_35_sidecars_end_in_reverse_order_after_the_regular_container \
        $e2e/test_survival.py::test_pain_143_conmon_killed_nothing_phantom_is_shown_and_the_pod_comes_back \
        $e2e/test_survival.py::test_conmon_killed_while_its_process_lives \
        $e2e/test_survival.py::test_pain_47_a_half_made_pod_is_replaced \
        $e2e/test_survival.py::test_pain_47_after_a_reboot_everything_runs_again_in_fresh_sandboxes
fi
exec unshare --mount --propagation private "$top/tests/podman5_inside.sh" "$root" "$top" "$@" 9>&-
