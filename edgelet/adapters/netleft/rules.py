"""The rules that netavark makes for published ports, in iptables' table nat: read, and removed one by one."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterable

from ...errors import StateError, cause
from ...model.network import Rule

SECONDS = 20.0
_CHAIN = re.compile(r"NETAVARK-DN-([0-9A-F]+)")
_HOLDER = re.compile(r"id: ([0-9a-f]{64})")


def read() -> tuple[Rule, ...]:
    """All of them; none where there is no iptables. Raises StateError."""
    return parse(_run("iptables-save", "-t", "nat"))


def remove(rules: Iterable[Rule]) -> None:
    """Take them away; one that is gone already is fine. Raises StateError."""
    for rule in rules:
        _run("iptables", "--wait", "-t", "nat", "-D", *shlex.split(rule.text))


def parse(text: str) -> tuple[Rule, ...]:
    """The rules for published ports in what iptables-save has written."""
    return tuple(rule for line in text.splitlines() if (rule := _rule(line)) is not None)


def _rule(line: str) -> Rule | None:
    words = shlex.split(line) if line.startswith("-A NETAVARK-") else []
    chain = _CHAIN.search(line)
    if chain is None or "--dport" not in words:
        return None
    holder = _HOLDER.search(line)
    address = _after(words, "--to-destination").rpartition(":")[0].strip("[]")
    port = " ".join(filter(None, (_after(words, "-d"), _after(words, "-p"), _after(words, "--dport"))))
    return Rule(line.removeprefix("-A "), port, chain[1], address, holder[1] if holder else "")


def _after(words: list[str], option: str) -> str:
    return words[words.index(option) + 1] if option in words else ""


def _run(*words: str) -> str:
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        return ""
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StateError(f"cannot run {words[0]}: {cause(error)}") from error
    return done.stdout
