"""YAML into trees: places, anchors, merge keys, broken documents, and the bounds."""

from __future__ import annotations

import time

import pytest

from edgelet.model import yaml_reader
from edgelet.model.tree import Node

MERGES = [
    ("a: &a {p: 1, q: 2}\nv: {p: 9, <<: *a}\n", {"p": 1, "q": 2}),
    ("a: &a {p: 1, q: 2}\nv: {<<: *a, p: 9}\n", {"p": 9, "q": 2}),
    ("a: &a {p: 1, q: 2}\nb: &b {p: 3, r: 5}\nv: {<<: [*a, *b], p: 9}\n", {"p": 9, "q": 2, "r": 5}),
    ("a: &a {p: 1, q: 2}\nb: &b {p: 3, r: 5}\nv: {<<: [*a, *b]}\n", {"p": 1, "q": 2, "r": 5}),
    ('v: {"<<": {z: 1}}\n', {"<<": {"z": 1}}),
]
"""As kubectl 1.32 reads them: a merge overwrites what stands before it."""


def only(text: str) -> Node:
    """The one document of a text that must be readable."""
    result = yaml_reader.read(text)
    assert not result.errors, result.errors[0][1].message
    (node,) = result.documents
    assert node is not None
    return node


def error(text: str) -> yaml_reader.ReadError:
    """The first error of a text that must not be readable."""
    errors = yaml_reader.read(text).errors
    assert errors
    return errors[0][1]


@pytest.fixture(params=["c", "python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test of this module runs on both parsers."""
    if request.param == "c" and yaml_reader.C_PARSER is None:
        pytest.skip("PyYAML was built without its C extension")
    if request.param == "python":
        monkeypatch.setattr(yaml_reader, "C_PARSER", None)
    return str(request.param)


@pytest.mark.parametrize(("text", "value"), MERGES)
def test_merge_keys(text: str, value: object) -> None:
    assert only(text).plain()["v"] == value


def test_merge_of_a_number_is_refused() -> None:
    assert "<< needs a mapping" in error("v: {<<: 3}\n").message


def test_places_count_from_one() -> None:
    node = only("a:\n  - b: 1\n    c: x\n")
    assert node.mark(("a",)) == (1, 1)
    assert node.mark(("a", 0)) == (2, 5)
    assert node.mark(("a", 0, "c")) == (3, 8)
    assert node.mark(("a", 0, "missing")) == (2, 5)


def test_keys_are_text_as_kubectl_makes_them() -> None:
    node = only("{1: a, y: c, 1.5: d, 0x10: k, 1e3: f}\n")
    assert node.plain() == {"1": "a", "true": "c", "1.5": "d", "16": "k", "1000": "f"}
    assert ("true", "y") in node.odd_keys


@pytest.mark.parametrize("text", ["{[a]: b}", "{~: e}", "? {a: b}\n: c"])
def test_keys_that_are_no_text_are_refused(text: str) -> None:
    assert "a key must be text" in error(text).message


def test_repeated_key_keeps_the_last_and_says_so() -> None:
    node = only("v: 1\nv: 2\n")
    assert node.plain() == {"v": 2}
    assert node.repeated == [("v", 2, 1)]


def test_escaped_apostrophe_in_double_quotes_only() -> None:
    text = "a: \"it\\'s\"\nb: 'it\\'\nc: it\\'s\nd: |\n  it\\'s\ne: \"back\\\\\"\n"
    assert only(text).plain() == {"a": "it's", "b": "it\\", "c": "it\\'s", "d": "it\\'s\n", "e": "back\\"}


def test_crlf_and_documents() -> None:
    result = yaml_reader.read("a: 1\r\n---\r\n# nothing\r\n---\r\nb: |\r\n  x\r\n  y\r\n")
    assert [d.plain() if d else None for d in result.documents] == [{"a": 1}, None, {"b": "x\ny\n"}]


@pytest.mark.parametrize("said", ['"\\uf8f3"', '"\\U0000F8F3"', "'\uf8f3'", "\uf8f3"])
def test_a_character_of_private_use_stays_what_it_is(said: str) -> None:
    assert only(f"a: {said}\n").plain() == {"a": "\uf8f3"}
    # What needs a stand-in beside it may be refused, but nothing is changed.
    assert [d.plain()["a"] for d in yaml_reader.read(f"a: {said}\nb: [echo:]\n").documents if d] in ([], ["\uf8f3"])


def test_a_broken_document_does_not_hide_the_next() -> None:
    result = yaml_reader.read("a: [1\n---\nb: 2\n---\nc: }\n---\nd: 4\n")
    assert [number for number, _ in result.errors] == [1, 3]
    assert [d.plain() if d else None for d in result.documents] == [None, {"b": 2}, None, {"d": 4}]
    assert result.errors[1][1].line == 5


def test_alias_is_a_copy() -> None:
    node = only("a: &x {p: 1}\nb: *x\n")
    assert node.plain() == {"a": {"p": 1}, "b": {"p": 1}}
    assert node.value["a"] is not node.value["b"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("v: *x\n", "not in this document"), ("v: &a [1, *a]\n", "inside the value"), ("a: &x 1\n---\nb: *x\n", "not in")],
)
def test_bad_alias(text: str, said: str) -> None:
    assert said in error(text).message


def test_alias_bomb_is_refused_at_once() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for n in range(1, 12):
        text += f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n"
    begin = time.process_time()
    assert "unfold to more than" in error(text).message
    assert time.process_time() - begin < 1


def test_chain_of_aliases_cannot_build_depth() -> None:
    text = "a0: &a0 x\n"
    for n in range(1, 20):
        text += f"a{n}: &a{n} " + "[" * 50 + f"*a{n - 1}" + "]" * 50 + "\n"
    assert "levels deep" in error(text).message


def test_nesting_is_bounded() -> None:
    assert only("[" * 99 + "]" * 99).height == 98
    assert "levels deep" in error("[" * 101 + "]" * 101).message
    assert "levels deep" in error("[" * 500_000).message


def test_events_are_bounded_before_a_tree_exists(parser: str) -> None:
    begin = time.process_time()
    found = error("- [a, b]\n" * 800_000 if parser == "c" else "- [a, b]\n" * 20_000)
    assert f"more than {yaml_reader.MAX_EVENTS} values" in found.message
    assert time.process_time() - begin < (1 if parser == "c" else 20)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a:\n\tb: 1\n", "a tab is used for indentation"),
        ("a: |\n  \tb\n", "a tab is used for indentation"),
        ("a: |\n    b\n  \tc\n", "a tab is used for indentation"),
        ("a: b: c\n", "a second ': '"),
        ("a: 'x\n", "closing quote is missing"),
        ("a: @x\n", "put the value in quotes"),
        ('a: "\\q"\n', "unknown escape"),
        ("a: [1, 2\n", "expected ',' or ']'"),
        ("a:\n  - x\n y: 1\n", "wrong indentation"),
        ('a: "\\ud800"\n', ""),
        ('a: "\\U00110000"\n', ""),
    ],
)
def test_words_for_broken_yaml(text: str, said: str) -> None:
    assert said in error(text).message


def test_tabs_may_stand_where_no_indentation_begins() -> None:
    text = "a:\t1\nb: [\t1,\t2]\nc: x\t\ty\n  \tz\nd: |\t# text\n  e\n"
    assert only(text).plain() == {"a": 1, "b": [1, 2], "c": "x\t\ty z", "d": "e\n"}


def test_tabs_inside_a_text_are_text() -> None:
    assert only("a: |\n  b\n  \tc\n\n  \n  d\te\nf: |2\n  \tg\n").plain() == {"a": "b\n\tc\n\n\nd\te\n", "f": "\tg\n"}


def test_a_byte_order_mark_may_start_any_line() -> None:
    assert only("a:\n\ufeff  b: 1\n   c: 2\nd: 3\n").plain() == {"a": {"b": 1, "c": 2}, "d": 3}


def test_colons_and_question_marks_in_unquoted_text_inside_brackets() -> None:
    text = (
        "a: [e:, c::, b:c, 'q:', \"r:\", http://x:80/?a=b, what?]\nb: {c:}\nc: {\"d\":[1], 'e':{f: 1}}\n"
        "g: |\n  [x:] why?\nh: plain:[x]\n"
    )
    assert only(text).plain() == {
        "a": ["e:", "c::", "b:c", "q:", "r:", "http://x:80/?a=b", "what?"],
        "b": {},
        "c": {"d": [1], "e": {"f": 1}},
        "g": "[x:] why?\n",
        "h": "plain:[x]",
    }
    assert list(only(text).value["b"].value) == ["c:"]
