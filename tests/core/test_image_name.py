"""Which names an image can have; the verdicts are those of the kubelet's library."""

from __future__ import annotations

import pytest

from edgelet.core import image_name

GOOD = (
    "nginx", "nginx:1.27", "a/b", "UPPER/x", "localhost/x:1", "registry.local:5000/a/b:1.2_3-x", "[::1]:5000/x",
    "docker.io/library/nginx@sha256:" + "0" * 64, "host.x/n:t@sha256:" + "ab" * 32, "a__b/c-d--e", "x" * 255,
)  # fmt: skip
BAD = {
    "UPPER:1": "invalid reference format: repository name (library/UPPER) must be lowercase",
    "localhost/UPPER:1": "invalid reference format: repository name (UPPER) must be lowercase",
    "q.io/a/B": "invalid reference format: repository name (a/B) must be lowercase",
    "a:b:c": "invalid reference format",
    "a/": "invalid reference format",
    "-a": "invalid reference format",
    "a___b": "invalid reference format",
    "a@sha256:12": "invalid reference format",
    "a:" + "t" * 129: "invalid reference format",
    "http://x/y": "invalid reference format",
    "ab" * 32: f"invalid repository name ({'ab' * 32}), cannot specify 64-byte hexadecimal strings",
    "x" * 256: "repository name must not be more than 255 characters",
}


@pytest.mark.parametrize("name", GOOD)
def test_names(name: str) -> None:
    assert image_name.fault(name) == ""


@pytest.mark.parametrize("name", BAD)
def test_what_is_none(name: str) -> None:
    assert image_name.fault(name) == BAD[name]
