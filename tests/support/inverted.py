"""Reads and writes tests/inversions.txt: each rule of the kubelet turned to its opposite, and what has noticed that."""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

TABLE = Path(__file__).parents[1] / "inversions.txt"
PRODUCT = Path(__file__).parents[2] / "edgelet"


@dataclass(frozen=True, slots=True)
class Inversion:
    """`old` (whole lines, in `path` below edgelet/ once) becomes `new`; `proof` = a test and the digest it noticed."""

    rule: str
    path: str
    old: str
    new: str
    proof: str = ""

    @property
    def digest(self) -> str:
        """Names this very inversion: a proof of another one proves nothing."""
        return hashlib.sha256("\0".join((self.path, self.old, self.new)).encode()).hexdigest()[:8]

    @property
    def test(self) -> str:
        """The test that has noticed it, "" = none has."""
        test, _, digest = self.proof.partition(" ")
        return test if digest == self.digest else ""

    @property
    def file(self) -> Path:
        """Where it is made."""
        return PRODUCT / self.path

    @property
    def module(self) -> str:
        """Its file as Python names it."""
        return ".".join(("edgelet", *self.path.removesuffix(".py").removesuffix("/__init__").split("/")))

    def apply(self, text: str) -> str:
        """The file's text with the inversion made. Raises ValueError where that cannot be done."""
        if (found := f"\n{text}".count(f"\n{self.old}\n")) != 1:
            raise ValueError(f"{self.rule}: its lines are found {found} times in edgelet/{self.path}")
        changed = f"\n{text}".replace(f"\n{self.old}\n", f"\n{self.new}\n")[1:]
        ast.parse(changed)
        return changed

    def __str__(self) -> str:
        lines = [f"{self.rule} {self.path}", *(f"-{line}" for line in self.old.split("\n"))]
        lines += [f"+{line}" for line in self.new.split("\n")]
        return "\n".join([*lines, *([f"= {self.proof}"] if self.proof else [])])


def parse(text: str) -> tuple[str, list[Inversion]]:
    """The comment at the top, and all inversions. Raises ValueError for what makes no sense."""
    head, *blocks = text.strip("\n").split("\n\n")
    return head, [_block(block) for block in blocks]


def _block(block: str) -> Inversion:
    first, *lines = block.strip("\n").split("\n")
    rule, _, path = first.partition(" ")
    parts = {mark: [line[1:] for line in lines if line[:1] == mark] for mark in "-+="}
    if not path or not parts["-"] or not parts["+"] or sum(map(len, parts.values())) != len(lines):
        raise ValueError(f"no inversion: {block}")
    return Inversion(rule, path, "\n".join(parts["-"]), "\n".join(parts["+"]), "".join(parts["="]).strip())


def table() -> list[Inversion]:
    """All inversions."""
    return parse(TABLE.read_text())[1]


def stale(inversion: Inversion) -> str:
    """Why it cannot be made any more, "" = it can."""
    try:
        inversion.apply(inversion.file.read_text())
    except (ValueError, SyntaxError, OSError) as error:
        return str(error)
    return ""


def in_functions(inversion: Inversion) -> bool:
    """Whether nothing differs but the code of functions, so that it can be put into a process that runs."""
    before = inversion.file.read_text()
    return _outside(before) == _outside(inversion.apply(before))


def _outside(text: str) -> str:
    """The tree without the bodies of functions."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body = []
    return ast.dump(tree)


def proven() -> frozenset[str]:
    """The rules that have inversions, all of which tests have noticed."""
    every = table()
    return frozenset({i.rule for i in every} - {i.rule for i in every if not i.test})


def record(inversion: Inversion, test: str) -> None:
    """Keep what was found ("" = no test has noticed it), at once: the run may be cut off, the table be edited."""
    head, every = parse(TABLE.read_text())
    mine = (inversion.rule, inversion.digest)
    proof = f"{test} {inversion.digest}" if test else ""
    rows = [replace(i, proof=proof) if (i.rule, i.digest) == mine else i for i in every]
    TABLE.write_text("\n\n".join([head, *map(str, rows)]) + "\n")
