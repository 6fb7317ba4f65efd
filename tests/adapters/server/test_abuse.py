"""Callers that mean harm, or know no better: refused or bounded, and the server goes on as before."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgelet import errors
from edgelet.adapters.server import api, bounds, openapi, resources
from edgelet.cli.client import ApiFailure
from tests.adapters.server.test_submit import ask, manifest
from tests.support import described
from tests.support.serving import Rig, pod, running, serving

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with serving(tmp_path_factory.mktemp("s")) as rig:
        rig.store.put(pod(), running())
        yield rig


def raw(rig: Rig, data: bytes, seconds: float = 5.0) -> bytes:
    """What comes back to these bytes until the server closes or says nothing for a while."""
    found = b""
    with socket.socket(socket.AF_UNIX) as plain:
        plain.settimeout(seconds)
        plain.connect(rig.socket)
        with contextlib.suppress(OSError):
            plain.sendall(data)
            while part := plain.recv(65536):
                found += part
    return found


def head(*lines: str, method: str = "GET", path: str = PODS) -> bytes:
    """The head of a request."""
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()


SMUGGLED = b"DELETE /api/v1/namespaces/default/pods/web-edge1 HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        head("Content-Length: 5", "Transfer-Encoding: chunked", method="POST") + b"0\r\n\r\n" + SMUGGLED,
        head("Content-Length: 3", "Content-Length: 90", method="POST") + b"abc" + SMUGGLED,
        head("Content-Length: +3", method="POST") + b"abc" + SMUGGLED,
        head("Transfer-Encoding: chunked, identity", method="POST") + b"0\r\n\r\n" + SMUGGLED,
        head("Transfer-Encoding: xchunked", method="POST") + b"0\r\n\r\n" + SMUGGLED,
        head(" Content-Length: 3", method="POST") + b"abc" + SMUGGLED,
        head("Content-Length : 3", method="POST") + b"abc" + SMUGGLED,
        head("X: a\nContent-Length: 3", method="POST") + SMUGGLED,
        b"GET /healthz HTTP/9.9\r\n\r\n" + SMUGGLED,
        b"\x16\x03\x01\x00\xa5\x01\x00" + SMUGGLED,
    ],
    ids=lambda r: repr(r[:80]),
)
def test_no_request_hides_in_another(rig: Rig, request_: bytes) -> None:
    answers = raw(rig, request_, 2.0)
    assert b"it comes from" not in answers  # what the hidden deletion would be answered
    assert b" 200 " not in answers.partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "path",
    [
        f"{PODS}/..%2f..%2f..%2fetc%2fpasswd/log",
        f"{PODS}/web-edge1/log?container=../../../etc/passwd",
        "/containerLogs/default/web-edge1/%2e%2e%2f%2e%2e%2fetc%2fshadow",
        f"{PODS}/../../../../etc/passwd",
        f"{PODS}/web-edge1%00/log",
        "/api/v1/namespaces/%ff%fe/pods/x",
    ],
)
def test_no_name_leads_out_of_its_place(rig: Rig, path: str) -> None:
    with pytest.raises(ApiFailure) as failure:
        rig.client.get(path)
    assert failure.value.code in (400, 404)


def test_too_much_is_refused_early(rig: Rig) -> None:
    long = head(f"X: {'a' * api.HEADER_BYTES}")
    assert not raw(rig, long).startswith(b"HTTP/1.1 200")
    big = head("Content-Type: application/json", f"Content-Length: {bounds.BODY_BYTES + 1}", method="POST")
    assert not raw(rig, big + b"{").startswith(b"HTTP/1.1 20")
    deep = b'{"a":' * 50_000
    assert ask(rig, "POST", PODS, deep).code == 400
    wide = json.dumps({**manifest("wide"), "x": ["a"] * 200_000}).encode()
    assert ask(rig, "POST", PODS, wide).code in (201, 400, 422)


DEEP = b"[" * 100_000
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize(
    ("method", "path", "kind"),
    [
        ("POST", REVIEWS, "application/json"),
        ("POST", PODS, "application/json"),
        ("POST", "/apis/edgelet.io/v1/apply", "application/yaml"),
        ("PUT", f"{PODS}/deep", "application/json"),
        ("DELETE", f"{PODS}/deep", "application/json"),
        *(("PATCH", f"{PODS}/deep", f"application/{kind}") for kind in ("json-patch+json", "merge-patch+json")),
        ("PATCH", f"{PODS}/deep", "application/strategic-merge-patch+json"),
        ("PATCH", f"{PODS}/deep?fieldManager=x", "application/apply-patch+yaml"),
    ],
)
def test_a_body_without_bottom_is_a_bad_request(rig: Rig, method: str, path: str, kind: str) -> None:
    ask(rig, "POST", PODS, manifest("deep"))  # there from the first time on
    lines = (f"Content-Type: {kind}", f"Content-Length: {len(DEEP)}", "Connection: close")
    answer = raw(rig, head(*lines, method=method, path=path) + DEEP)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 422 ")), answer[:400]


def test_a_place_in_a_list_without_bottom_is_a_bad_request(rig: Rig) -> None:
    token = base64.urlsafe_b64encode(b"[" * 20_000).decode().rstrip("=")
    answer = raw(rig, head("Connection: close", path=f"{PODS}?limit=1&continue={token}"))
    assert answer.startswith(b"HTTP/1.1 400 "), answer[:400]


def test_a_thousand_watches_are_bounded_and_the_server_still_answers(rig: Rig) -> None:
    watch = head(path=f"{PODS}?watch=1")
    opened = []
    for _ in range(1000):
        plain = socket.socket(socket.AF_UNIX)
        plain.settimeout(2)
        with contextlib.suppress(OSError):
            plain.connect(rig.socket)
            plain.sendall(watch)
        opened.append(plain)
        if len(opened) == bounds.CONNECTIONS // 2:
            began = time.monotonic()
            assert rig.client.get(f"{PODS}/web-edge1")["kind"] == "Pod"
            assert time.monotonic() - began < 10
    assert resources.Feed.watching == resources.WATCHES
    for plain in opened:
        plain.close()
    until = time.monotonic() + 20
    while True:
        try:
            assert rig.client.get(f"{PODS}/web-edge1")["kind"] == "Pod"
            return
        except (errors.EdgeletError, OSError) as error:
            if time.monotonic() > until:
                raise AssertionError("the server did not come back") from error
            time.sleep(0.1)


WORDS = st.text(max_size=12) | st.sampled_from(
    ["", "0", "-1", "1", "true", "web-edge1", "c", "All", "app=web", "a in (b"]
)
NAMES = ["apiVersion", "kind", "metadata", "spec", "name", "containers", "image", "$patch", "op", "path"]
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(
        st.sampled_from(NAMES) | WORDS, below, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
OPERATIONS = [
    (
        path,
        method,
        [p["name"] for p in what.get("parameters", ())],
        list(what.get("requestBody", {}).get("content", ())),
    )
    for document in (described.own(), described.routed())
    for path, operations in document["paths"].items()
    for method, what in operations.items()
    if method != "parameters"
]


EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "150"))
"""More of them for a long run: FUZZ_EXAMPLES=50000 (some ten minutes)."""


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(OPERATIONS), st.data())
def test_whatever_our_own_description_allows_is_answered_without_a_fault(
    rig: Rig, operation: tuple[str, str, list[str], list[str]], data: st.DataObject
) -> None:
    from urllib.parse import quote, urlencode

    path, method, names, kinds = operation
    for place in re.findall(r"{(\w+)}", path):
        value = data.draw(st.sampled_from(["default", "web-edge1", "none"]) | WORDS.filter(bool))
        path = path.replace("{" + place + "}", quote(value, safe=""))
    chosen = data.draw(st.lists(st.sampled_from(names), max_size=3, unique=True)) if names else []
    query = {name: data.draw(WORDS) for name in chosen if name != "watch"}
    kind = data.draw(st.sampled_from(kinds)) if kinds else "application/json"
    body = data.draw(TREES) if kinds else None
    answer = ask(rig, method.upper(), f"{path}?{urlencode(query, errors='replace')}", body, kind)
    assert answer.code < 500, (method, path, query, body, answer.body)


def test_every_route_is_fuzzed() -> None:
    paths = described.routed()["paths"]
    assert not [path for path in paths if re.search(r"[()?\\|*]", path)]
    assert {"/metrics/{name}", "/containerLogs/{namespace}/{name}/{container}", "/apis/{group}/{version}"} <= set(paths)
    one = paths["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert set(one) == {"parameters", "get", "post", "put", "patch", "delete"}


def test_reports_of_long_lists_stay_small() -> None:
    assert len(json.dumps(openapi.document())) < 600_000
