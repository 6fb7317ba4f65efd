"""The URL source against a real web server: nginx with TLS, ETag, gzip and a password."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters.url import Access, UrlSource
from tests.fakes import FakeClock
from tests.support.certificates import Authority
from tests.support.nginx import Nginx
from tests.support.sources import NODE, Sink, manifest


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "ca")


@pytest.fixture
def nginx(tmp_path: Path, authority: Authority) -> Iterator[Nginx]:
    made = Nginx(tmp_path, authority)
    (made.www / "pods.yaml").write_text(manifest("web"))
    made.start()
    yield made
    made.stop()


class Box:
    """One source on one path of nginx."""

    def __init__(self, tmp: Path, nginx: Nginx, ca: str, path: str = "pods.yaml") -> None:
        self.sink, self.clock = Sink(), FakeClock()
        access = Access((("X-Token", "secret"),), ca_file=ca)
        url = f"https://127.0.0.1:{nginx.port}/{path}"
        self.source = UrlSource(url, NODE, self.sink, self.clock, str(tmp / "store"), access=access)
        self.source.begin()

    def poll(self) -> dict[str, str]:
        """The next request; what runs then."""
        self.clock.advance(max(0.0, self.source.wake_at() - self.clock.monotonic()))
        self.source.step()
        return self.sink.images()


def test_content_unchanged_changed_broken_and_restored(tmp_path: Path, nginx: Nginx, authority: Authority) -> None:
    box = Box(tmp_path, nginx, authority.ca)
    assert [box.poll(), box.poll(), box.poll()] == [{"web": "one"}] * 3
    assert nginx.served() == [200, 304, 304]
    (nginx.www / "pods.yaml").write_text(manifest("web", "two") + "# longer\n")
    assert box.poll() == {"web": "two"}
    before = box.sink.last.pods
    for bad in ("", "<html>", manifest("web", "three")[:40]):
        (nginx.www / "pods.yaml").write_text(bad)
        box.poll()
        assert box.sink.last.pods == before and not box.source.state().ok
    os.unlink(nginx.www / "pods.yaml")
    box.poll()
    assert "answers 404" in box.source.state().message and box.sink.last.pods == before
    (nginx.www / "pods.yaml").write_text(manifest("web", "two") + "# longer\n")
    box.poll()
    assert box.sink.last.pods == before and box.source.state().ok


def test_a_server_that_restarts_is_found_again(tmp_path: Path, nginx: Nginx, authority: Authority) -> None:
    box = Box(tmp_path, nginx, authority.ca)
    box.poll()
    nginx.stop()
    assert box.poll() == {"web": "one"} and not box.source.state().ok
    nginx.start()
    assert box.poll() == {"web": "one"} and box.source.state().ok


@pytest.mark.parametrize(
    ("path", "pods", "said"),
    [
        ("moved.yaml", {"web": "one"}, ""),
        ("secret.yaml", {"web": "one"}, ""),
        ("loop.yaml", {}, "redirects more than 5 times"),
        ("busy.yaml", {}, "answers 503"),
        ("missing.yaml", {}, "answers 404"),
    ],
)
def test_answers_of_a_real_server(
    tmp_path: Path, nginx: Nginx, authority: Authority, path: str, pods: dict[str, str], said: str
) -> None:
    box = Box(tmp_path, nginx, authority.ca, path)
    assert box.poll() == pods
    assert said in box.source.state().message
    if path == "busy.yaml":
        assert box.source.wake_at() - box.clock.monotonic() >= 300
