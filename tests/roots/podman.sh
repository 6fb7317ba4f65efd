#!/bin/bash
# Tests with the Podman of another Debian (trixie: 5.4, bookworm: 4.3) on any Debian.
#   usage: podman.sh SUITE [pytest arguments]          default: the contract suite and twelve end-to-end tests
# Where there is no debootstrap, or no network for it, this says so and counts as done.
# EDGELET_ROOTS_CACHE: where the root is kept (~/.cache/edgelet-roots). As root.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
suite=$1
shift
# shellcheck source=root.sh
. "$top/tests/roots/root.sh"
packages=podman,crun,runc,conmon,netavark,aardvark-dns,catatonit,iptables,nftables,busybox-static,ca-certificates,procps
packages=$packages,python3,python3-yaml,python3-requests,python3-tornado,python3-watchdog,python3-prometheus-client
packages=$packages,python3-cryptography,python3-cffi-backend,python3-pytest,python3-pytest-timeout,python3-hypothesis,python3-venv,iproute2
cached_root "${EDGELET_ROOTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/edgelet-roots}" "$suite" "$(dpkg --print-architecture)" "$packages"

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
enter "$root" "$top" /src/tests/roots/pytest.sh "$@"
