"""`edgelet validate`: what the agent would say to manifests, without an agent and without Podman.

Line-oriented: `FILE:LINE:COLUMN: error|warning: FIELD: MESSAGE`, which editors and CI systems read.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .. import node_name
from ..model import decode
from ..model.problems import Problem

SUFFIXES = (".yaml", ".yml", ".json")
"""What the file source takes from a directory; a file that is named itself may be called anything."""

VALID, INVALID, FAILED = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Checked:
    """One file: what it holds and what is wrong; `unreadable` = why it could not be looked at."""

    file: str
    decoded: decode.Decoded = field(default_factory=decode.Decoded)
    problems: tuple[Problem, ...] = ()
    unreadable: str = ""

    @property
    def valid(self) -> bool:
        """Whether the agent would run all of it."""
        return not self.unreadable and all(p.warning for p in self.problems)


def add_parser(subparsers: Any) -> None:
    """Add `validate`."""
    text = "check manifests, without an agent (exit 0 valid, 1 invalid, 2 could not run)"
    parser = subparsers.add_parser("validate", help=text, description=text, allow_abbrev=False)
    parser.add_argument(
        "paths", nargs="+", metavar="FILE|DIR|-", help="manifests; a directory's own, or standard input"
    )
    parser.add_argument("--strict", action="store_true", help="treat warnings as errors")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="form of the answer")
    parser.add_argument("--node-name", default="", metavar="NAME", help="name that is added to pod names (this host's)")


def run(args: argparse.Namespace) -> int:
    """Check everything; the exit code says the worst that was found."""
    node = args.node_name or node_name.from_hostname(os.uname().nodename)
    checked = with_duplicates([_check(file, node, args.strict) for file in _files(args.paths)], args.strict)
    print(as_json(checked) if args.output == "json" else as_text(checked))
    if not checked or any(c.unreadable for c in checked):
        return FAILED
    return VALID if all(c.valid for c in checked) else INVALID


def _files(paths: list[str]) -> Iterator[str]:
    """The files meant by the arguments, in the order in which the agent would read them."""
    for path in paths:
        if not os.path.isdir(path):
            yield path
            continue
        try:
            names = sorted(os.listdir(path))
        except OSError:
            names = []
        found = [os.path.join(path, n) for n in names if n.endswith(SUFFIXES) and not n.startswith(".")]
        # A directory without manifests is named in the answer, instead of passing in silence.
        yield from [f for f in found if not os.path.isdir(f)] or [path]


def _check(path: str, node: str, strict: bool) -> Checked:
    shown = "<stdin>" if path == "-" else path
    try:
        data = sys.stdin.buffer.read(decode.MAX_BYTES + 1) if path == "-" else _read(path)
    except IsADirectoryError:
        return Checked(shown, unreadable=f"cannot check {path}: there is no {', '.join(SUFFIXES)} file in it")
    except OSError as error:
        return Checked(shown, unreadable=f"cannot read {path}: {error.strerror}")
    decoded = decode.decode(data, decode.Origin(shown, "file", node, strict))
    return Checked(shown, decoded, decoded.problems)


def _read(path: str) -> bytes:
    """Raises OSError; what is no regular file would block, or never end."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if stat.S_ISDIR(os.fstat(file.fileno()).st_mode):
            raise IsADirectoryError(errno.EISDIR, "it is a directory")
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read(decode.MAX_BYTES + 1)


def with_duplicates(checked: list[Checked], strict: bool) -> list[Checked]:
    """Add a finding for each pod that an earlier file, or an earlier document, has already."""
    owners: dict[str, str] = {}
    out = []
    for one in checked:
        more = []
        for pod in one.decoded.pods:
            name = str(pod.key)
            if name in owners:
                said = f"pod {name} is in {owners[name]} already, which wins; one of them must get another name"
                more.append(Problem(said, one.file, warning=not strict))
            owners.setdefault(name, one.file)
        out.append(Checked(one.file, one.decoded, (*one.problems, *more), one.unreadable))
    return out


def as_text(checked: list[Checked]) -> str:
    """One line per finding, then one for the whole."""
    lines = []
    for one in checked:
        lines += [one.unreadable] if one.unreadable else [str(p) for p in one.problems]
    errors, warnings = _counts(checked)
    pods = sum(len(c.decoded.pods) for c in checked)
    lines.append(
        f"{_many(len(checked), 'file')}, {_many(pods, 'pod')}: {_many(errors, 'error')}, {_many(warnings, 'warning')}"
    )
    return "\n".join(lines)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _counts(checked: list[Checked]) -> tuple[int, int]:
    problems = [p for c in checked for p in c.problems]
    warnings = sum(p.warning for p in problems)
    return len(problems) - warnings + sum(bool(c.unreadable) for c in checked), warnings


def as_json(checked: list[Checked]) -> str:
    """The same as one JSON document."""
    errors, warnings = _counts(checked)
    files = [_file_json(c) for c in checked]
    whole = {"valid": all(c.valid for c in checked), "errors": errors, "warnings": warnings, "files": files}
    return json.dumps(whole, indent=2, ensure_ascii=False)


def _file_json(one: Checked) -> dict[str, Any]:
    out: dict[str, Any] = {"file": one.file, "valid": one.valid, "pods": [str(p.key) for p in one.decoded.pods]}
    if one.unreadable:
        out["error"] = one.unreadable
    out["problems"] = [
        {
            "level": "warning" if p.warning else "error",
            "document": p.document,
            "line": p.line,
            "column": p.column,
            "path": p.path,
            "message": p.message,
        }
        for p in one.problems
    ]
    return out
