"""Writes docs/conformance.md from tests/conformance.txt: ``python -m tests.conformance [JUNIT.xml ...]``.

With the reports of a run (``pytest --junit-xml``) each test is told with how it ended; a rule all of whose tests
passed is honoured, one of whose tests failed is not.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from tests.support import inverted

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "conformance.txt"
PAGE = ROOT / "docs" / "conformance.md"
HONOURED, DIFFERENT, MISSING = "=", "~", "!"
WORDS = {HONOURED: "honoured", DIFFERENT: "different on purpose", MISSING: "not yet"}
_LINE = re.compile(r"(\d+(?:\.\d+)+) ([=~!]) (.+)")
_TEST = re.compile(r"\btest_[a-z0-9_]+")
_HEAD = """# Conformance with the kubelet

Made by `python -m tests.conformance` from `tests/conformance.txt`; do not edit by hand. Every numbered rule of how
the kubelet merges and admits pods, runs them, probes them and restarts itself. A rule counts only if a test has
failed when it was turned to its opposite in the code (`make inversions`, `tests/inversions.txt`): else it is not yet.
`tests/test_conformance.py` sees that the tests named here exist.

"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its number, verdict, the tests that show it, and what there is to say."""

    number: str
    verdict: str
    tests: tuple[str, ...]
    text: str
    unproven: bool = False
    """Said to be kept, but no test has noticed its inversion."""

    @property
    def word(self) -> str:
        """What the page calls it."""
        return WORDS[MISSING if self.unproven else self.verdict]


def read(text: str) -> Iterator[str | Rule]:
    """Headings and rules in order. Raises ValueError for a line that makes no sense."""
    proven = inverted.proven()
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is not None:
            number, verdict, rest = found.groups()
            yield _rule(number, verdict, rest, verdict != MISSING and number not in proven)
        elif line[0].isdigit():
            raise ValueError(f"no rule: {line}")
        else:
            yield line


def _rule(number: str, verdict: str, rest: str, unproven: bool) -> Rule:
    tests = tuple(dict.fromkeys(_TEST.findall(rest)))
    words = re.sub(r" +", " ", _TEST.sub("", rest)).strip(" ;:").replace(" ()", "").replace("()", "")
    return Rule(number, verdict, tests, words, unproven)


def rules() -> list[Rule]:
    """All rules of the table."""
    return [r for r in read(TABLE.read_text()) if isinstance(r, Rule)]


def known_tests() -> dict[str, str]:
    """All test functions below tests/, with the file of each."""
    found: dict[str, str] = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        tree = ast.parse(path.read_text())
        names = [n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]
        found |= dict.fromkeys(names, str(path.relative_to(ROOT)))
    return found


def outcomes(reports: list[Path]) -> dict[str, str]:
    """By test function: failed if any of its cases failed, else passed if one ran, else skipped."""
    ended: dict[str, set[str]] = {}
    for report in reports:
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            how = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            ended.setdefault(case.get("name", "").partition("[")[0], set()).add(how)
    return {name: next(h for h in ("failed", "passed", "skipped") if h in all_) for name, all_ in ended.items()}


def render(ended: Mapping[str, str]) -> str:
    """The page."""
    every = rules()
    counts = ", ".join(f"{sum(r.word == word for r in every)} {word}" for word in WORDS.values())
    parts = [_HEAD, f"{len(every)} rules: {counts}.\n"]
    for row in read(TABLE.read_text()):
        if isinstance(row, str):
            parts.append(f"\n## {row}\n\n| Rule | | What there is to say | Tests |\n|---|---|---|---|\n")
        else:
            tests = "<br>".join(f"`{t}`{_ended(ended, t)}" for t in row.tests)
            parts.append(f"| {row.number} | {row.word} | {row.text} | {tests} |\n")
    return "".join(parts)


def _ended(ended: Mapping[str, str], test: str) -> str:
    return f" ({ended.get(test, 'not run')})" if ended else ""


if __name__ == "__main__":
    PAGE.write_text(render(outcomes([Path(p) for p in sys.argv[1:]])))
