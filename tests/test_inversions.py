"""The table of inverted rules is read as it is written, and proves only what was tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import inverted
from tests.support.inverted import Inversion

ONE = Inversion("3.4.1", "core/stopping.py", "    a = 1\n    b = 2", "    a = 2")
TEXT = "def f() -> None:\n    a = 1\n    b = 2\n"


def test_what_is_written_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inverted, "TABLE", tmp_path / "table")
    other = Inversion("9.2", "app/__init__.py", "x", "y")
    inverted.TABLE.write_text(f"# head\n\n{ONE}\n\n{other}\n")
    assert inverted.table() == [ONE, other]
    inverted.record(ONE, "test_it")
    assert [i.test for i in inverted.table()] == ["test_it", ""]
    assert inverted.proven() == {"3.4.1"}
    assert inverted.TABLE.read_text().startswith("# head\n\n3.4.1 core/stopping.py\n-    a = 1\n-    b = 2\n+")
    inverted.record(ONE, "")
    assert inverted.table() == [ONE, other]


def test_a_proof_of_another_inversion_proves_nothing() -> None:
    assert Inversion("1", "a.py", "x", "y", f"test_it {ONE.digest}").test == ""
    assert Inversion("1", ONE.path, ONE.old, ONE.new, f"test_it {ONE.digest}").test == "test_it"


def test_whole_lines_are_replaced_that_are_there_once() -> None:
    assert ONE.apply(TEXT) == "def f() -> None:\n    a = 2\n"
    with pytest.raises(ValueError, match=r"3\.4\.1: its lines are found 0 times in edgelet/core/stopping\.py"):
        ONE.apply("    a = 1\n    b = 22\n")
    with pytest.raises(ValueError, match="found 2 times"):
        ONE.apply(TEXT + TEXT)
    with pytest.raises(SyntaxError):
        Inversion("1", "a.py", "x = 1", "x =").apply("x = 1\n")


def test_modules_are_named_as_python_does() -> None:
    assert (ONE.module, Inversion("1", "app/__init__.py", "x", "y").module) == ("edgelet.core.stopping", "edgelet.app")


@pytest.mark.parametrize("block", ["3.4.1\n-a\n+b", "3.4.1 a.py\n-a", "3.4.1 a.py\n+a", "3.4.1 a.py\n-a\n+b\nc"])
def test_half_a_block_is_an_error(block: str) -> None:
    with pytest.raises(ValueError, match="no inversion"):
        inverted.parse(f"# head\n\n{block}\n")


def test_what_can_be_put_into_a_process_that_runs() -> None:
    every = inverted.table()
    assert {inverted.in_functions(i) for i in every} == {True, False}
    assert not inverted.in_functions(next(i for i in every if i.old.startswith("MINIMUM")))
