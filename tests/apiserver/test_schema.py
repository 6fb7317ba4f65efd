"""The fake server's look at bodies: its table is the API's own, and what is wrong is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.model.test_fields import OPENAPI, described, short
from tests.support.apiserver import FakeServer, Refusal, schema

COORDINATION = OPENAPI.with_name("apis__coordination.k8s.io__v1_openapi.json")
SIGNING = "CertificateSigningRequest"
CONDITION = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}


@pytest.mark.skipif(not COORDINATION.exists(), reason=f"the API's description is not at {OPENAPI.parent}")
def test_the_table_equals_the_openapi_description() -> None:
    schemas = {short(name): s for path in (OPENAPI, COORDINATION) for name, s in _schemas(path).items()}
    types = {n: rows for n, rows in schema.own().items() if not n.startswith(SIGNING)}
    assert {"Node", "Event", "Lease", "DeleteOptions"} <= set(types)
    for name, rows in types.items():
        expected = {key: described(value) for key, value in schemas[name]["properties"].items()}
        assert {f.name: (f.shape, f.type) for f in rows.values()} == expected, name
        assert {f.name for f in rows.values() if f.required} == set(schemas[name].get("required", [])), name


def _schemas(path: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())["components"]["schemas"]
    return found


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"phase": "Running", "startTime": "2026-01-01T00:00:00Z", "conditions": [CONDITION]}, ""),
        ({"phases": "Running"}, "status.phases: PodStatus has no such field"),
        ({"startTime": 1700000000}, "status.startTime: must be Time"),
        ({"startTime": "2026-01-01T00:00:00.5Z"}, "status.startTime: must be Time"),
        ({"conditions": {"type": "Ready"}}, "status.conditions: must be a list"),
        ({"containerStatuses": [{"name": 1}]}, "status.containerStatuses[0].name: must be str"),
        ({"containerStatuses": [{"restartCount": "1"}]}, "status.containerStatuses[0].restartCount: must be int32"),
        ({"resources": {"limits": {"cpu": "much"}}}, "status.resources.limits[cpu]: must be Quantity"),
    ],
)
def test_what_is_wrong_with_a_status_is_told(status: dict[str, Any], told: str) -> None:
    look = schema.Look(patch=True)
    look.row({"status": status}, "Pod")
    assert [line[: len(told)] for line in look] == ([told] if told else [])


def test_what_is_missing_is_told_of_whole_objects_only() -> None:
    whole, patch = schema.Look(), schema.Look(patch=True)
    for look in (whole, patch):
        look.row({"metadata": {}}, "Event")
    assert [*whole] == [".involvedObject: is required"] and not [*patch]


def test_the_server_remembers_what_clients_did_wrong(server_alone: FakeServer) -> None:
    s = server_alone
    s.create("/api/v1/nodes", {"metadata": {"name": "n1"}, "spec": {"colour": "red"}})
    assert s.violations == [], "what a test does as administrator is its own business"
    with pytest.raises(Refusal, match="must be bool"):
        s.create("/api/v1/nodes", {"metadata": {"name": "n2"}, "spec": {"unschedulable": "yes"}})
