"""Columns, JSON and YAML as kubectl writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from edgelet.cli import printing

RECORDED = Path(__file__).parents[2].parent / "shared" / "data" / "apiserver-responses"

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc-./", min_size=1), inner, max_size=4),
    max_leaves=20,
)


def test_columns_are_three_apart_and_never_narrower_than_six() -> None:
    assert printing.Columns().text([["A", "BCDE", "X"], ["longer", "b", ""]]) == "A        BCDE   X\nlonger   b      \n"


def test_later_rows_keep_the_columns_of_earlier_ones() -> None:
    columns = printing.Columns()
    columns.text([["a-long-name", "x"]])
    assert columns.text([["b", "y"]]) == "b             y\n"


def test_yaml_is_what_kubectl_wrote_for_a_recorded_pod() -> None:
    if not RECORDED.is_dir():
        pytest.skip("needs the recorded answers in shared/ beside the checkout")
    items = json.loads((RECORDED / "list_pods.json").read_text())["items"]
    pod = next(item for item in items if item["metadata"]["name"] == "web-edge1")
    expected = (RECORDED / "kubectl-output" / "get_pod_web-edge1_-o_yaml.txt").read_text()
    then = yaml.safe_load(expected)
    del pod["metadata"]["managedFields"]  # kubectl does not show them
    pod["metadata"]["annotations"] = then["metadata"]["annotations"]  # recorded a little later
    pod["metadata"]["resourceVersion"] = then["metadata"]["resourceVersion"]
    assert printing.as_yaml({"kind": "Pod", "apiVersion": "v1", **pod}) == expected


@given(VALUES)
def test_yaml_and_json_say_the_same(value: object) -> None:
    assert yaml.safe_load(printing.as_yaml({"x": value})) == json.loads(printing.as_json({"x": value})) == {"x": value}


def test_text_of_several_lines_is_a_block() -> None:
    assert printing.as_yaml({"a": "one\ntwo\n"}) == "a: |\n  one\n  two\n"


def test_what_a_terminal_would_act_upon_is_written_out() -> None:
    assert printing.Columns().text([["a\nb\x1b[31m\x9bm", "x"]]) == "a\\nb\\x1b[31m\\x9bm   x\n"
