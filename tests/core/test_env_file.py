"""Files of variables as fileKeyRef reads them (semantics 5.1.6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.core import env_file

TEXT = """
# comment='no'
  A='1'
B='two
lines # inside
'   # and a comment
C= 'gone'
D='x=y'\r
E=''
A='later'
"""


@pytest.mark.parametrize(
    ("key", "value"),
    [("A", "1"), ("B", "two\nlines # inside\n"), ("C", ""), ("D", "x=y"), ("E", ""), ("F", ""), ("comment", "")],
)
def test_values(key: str, value: str) -> None:
    assert env_file.value(TEXT, key) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A='1'\nnothing\n", "line 2 is not NAME='value'"),
        ("='1'", "line 1 is not NAME='value'"),
        ("A ='1'", "line 1 is not NAME='value'"),
        ("A=1", "line 1: the value must stand in single quotes"),
        ('A="1"', "line 1: the value must stand in single quotes"),
        ("A=", "line 1: the value must stand in single quotes"),
        ("\nA='1\n2\n", "line 2: the quote is not closed"),
        ("A='1'2", "line 1: nothing may follow the closing quote"),
    ],
)
def test_lines_that_are_none(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        env_file.value(text, "Z")


def test_what_stands_after_the_key_is_not_looked_at() -> None:
    assert env_file.value("A='1'\nnothing\n", "A") == "1"


@given(st.text(st.characters(exclude_characters="'\r\n")), st.text(st.characters(exclude_characters="'\r")))
def test_a_quoted_text_comes_back_as_it_was(first: str, second: str) -> None:
    assert env_file.value(f"A='{first}'\nB='{second}'\n", "B") == second
