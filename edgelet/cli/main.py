"""`edgelet`: one entry point; the module of a command is imported only when that command is asked for."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from .. import __version__, errors

COMMANDS = {
    "run": "run the agent in the foreground",
    "validate": "check manifests, without an agent",
    "get": "list pods, events or sources",
    "describe": "show a pod in full, with its events",
    "logs": "print the log of a container",
    "exec": "run a command in a container",
    "events": "list events",
    "apply": "create or change pods from manifests; they are kept over reboots",
    "delete": "end pods that were submitted, for good",
    "top": "show what pods or the node use",
    "restart": "stop and start a pod's containers again",
    "stop": "stop a pod and keep it stopped, over reboots too",
    "start": "end a stop: the pod runs again",
    "kubeconfig": "print what kubectl needs to reach this agent",
    "support": "write one archive to send home, without secrets",
    "status": "how the agent, Podman, the sources and the pods are doing",
}
"""Each command is a module of this package (`orders` for three of them) with add_parser and run."""

_MODULES = {"restart": "orders", "stop": "orders", "start": "orders"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code: 0 good, 1 failed (status: degraded), 2 wrong usage (status: agent down)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    command = _command(arguments)
    arguments, inner = _split(arguments) if command == "exec" else (arguments, [])
    module = _module(command) if command else None
    parser = _parser(module)
    args, unknown = parser.parse_known_args(arguments)
    if module is None:
        parser.print_help()
        return 2
    args.unknown, args.argv = unknown, inner
    if unknown and command != "run":  # run tells unknown flags together with its other mistakes
        parser.error(f"unknown argument: {' '.join(unknown)}")
    return _guarded(module, args)


def _guarded(module: ModuleType, args: argparse.Namespace) -> int:
    try:
        code = int(module.run(args))
        sys.stdout.flush()  # here, where a full disk can still be told
        return code
    except errors.EdgeletError as error:
        print(error, file=sys.stderr)
        return int(getattr(error, "exit_code", 1))
    except BrokenPipeError:  # the reader (head, less) has seen enough
        sys.stderr.close()
        return 0
    except OSError as error:  # the disk behind the output is full, a terminal is gone
        what = "cannot run the agent" if args.command == "run" else "cannot write the output"
        with contextlib.suppress(OSError):
            print(f"{what}: {error if error.filename else error.strerror or error}", file=sys.stderr)
        _abandon_output()
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # guard
        print(_fault(args.command, error), file=sys.stderr)
        return 2 if args.command == "status" else 1  # how the box is, is not known


def _fault(command: str, error: Exception) -> str:
    """What a person is told of a fault of ours, with what its report needs."""
    import traceback

    if errors.of_machine(error):
        hint = "; look at the limits of this process (ulimit -a, TasksMax, MemoryMax)"
        return f"cannot go on with `edgelet {command}`: {errors.cause(error)}{hint}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(place.filename)}:{place.lineno}"
    return (
        f"cannot go on with `edgelet {command}`, this is a fault in edgelet: {type(error).__name__}: {error} ({where})"
    )


def _abandon_output() -> None:
    """What is left in the buffer cannot be written: the interpreter must not try again at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _command(arguments: Sequence[str]) -> str:
    """The first word that is a command; flags before it are the global ones."""
    skip = False
    for word in arguments:
        if not skip and not word.startswith("-"):
            return word if word in COMMANDS else ""
        skip = word == "--socket"
    return ""


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What stands before and after "--": argparse would take flags between POD and "--" for a mistake."""
    if "--" not in arguments:
        return arguments, []
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


def _module(command: str) -> ModuleType:
    return importlib.import_module(f".{_MODULES.get(command, command)}", __package__)


def full_parser() -> argparse.ArgumentParser:
    """The parser with every command's own arguments, for the manual page and the completion."""
    return _parser(*dict.fromkeys(_module(name) for name in COMMANDS))


def _parser(*modules: ModuleType | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edgelet",
        description="Kubernetes static pods on a box without a control plane, run under Podman.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"edgelet {__version__}")
    parser.add_argument("--socket", dest="global_socket", metavar="PATH", help="the agent's socket (EDGELET_SOCKET)")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND")
    for module in filter(None, modules):
        module.add_parser(subparsers)
    for name, text in COMMANDS.items():
        if name not in subparsers.choices:
            subparsers.add_parser(name, help=text, add_help=False)
    return parser


if __name__ == "__main__":
    sys.exit(main())
