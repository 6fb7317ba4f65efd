"""Reads conmon's command line: which OCI runtime a container has, and where its exit is told.

conmon is the one process that knows for certain: Podman may have been configured otherwise since.
Pure; the callers read `/proc/<pid>/cmdline` themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DEFAULT_EXIT_DIR = "/run/libpod/exits"


@dataclass(frozen=True, slots=True)
class Conmon:
    """What a container's conmon was started with.

    `runtime` is a path ("" = not said); `runtime_args` are global options that the runtime needs
    to find the container, those about its own log left out; `bundle` holds `config.json`.
    """

    container_id: str
    runtime: str = ""
    runtime_args: tuple[str, ...] = ()
    bundle: str = ""
    exit_dir: str = DEFAULT_EXIT_DIR
    log: str = ""
    """Where output goes, with the format before it: "k8s-file:/var/log/pods/..."."""


_VALUES = {
    "-c": "id",
    "--cid": "id",
    "-r": "runtime",
    "--runtime": "runtime",
    "-b": "bundle",
    "--bundle": "bundle",
    "--exit-dir": "exit_dir",
    "--runtime-arg": "arg",
    "-l": "log",
    "--log-path": "log",
}
_KEPT = ("PATH", "XDG_RUNTIME_DIR")
_SKIPPED = frozenset(
    {"-u", "--cuuid", "-n", "--name", "-p", "--container-pidfile", "--exit-command",
     "--exit-command-arg", "--conmon-pidfile", "--log-level", "--log-size-max", "--log-tag", "--socket-dir-path",
     "--persist-dir", "--attach", "-0", "--api-version", "-T", "--timeout", "--sdnotify-socket"}
)  # fmt: skip


def parse(argv: Sequence[str]) -> Conmon | None:
    """The facts in `argv`, None when this is not the conmon of a container."""
    if not argv or "conmon" not in argv[0].rpartition("/")[2]:
        return None
    found: dict[str, str] = {}
    args: list[str] = []
    rest = iter(argv[1:])
    for option in rest:
        name, equals, value = option.partition("=")
        if name in ("-s", "--systemd-cgroup"):
            args.append("--systemd-cgroup")
        elif name in _VALUES:
            value = value if equals else next(rest, "")
            if _VALUES[name] == "arg":
                args.append(value)
            else:
                found[_VALUES[name]] = value
        elif name in _SKIPPED and not equals:
            next(rest, "")
    if not found.get("id"):
        return None
    return Conmon(
        container_id=found["id"],
        runtime=found.get("runtime", ""),
        runtime_args=_without_log(args),
        bundle=found.get("bundle", ""),
        exit_dir=found.get("exit_dir", DEFAULT_EXIT_DIR),
        log=found.get("log", ""),
    )


def environment(path: str, variables: Sequence[str]) -> dict[str, str]:
    """What its runtime needs of conmon's own `variables` ("NAME=value") to find its state; `path` unless they say."""
    pairs = (text.partition("=") for text in variables)
    return {"PATH": path} | {name: value for name, _, value in pairs if name in _KEPT and value}


def _without_log(args: Sequence[str]) -> tuple[str, ...]:
    """Without the options that would send our errors into the container's own runtime log."""
    kept: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg in ("--log", "--log-format"):
            next(rest, "")
        elif not arg.startswith(("--log=", "--log-format=")):
            kept.append(arg)
    return tuple(kept)
