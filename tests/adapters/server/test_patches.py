"""Patches as the API defines them; the JSON patch cases are those of RFC 6902, appendix A."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet.adapters.server import patches

Json = dict[str, Any]

LEAF = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "b/c", "~"])
VALUE: Any = st.recursive(
    LEAF, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from("abcd"), below, max_size=3)
)


def containers(*items: Json) -> Json:
    """An object with a list that is joined by name."""
    return {"spec": {"containers": list(items)}}


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ({"a": 1, "b": 2}, {"b": None, "c": 3}, {"a": 1, "c": 3}),
        (
            containers({"name": "x", "image": "1", "tty": True}),
            containers({"name": "x", "image": "2"}),
            containers({"name": "x", "image": "2", "tty": True}),
        ),
        (containers({"name": "x"}), containers({"name": "y"}), containers({"name": "x"}, {"name": "y"})),
        (
            containers({"name": "x"}, {"name": "y"}),
            containers({"name": "x", "$patch": "delete"}),
            containers({"name": "y"}),
        ),
        (
            containers({"name": "x"}, {"name": "y"}),
            containers({"name": "z"}, {"$patch": "replace"}),
            containers({"name": "z"}),
        ),
        (
            containers({"name": "x"}, {"name": "y"}),
            {"spec": {"$setElementOrder/containers": [{"name": "y"}, {"name": "x"}]}},
            containers({"name": "y"}, {"name": "x"}),
        ),
        ({"command": ["a", "b"]}, {"command": ["c"]}, {"command": ["c"]}),
        (
            {"metadata": {"finalizers": ["a", "b"]}},
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}},
            {"metadata": {"finalizers": ["b", "c"]}},
        ),
        ({"v": {"emptyDir": {}, "name": "v"}}, {"v": {"$retainKeys": ["name"], "name": "v"}}, {"v": {"name": "v"}}),
        ({"v": {"a": 1}}, {"v": {"$patch": "replace", "b": 2}}, {"v": {"b": 2}}),
    ],
)
def test_strategic_merge_joins_as_the_api_does(target: Json, patch: Json, result: Json) -> None:
    before = copy.deepcopy(target)
    assert patches.strategic(target, patch) == result
    assert target == before


def test_an_item_without_its_key_is_refused() -> None:
    with pytest.raises(patches.Unfit, match="each item of containers in the patch must have the field name"):
        patches.strategic(containers(), containers({"image": "x"}))


@given(VALUE, VALUE)
def test_a_merge_patch_leaves_no_null_that_it_set_and_keeps_its_target(target: Any, patch: Any) -> None:
    before = copy.deepcopy(target)
    result = patches.merge(target, patch)
    assert target == before
    assert patches.merge(result, patch) == result  # applied twice is applied once
    if isinstance(patch, dict):
        assert all((name in result) == (value is not None) for name, value in patch.items())


@pytest.mark.parametrize(
    ("target", "operations", "result"),
    [
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"foo": "bar", "baz": "qux"}),
        ({"foo": ["a", "c"]}, [{"op": "add", "path": "/foo/1", "value": "b"}], {"foo": ["a", "b", "c"]}),
        ({"foo": ["a"]}, [{"op": "add", "path": "/foo/-", "value": "b"}], {"foo": ["a", "b"]}),
        ({"a": 1, "b": 2}, [{"op": "remove", "path": "/a"}], {"b": 2}),
        ({"foo": ["a", "b"]}, [{"op": "remove", "path": "/foo/0"}], {"foo": ["b"]}),
        ({"a": 1}, [{"op": "replace", "path": "/a", "value": 2}], {"a": 2}),
        ({"a": {"x": 1}, "b": {}}, [{"op": "move", "from": "/a/x", "path": "/b/y"}], {"a": {}, "b": {"y": 1}}),
        ({"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
        ({"a/b": 1, "c~d": 2}, [{"op": "test", "path": "/a~1b", "value": 1}], {"a/b": 1, "c~d": 2}),
        ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
    ],
)
def test_json_patch_does_what_the_rfc_says(target: Json, operations: list[Json], result: Json) -> None:
    assert patches.json_patch(target, operations) == result


@pytest.mark.parametrize(
    "operations",
    [
        {},
        [1],
        [{"op": "add"}],
        [{"op": "add", "path": "/a"}],
        [{"op": "replace", "path": "/none", "value": 1}],
        [{"op": "remove", "path": "/none"}],
        [{"op": "remove", "path": ""}],
        [{"op": "add", "path": "/list/9", "value": 1}],
        [{"op": "add", "path": "/list/-1", "value": 1}],
        [{"op": "add", "path": "/a/b/c", "value": 1}],
        [{"op": "test", "path": "/a", "value": 2}],
        [{"op": "invent", "path": "/a"}],
        [{"op": "add", "path": "a", "value": 1}],
    ],
    ids=str,
)
def test_a_json_patch_that_does_not_fit_changes_nothing(operations: Any) -> None:
    target = {"a": 1, "list": [1]}
    with pytest.raises(patches.Unfit):
        patches.json_patch(target, operations)
    assert target == {"a": 1, "list": [1]}
