"""Which changes of a pod a cluster would refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

from edgelet.core import updates


def document(**spec: Any) -> str:
    base: dict[str, Any] = {
        "containers": [{"name": "a", "image": "one"}, {"name": "b", "image": "one"}],
        "terminationGracePeriodSeconds": 30,
    }
    return json.dumps({"metadata": {"labels": {"x": "y"}}, "spec": {**base, **spec}})


@pytest.mark.parametrize(
    ("changed", "paths"),
    [
        ({}, ()),
        ({"containers": [{"name": "a", "image": "two"}, {"name": "b", "image": "one"}]}, ()),
        ({"initContainers": [{"name": "i", "image": "one"}]}, ("spec.initContainers",)),
        ({"terminationGracePeriodSeconds": 1, "activeDeadlineSeconds": 5, "tolerations": [{"key": "k"}]}, ()),
        (
            {"containers": [{"name": "a", "image": "one", "args": ["x"]}, {"name": "b", "image": "one"}]},
            ("spec.containers[0].args",),
        ),
        ({"containers": [{"name": "a", "image": "one"}]}, ("spec.containers",)),
        ({"hostNetwork": True, "volumes": []}, ("spec.hostNetwork", "spec.volumes")),
        (
            {"containers": [{"name": "a", "image": "one", "x": {"image": "y"}}, {"name": "b", "image": "one"}]},
            ("spec.containers[0].x",),
        ),
    ],
)
def test_paths_that_a_running_pod_cannot_change(changed: dict[str, Any], paths: tuple[str, ...]) -> None:
    assert updates.refused_changes(document(), document(**changed)) == paths


def test_the_image_of_an_init_container_may_change() -> None:
    before = document(initContainers=[{"name": "i", "image": "one"}])
    assert updates.refused_changes(before, document(initContainers=[{"name": "i", "image": "two"}])) == ()


def test_a_nested_image_is_not_the_image_of_a_container() -> None:
    before = document(volumes=[{"name": "v", "image": {"reference": "a"}}])
    after = document(volumes=[{"name": "v", "image": {"reference": "b"}}])
    assert updates.refused_changes(before, after) == ("spec.volumes[0].image.reference",)


def test_labels_may_change() -> None:
    after = json.loads(document())
    after["metadata"]["labels"] = {}
    assert updates.refused_changes(document(), json.dumps(after)) == ()


def test_the_warning_names_at_most_ten() -> None:
    paths = tuple(f"spec.f{i}" for i in range(12))
    assert updates.warning(paths[:2]) == "the pod is replaced: a running pod cannot change spec.f0, spec.f1"
    assert updates.warning(paths).endswith("spec.f9 and 2 more")
    assert updates.warning(paths[:10]).endswith("spec.f9")
