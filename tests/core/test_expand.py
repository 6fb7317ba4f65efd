"""`$(NAME)` as the kubelet expands it (semantics 5.1.4)."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st
import pytest

from edgelet.core import expand
from edgelet.model.pod import EnvVar

MAPPING = {"A": "1", "B": "two", "EMPTY": "", "DOLLAR": "$(A)"}

CASES = [
    ("plain", "plain"),
    ("$(A)", "1"),
    ("$(A)$(B)", "1two"),
    ("x$(A)y", "x1y"),
    ("$(EMPTY)|", "|"),
    ("$(MISSING)", "$(MISSING)"),
    ("$$(A)", "$(A)"),
    ("$$$(A)", "$1"),
    ("$$$$(A)", "$$(A)"),
    ("$$", "$"),
    ("$", "$"),
    ("a$", "a$"),
    ("$A", "$A"),
    ("$(A", "$(A"),
    ("$()", "$()"),
    ("$(DOLLAR)", "$(A)"),
    ("$($(A))", "$($(A))"),
    ("$(A)$", "1$"),
    ("$x$(A)", "$x1"),
]
"""The table of the kubelet's own tests, in our words; values are not expanded again."""


@pytest.mark.parametrize(("text", "value"), CASES)
def test_expand(text: str, value: str) -> None:
    assert expand.expand(text, MAPPING) == value


def test_env_sees_earlier_entries_only() -> None:
    env = (EnvVar("A", "1"), EnvVar("B", "$(A)$(C)"), EnvVar("C", "3"), EnvVar("A", "$(A)0"))
    assert expand.expand_env(env) == {"A": "10", "B": "1$(C)", "C": "3"}


def test_env_on_top_of_what_is_there() -> None:
    assert expand.expand_env((EnvVar("B", "$(BASE)!"),), {"BASE": "b"}) == {"BASE": "b", "B": "b!"}


@hypothesis.given(st.text("$()AB x", max_size=30))
def test_doubling_every_dollar_undoes_expansion(text: str) -> None:
    assert expand.expand(text.replace("$", "$$"), MAPPING) == text
