"""Text from outside, fit for every terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edgelet.model.plain import one_line, plain
from edgelet.model.problems import Problem


def test_a_byte_that_is_no_utf_8_is_written_out() -> None:
    assert plain("b\udcff\udcfe.yaml") == "b\\xff\\xfe.yaml"


def test_control_characters_are_written_out_and_line_ends_stay() -> None:
    assert plain("a\x1b[31m\tb\nc") == "a\\x1b[31m\tb\nc"
    assert one_line("a\nb") == "a\\nb"


@given(st.text())
def test_what_comes_out_can_be_encoded_and_printed(text: str) -> None:
    assert plain(text).encode() is not None
    assert "\n" not in one_line(text)


def test_a_finding_in_a_file_of_such_a_name_is_one_plain_line() -> None:
    assert str(Problem("no", file="x\n\udcff.yaml", line=3)) == "x\\n\\xff.yaml:3: error: no"
