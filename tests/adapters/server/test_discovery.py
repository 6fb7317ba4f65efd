"""Both forms of discovery say the same, in the shape of a real API server's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edgelet.adapters.server.discovery import AGGREGATED
from tests.support import recorded
from tests.support.serving import Rig, serving

Json = dict[str, Any]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path) as rig:
        yield rig


def flat(found: Json) -> set[tuple[str, str, str]]:
    """(group, resource, kind) of an aggregated answer."""
    rows = set()
    for group in found["items"]:
        name = group["metadata"].get("name", "")
        for resource in group["versions"][0]["resources"]:
            rows.add((name, resource["resource"], resource["responseKind"]["kind"]))
            for below in resource.get("subresources", ()):
                rows.add((name, f"{resource['resource']}/{below['subresource']}", below["responseKind"]["kind"]))
    return rows


def test_both_forms_say_the_same(rig: Rig) -> None:
    plain = {("", r["name"], r["kind"]) for r in rig.client.get("/api/v1")["resources"]}
    assert flat(rig.client.get("/api", accept=AGGREGATED)) == plain
    named = set()
    for group in rig.client.get("/apis")["groups"]:
        version = group["preferredVersion"]["groupVersion"]
        named |= {(group["name"], r["name"], r["kind"]) for r in rig.client.get(f"/apis/{version}")["resources"]}
    assert flat(rig.client.get("/apis", accept=AGGREGATED)) == named
    assert rig.client.get("/api")["kind"] == "APIVersions"


def test_the_aggregated_form_has_the_recorded_shape(rig: Rig) -> None:
    theirs = json.loads((recorded.folder() / "api_aggregated_v2.json").read_text())
    ours = rig.client.get("/api", accept=AGGREGATED)
    assert (ours["kind"], ours["apiVersion"]) == (theirs["kind"], theirs["apiVersion"])
    known = {r["resource"]: r for r in theirs["items"][0]["versions"][0]["resources"]}
    for resource in ours["items"][0]["versions"][0]["resources"]:
        model = known[resource["resource"]]
        assert resource["scope"] == model["scope"]
        assert resource["singularResource"] == model["singularResource"]
        assert resource["responseKind"]["kind"] == model["responseKind"]["kind"]
        assert resource.get("shortNames") == model.get("shortNames")
        assert set(resource["verbs"]) <= set(model["verbs"])
