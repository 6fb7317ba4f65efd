"""A manifest saved by real editors and tools at random moments, with a real pod behind it.

The pod ends as the last whole file says, and is never stopped for a moment that the file did not
ask for: the container itself and the test write into one journal, so the order of its lines is what
happened.  A save announced as `saving v7` before it begins is what version 7 may start for, and
what version 6 may stop for; each instance listens on one port of the host, so that two at a time are
seen as well; a save that changes nothing and a cut upload announce nothing.

    EDGELET_SAVES=500 EDGELET_SAVES_STATE=FILE make saves       at most 40 minutes, then again to go on

Round N of a seed (`EDGELET_SAVES_SEED`) always makes the same saves, so a find can be repeated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import pod
from tests.support import editors
from tests.support.podman_env import IMAGE

ROUNDS = int(os.environ.get("EDGELET_SAVES", "24"))
SEED = int(os.environ.get("EDGELET_SAVES_SEED", "4"))
STATE = os.environ.get("EDGELET_SAVES_STATE", "")
"""File that keeps the number of the next round until all are done."""
PART = 2400.0
"""Seconds after which a long run ends a part."""
QUIET = 1.2
"""Seconds in which a save that changes nothing would have had its effect: twice what the agent waits for."""

MANIFEST = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  hostNetwork: true
  terminationGracePeriodSeconds: 5
  volumes:
  - name: journal
    hostPath: {{path: {journal}}}
  containers:
  - name: app
    env:
    - name: VERSION
      value: v{version}
    command:
    - sh
    - -c
    - |
      trap 'echo stop $VERSION >> /journal/lines; exit 0' TERM
      echo start $VERSION >> /journal/lines
      nc -l -p {port} & wait $!
      echo beside $VERSION >> /journal/lines
      sleep 1000 & wait $!
    volumeMounts: [{{name: journal, mountPath: /journal}}]
    image: {image}
"""


def check(lines: list[str]) -> int:
    """Whether the pod only ever stopped for a newer version that was being saved, never went back, and was never two.

    Returns how many ended without a line of theirs: a process that is told to end before it has set
    its trap is killed when its grace is over.
    """
    running, newest, asked, silent = 0, 0, 0, 0
    for at, line in enumerate(lines):
        verb, _, text = line.partition(" v")
        version, where = int(text), f"line {at + 1} of {lines[max(0, at - 8) : at + 1]}"
        if verb == "saving":
            asked = version
        elif verb == "start":
            assert newest < version <= asked, f"v{version} starts after v{newest}, and v{asked} was saved: {where}"
            silent += running > 0
            running = newest = version
        elif verb == "stop":
            assert running in {0, version}, f"v{version} stops, which does not run: {where}"
            assert asked > version, f"v{version} stops though nothing newer was saved: {where}"
            running = 0
        else:
            raise AssertionError(f"v{version} runs beside another: {where}")
    return silent


@dataclasses.dataclass
class Scene:
    """The pod, its file and its journal; `version` is what the last whole file says."""

    agent: Agent
    file: Path
    journal: Path
    port: int
    version: int = 0
    saves: int = 0
    kills: int = 0
    cut: bool = False
    delays: list[float] = dataclasses.field(default_factory=list)

    def text(self, version: int) -> str:
        """The file of that version."""
        return MANIFEST.format(journal=self.journal.parent, version=version, image=IMAGE, port=self.port)

    def lines(self) -> list[str]:
        """The journal so far."""
        return self.journal.read_text().splitlines()

    def save(self, how: editors.Save, changed: bool) -> None:
        """One save, of a new version or of what is there already."""
        if changed:
            self.version += 1
            with open(self.journal, "a") as journal:
                journal.write(f"saving v{self.version}\n")
        how(self.file, self.text(self.version))
        self.saves, self.cut = self.saves + 1, False

    def cut_off(self, chance: random.Random) -> None:
        """An upload of the next version that breaks off."""
        editors.cut_upload(self.file, self.text(self.version + 1), chance)
        self.saves, self.cut = self.saves + 1, True

    def settle(self) -> None:
        """Until the pod is as the last whole file says; a cut one is told."""
        begin = time.monotonic()
        if self.cut:
            self.agent.wait("a word about the cut file", lambda: self.agent.agent_status()["sources"][0]["problems"])
        self.agent.wait(f"v{self.version} to run", self._runs, seconds=60)
        self.delays.append(time.monotonic() - begin)
        check(self.lines())

    def _runs(self) -> bool:
        happened = [line for line in self.lines() if not line.startswith("saving")]
        return happened[-1:] == [f"start v{self.version}"]

    def look(self) -> None:
        """What Podman and the agent say: one container, of that version, which never ended."""
        self.agent.wait_ready("web", "still")
        (made,) = self.agent.of_pod("web")
        assert f"VERSION=v{self.version}" in made["Config"]["Env"]
        assert (made["State"]["Status"], self.agent.restarts("web")) == ("running", 0)


def play(scene: Scene, number: int) -> None:
    """Round `number`: one to three saves at random moments, sometimes over the end of an agent."""
    chance = random.Random(SEED * 1_000_003 + number)
    kinds: list[Callable[[Path, str], None]] = [save for _, save in sorted(editors.tools().items())]
    killed = chance.random() < 0.04
    if killed:
        scene.agent.kill()
        scene.kills += 1
    idle = chance.random() < 0.15
    for _ in range(chance.choice((1, 1, 2, 3))):
        if chance.random() < 0.15:
            scene.cut_off(chance)
            time.sleep(chance.random() * 0.7)
        # Editors open a whole file: what was cut is sent again.
        how = editors.slow_upload if scene.cut else chance.choice(kinds)
        scene.save(how, changed=not idle)
        time.sleep(chance.choice((0.0, 0.1, 0.8)) * chance.random())
    if killed:
        scene.agent.start()
    if idle:
        time.sleep(QUIET)
    scene.settle()
    if chance.random() < 0.1:
        # Only now: a whole file that is cut a millisecond later cannot have been read by anybody.
        scene.cut_off(chance)
        scene.settle()
        scene.save(editors.slow_upload, changed=False)


@pytest.fixture
def scene(agent: Agent) -> Scene:
    """A pod that runs, and one beside it that nobody touches."""
    journal = agent.directory / "journal" / "lines"
    journal.parent.mkdir()
    journal.write_text("")
    made = Scene(agent, agent.manifests / "web.yaml", journal, _port())
    agent.start().write(pod("still", hostNetwork=True))
    made.save(editors.move, changed=True)
    made.settle()
    made.look()
    return made


def _port() -> int:
    """A free port of the host's that no outgoing connection is given: only one instance can listen on it."""
    while True:
        with contextlib.suppress(OSError), socket.create_server(("0.0.0.0", random.randrange(20000, 30000))) as found:
            return int(found.getsockname()[1])


def _begin() -> int:
    return int(Path(STATE).read_text()) if STATE and Path(STATE).exists() else 0


@pytest.mark.slow
@pytest.mark.timeout(PART + 300)
def test_pain_97_pain_101_pain_110_saves_of_real_editors_never_stop_a_pod_unasked(scene: Scene) -> None:
    before = scene.agent.running_id("still")
    begin, first = time.monotonic(), _begin()
    last = first
    for number in range(first, ROUNDS):
        try:
            play(scene, number)
        except AssertionError as error:
            error.add_note(f"in round {number} of seed {SEED}")
            raise
        last = number + 1
        if STATE:
            Path(STATE).write_text(str(last))
        if last % 25 == 0:
            scene.look()
        if time.monotonic() - begin > PART:
            break
    if STATE and last == ROUNDS:
        Path(STATE).unlink(missing_ok=True)
    scene.look()
    assert scene.agent.running_id("still") == before
    delays, silent = sorted(scene.delays), check(scene.lines())
    assert silent <= 1 + scene.version // 25
    print(
        f"\nseed {SEED}: rounds {first} to {last}, {scene.saves} saves of {len(editors.tools())} kinds,"
        f" {scene.kills} kills of the agent, {scene.version} versions, {silent} without a word;"
        f" settled after {delays[len(delays) // 2]:.2f} s (median), {delays[-1]:.2f} s at most,"
        f" in {time.monotonic() - begin:.0f} s"
    )


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("saving v1, start v1, stop v1", "nothing newer"),
        ("saving v1, start v1, stop v1, start v1", "nothing newer"),
        ("saving v1, start v1, saving v2, beside v2, start v2", "beside"),
        ("saving v1, start v1, saving v2, stop v1, start v1", "after v1"),
        ("saving v1, start v2", "v1 was saved"),
        ("saving v1, start v1, saving v2, saving v3, stop v2", "does not run"),
    ],
)
def test_the_check_sees_a_pod_that_was_touched(lines: str, fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        check(lines.split(", "))
    fine = (
        "saving v1, start v1, saving v2, saving v3, stop v1, start v3, saving v4, stop v3, saving v5, stop v4, start v5"
    )
    assert check(fine.split(", ")) == 0
    assert check(["saving v1", "start v1", "saving v2", "start v2"]) == 1
