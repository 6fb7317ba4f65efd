"""The log path of the API, over real files."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgelet.adapters.logs.reader import LogReader
from edgelet.adapters.server import logs
from edgelet.cli.client import ApiFailure
from edgelet.model.layout import Layout
from edgelet.model.pod import Container
from edgelet.model.status import ContainerStatus, PodStatus, Running, Terminated, Waiting
from tests.support.serving import NOW, Rig, pod, running, serving

PATH = "/api/v1/namespaces/default/pods/web-edge1/log"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with serving(tmp_path, logs=LogReader(Layout("", "", str(tmp_path / "pods")))) as rig:
        yield rig


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "c" / "1.log"
    path.parent.mkdir()
    path.write_text(line("old", 10) + line("new", 50))
    path.with_name("0.log").write_text(line("before", 1))
    return path


def line(text: str, second: int) -> str:
    """One log entry, some seconds after 22:13 (the fake clock stands at 22:13:20)."""
    return f"2023-11-14T22:{13 if second < 60 else 14}:{second % 60:02d}Z stdout F {text}\n"


def status(log: Path, ended: bool = False) -> PodStatus:
    """A pod whose container has that log."""
    state = Terminated(0, "Completed", NOW, NOW) if ended else Running(NOW)
    last = Terminated(1, "Error", NOW, NOW)
    made = ContainerStatus("c", "i", state, last, restart_count=1, log_path=str(log), ready=not ended)
    return running(containers=(made,))


def text(rig: Rig, **query: str) -> str:
    """The whole answer."""
    return b"".join(rig.client.chunks(PATH, query)).decode()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, "old\nnew\n"),
        ({"container": "c"}, "old\nnew\n"),
        ({"tailLines": "1"}, "new\n"),
        ({"tailLines": "0"}, ""),
        ({"tailLines": "-1"}, "old\nnew\n"),
        ({"limitBytes": "2"}, "ol"),
        ({"sinceSeconds": "5"}, "new\n"),
        ({"sinceTime": "2023-11-14T22:13:50Z"}, "new\n"),
        ({"previous": "true"}, "before\n"),
        ({"timestamps": "1", "tailLines": "1"}, "2023-11-14T22:13:50Z new\n"),
    ],
)
def test_every_parameter(rig: Rig, log: Path, query: dict[str, str], expected: str) -> None:
    rig.store.put(pod(), status(log))
    assert text(rig, **query) == expected


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"tailLines": "x"}, "BadRequest.*tailLines"),
        ({"tailLines": "-2"}, "BadRequest.*tailLines"),
        ({"limitBytes": "0"}, "BadRequest.*limitBytes"),
        ({"sinceTime": "yesterday"}, "BadRequest.*sinceTime"),
        ({"sinceTime": "2023-11-14T22:13:50Z", "sinceSeconds": "5"}, "Invalid.*together"),
        ({"container": "nope"}, "BadRequest.*container nope is not valid for pod web-edge1"),
        ({"container": "../../etc/passwd"}, "is not valid"),
    ],
)
def test_mistakes_are_named(rig: Rig, log: Path, query: dict[str, str], says: str) -> None:
    rig.store.put(pod(), status(log))
    with pytest.raises(ApiFailure, match=says):
        text(rig, **query)


def test_a_container_that_waits_says_for_what(rig: Rig, log: Path) -> None:
    waiting = ContainerStatus("c", "i", Waiting("ErrImagePull"))
    rig.store.put(pod(), running(containers=(waiting,)))
    with pytest.raises(ApiFailure, match="is waiting to start: image can't be pulled"):
        text(rig)
    rig.store.put(pod(), PodStatus("Pending"))
    with pytest.raises(ApiFailure, match="is waiting to start: ContainerCreating"):
        text(rig)


def test_a_container_must_be_chosen_from_several(rig: Rig, log: Path) -> None:
    containers = (Container("c", "i"), Container("d", "i"))
    several = dataclasses.replace(pod(), containers=containers, init_containers=(Container("i", "i"),))
    rig.store.put(several, status(log))
    with pytest.raises(ApiFailure, match=r"choose one of: \[c d\] or one of the init containers: \[i\]"):
        text(rig)
    noted = {"kubectl.kubernetes.io/default-container": "c"}
    rig.store.put(dataclasses.replace(several, annotations=noted), status(log))
    assert text(rig) == "old\nnew\n"


class Follower:
    """`follow` in a thread."""

    def __init__(self, rig: Rig) -> None:
        self.text = ""
        self._news = threading.Condition()
        self._chunks = rig.client.chunks(PATH, {"follow": "true", "tailLines": "0"})
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        for chunk in self._chunks:
            with self._news:
                self.text += chunk.decode()
                self._news.notify_all()

    def wait(self, wanted: str) -> bool:
        """Whether that text comes within some seconds."""
        with self._news:
            return self._news.wait_for(lambda: self.text == wanted, timeout=10)


def started(before: int) -> None:
    """Wait until one more log is followed."""
    deadline = time.monotonic() + 10
    while logs.Log.following == before and time.monotonic() < deadline:
        time.sleep(0.01)


def test_a_followed_log_goes_on_until_the_container_ends(rig: Rig, log: Path) -> None:
    rig.store.put(pod(), status(log))
    before = logs.Log.following
    follower = Follower(rig)
    started(before)
    with log.open("a") as more:
        more.write(line("one", 51))
    assert follower.wait("one\n")
    log.rename(log.with_name("1.log.20231114-221400"))
    log.write_text(line("two", 52))
    assert follower.wait("one\ntwo\n")
    with log.open("a") as more:
        more.write(line("last", 53))
    rig.store.put(pod(), status(log, ended=True))
    follower.thread.join(10)
    assert not follower.thread.is_alive()
    assert follower.text == "one\ntwo\nlast\n"


def test_a_follower_leaves_when_the_server_stops(tmp_path: Path, log: Path) -> None:
    with serving(tmp_path, logs=LogReader(Layout("", "", ""))) as rig:
        rig.store.put(pod(), status(log))
        before = logs.Log.following
        follower = Follower(rig)
        started(before)
    follower.thread.join(10)
    assert not follower.thread.is_alive()


def test_followers_are_bounded(rig: Rig, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "FOLLOWERS", 0)
    rig.store.put(pod(), status(log))
    with pytest.raises(ApiFailure, match="TooManyRequests"):
        text(rig, follow="true")
    assert text(rig) == "old\nnew\n"
