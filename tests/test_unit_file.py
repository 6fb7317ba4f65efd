"""systemd/edgelet.service promises what its comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[1] / "systemd" / "edgelet.service"

# systemd.exec(5): each of these gives the service a mount namespace of its own.
MOUNT_NAMESPACE = re.compile(
    r"""^( Protect(System|Home|KernelTunables|KernelModules|KernelLogs|ControlGroups|Proc|Hostname|Clock)
    | Private(Tmp|Devices|Mounts|Users|Network|IPC|PIDs|BPF)
    | (ReadWrite|ReadOnly|Inaccessible|Exec|NoExec|BindReadOnly|Bind)(Paths|Directories)
    | TemporaryFileSystem | Root(Directory|Image|Hash|Verity|Ephemeral) | Mount(APIVFS|Images|Flags) | ExtensionImages
    | ExtensionDirectories | DynamicUser | ProcSubset | NetworkNamespacePath | LogNamespace | ConfigurationDirectory
    | RestrictNamespaces | LoadCredential.* | SetCredential.* | ImportCredential )$""",
    re.VERBOSE,
)


def sections() -> dict[str, list[tuple[str, str]]]:
    """The unit's options, in order, by section."""
    found: dict[str, list[tuple[str, str]]] = {}
    current = ""
    for line in UNIT.read_text().splitlines():
        if line.startswith("["):
            current = line.strip("[]")
            found[current] = []
        elif line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found[current].append((key, value))
    return found


def test_it_has_the_three_sections_and_no_option_twice() -> None:
    found = sections()
    assert list(found) == ["Unit", "Service", "Install"]
    for options in found.values():
        keys = [key for key, _ in options]
        assert len(keys) == len(set(keys))


def test_no_option_creates_a_mount_namespace() -> None:
    assert [key for key, _ in sections()["Service"] if MOUNT_NAMESPACE.match(key)] == []


@pytest.mark.parametrize("key", ["ProtectSystem", "PrivateTmp", "ReadWritePaths", "BindPaths", "DynamicUser"])
def test_that_check_knows_such_options(key: str) -> None:
    assert MOUNT_NAMESPACE.match(key)


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("Unit", "StartLimitIntervalSec", "0"),
        ("Unit", "Wants", "podman.socket"),
        ("Service", "Type", "notify"),
        ("Service", "Restart", "always"),
        ("Service", "KillMode", "process"),
        ("Service", "RuntimeDirectoryPreserve", "yes"),
    ],
)
def test_it_recovers_by_itself_and_leaves_containers_alone(section: str, key: str, value: str) -> None:
    assert dict(sections()[section])[key] == value


def test_it_has_a_watchdog_and_time_to_stop() -> None:
    service = dict(sections()["Service"])
    assert int(service["WatchdogSec"]) >= 10
    assert int(service["TimeoutStopSec"]) >= 10


def test_it_goes_last_when_memory_is_short_and_uses_little() -> None:
    service = dict(sections()["Service"])
    assert int(service["OOMScoreAdjust"]) < 0
    assert "MALLOC_ARENA_MAX=" in service["Environment"]


def test_it_never_waits_for_the_network_nor_requires_anything() -> None:
    unit = sections()["Unit"]
    assert not any("network" in value for _, value in unit)
    assert not any(key in ("Requires", "BindsTo", "Requisite", "PartOf") for key, _ in unit)
