"""JSON into trees: several objects back to back, places, and the differences from YAML."""

from __future__ import annotations

import json
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from edgelet.model import json_reader, yaml_reader

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def without_nulls(value: Any) -> Any:
    """As `Node.plain` has it: a null in a map is no value."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


@hypothesis.given(st.dictionaries(st.text(), VALUES, max_size=5), st.sampled_from([None, 0, 2]))
def test_reads_what_json_writes(value: dict[str, Any], indent: int | None) -> None:
    (node,) = json_reader.read(json.dumps(value, indent=indent))
    assert node.plain() == without_nulls(value)


def test_objects_back_to_back_with_places() -> None:
    first, second = json_reader.read('{"a": 1}\n{\n  "b": [2,\n   3]}')
    assert first.plain() == {"a": 1}
    assert second.mark(("b", 1)) == (4, 4)
    assert second.mark(("b",)) == (3, 3)


def test_comments_before_the_first_object() -> None:
    text = "# written by a tool\n\n{}"
    assert json_reader.looks_like_json(text)
    assert json_reader.read(text)[0].plain() == {}


@pytest.mark.parametrize(("text", "value"), [("1.0", 1), ("1e2", 100), ("-0.5", -0.5), ("1e400", "1e400")])
def test_numbers_are_of_one_kind(text: str, value: object) -> None:
    assert json_reader.read(f'{{"a": {text}}}')[0].plain() == {"a": value}


def test_half_a_character_is_replaced() -> None:
    assert json_reader.read('{"a": "\\ud800x", "b": "\\ud83d\\ude00"}')[0].plain() == {
        "a": "\ufffdx",
        "b": "\U0001f600",
    }


def test_repeated_name_keeps_the_last_and_says_so() -> None:
    (node,) = json_reader.read('{"v": 1, "v": 3}')
    assert node.plain() == {"v": 3}
    assert node.repeated == [("v", 1, 10)]


@pytest.mark.parametrize(
    "text",
    ["{", '{"a"', '{"a":', '{"a":1', '{"a":1,}', "{a: 1}", '{"a": 01}', '{"a": tru}', '{"a": "x}', '{"a": [1 2]}'],
)
def test_what_is_no_json(text: str) -> None:
    with pytest.raises(yaml_reader.ReadError, match="cannot read this as JSON"):
        json_reader.read(text)


def test_bounds() -> None:
    with pytest.raises(yaml_reader.TooBig, match="levels deep"):
        json_reader.read('{"a":' * 101 + "1" + "}" * 101)
    with pytest.raises(yaml_reader.TooBig, match="more than"):
        json_reader.read('{"a": [' + "1," * 60_000 + "1]}")
