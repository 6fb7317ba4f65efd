"""conmon's command line: the runtime, its options and the exit directory."""

from __future__ import annotations

import pytest

from edgelet.core import conmon

REAL = (
    "/usr/bin/conmon --api-version 1 -c 902c -u 902c -r /usr/bin/runc -b /var/lib/x/userdata "
    "-p /run/x/pidfile -n web --exit-dir /run/libpod/exits --full-attach -l k8s-file:/var/log/0.log "
    "--log-level warning --runtime-arg --log-format=json --runtime-arg --log --runtime-arg=/run/x/oci-log "
    "--conmon-pidfile /run/x/conmon.pid --exit-command /usr/bin/podman --exit-command-arg --root "
    "--exit-command-arg -r --exit-command-arg --runtime --exit-command-arg crun --exit-command-arg 902c"
)


def test_what_podman_4_3_writes() -> None:
    assert conmon.parse(REAL.split()) == conmon.Conmon(
        container_id="902c",
        runtime="/usr/bin/runc",
        bundle="/var/lib/x/userdata",
        exit_dir="/run/libpod/exits",
        log="k8s-file:/var/log/0.log",
    )


@pytest.mark.parametrize(
    ("more", "args"),
    [
        ("-s", ("--systemd-cgroup",)),
        ("--systemd-cgroup", ("--systemd-cgroup",)),
        ("--runtime-arg --root --runtime-arg /run/own", ("--root", "/run/own")),
        ("--runtime-arg=--root=/run/own", ("--root=/run/own",)),
        ("--runtime-arg=--log=/x --runtime-arg --debug", ("--debug",)),
    ],
)
def test_options_the_runtime_needs_are_kept_and_those_about_its_log_are_not(more: str, args: tuple[str, ...]) -> None:
    found = conmon.parse((REAL + " " + more).split())
    assert found is not None and found.runtime_args == args


def test_long_forms_and_defaults() -> None:
    found = conmon.parse(["conmon", "--cid=9", "--runtime=/x/crun", "--bundle", "/b"])
    assert found == conmon.Conmon("9", runtime="/x/crun", bundle="/b", exit_dir="/run/libpod/exits")


@pytest.mark.parametrize(
    "argv", [[], ["bash"], ["/usr/bin/podman", "-c", "9"], ["conmon", "--version"], ["conmon", "-c"]]
)
def test_no_conmon_of_a_container(argv: list[str]) -> None:
    assert conmon.parse(argv) is None


def test_of_its_environment_a_runtime_gets_what_leads_to_its_state() -> None:
    found = conmon.environment("/bin", ["XDG_RUNTIME_DIR=/run/user/0", "SECRET=x", "PATH=", "HOME=/root", ""])
    assert found == {"PATH": "/bin", "XDG_RUNTIME_DIR": "/run/user/0"}
    assert conmon.environment("/bin", ["PATH=/sbin"]) == {"PATH": "/sbin"}
