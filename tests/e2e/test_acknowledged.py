"""What the API has acknowledged is there after any kill: 1,000 names submitted, replaced and deleted at random.

The real agent on its real socket, killed at random moments.  Its Podman cannot be reached, so that no
container is started: this is about what is wanted.  It is read back by a dry run, which says of every
pod whether what is stored is `unchanged`.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from tests.e2e.agent import Agent, UnixConnection
from tests.e2e.manifests import container, pod
from tests.support.podman_env import PodmanEnv

NAMES = 1000
ACKNOWLEDGED = 1000
KILLS = 10
IMAGES = ("one", "two", "")
"""What a name may be: one of two manifests, or deleted."""
BATCH = 50


class NoPodman:
    """A podman that always fails."""

    flags = ("--no-such-flag",)


@pytest.fixture
def bare_agent(tmp_path: Path) -> Iterator[Agent]:
    """An agent whose Podman cannot be reached."""
    made = Agent(cast(PodmanEnv, NoPodman()), tmp_path)
    yield made
    made.kill()


def document(number: int, image: str) -> str:
    """The pod of that number in one of its two versions."""
    return json.dumps(pod(f"pod-{number}", container(image=f"localhost/{image or 'one'}:1")))


class Caller:
    """One connection to the agent of now; any failure of it means that an answer is missing."""

    def __init__(self, agent: Agent) -> None:
        self._connection = UnixConnection(str(agent.socket))

    def send(self, verb: str, path: str, body: str = "") -> Any:
        """The answer's body. Raises OSError or HTTPException when there is none."""
        self._connection.request(verb, path, body or None, {"Content-Type": "application/yaml"} if body else {})
        answer = self._connection.getresponse()
        read = json.loads(answer.read())
        assert answer.status in {200, 201}, read
        return read

    def set(self, number: int, image: str, there: bool) -> None:
        """Submit, replace or delete."""
        if image:
            self.send("POST", "/apis/edgelet.io/v1/apply", document(number, image))
        elif there:
            self.send("DELETE", f"/api/v1/namespaces/default/pods/pod-{number}")

    def stored(self, wanted: dict[int, str]) -> dict[int, str]:
        """What is stored under each of these names."""
        found: dict[int, str] = {}
        for image in ("one", "two"):
            for begin in range(0, len(wanted), BATCH):
                numbers = list(wanted)[begin : begin + BATCH]
                text = "\n---\n".join(document(n, image) for n in numbers)
                for item in self.send("POST", "/apis/edgelet.io/v1/apply?dryRun=All", text)["items"]:
                    number = int(item["name"].removeprefix("pod-"))
                    if item["verb"] == "created":
                        found[number] = ""
                    elif item["verb"] == "unchanged":
                        found[number] = image
        return found


def work(agent: Agent, wanted: dict[int, str], chance: random.Random) -> tuple[int, int, str]:
    """Random calls until the agent is killed: how many were acknowledged, and the call without an answer."""
    caller, done = Caller(agent), 0
    killer = threading.Timer(chance.uniform(0.0, 4.0), agent.kill)
    killer.start()
    try:
        while True:
            number, image = chance.randrange(NAMES), chance.choice(IMAGES)
            caller.set(number, image, bool(wanted.get(number)))
            wanted[number] = image
            done += 1
    except (OSError, http.client.HTTPException):
        return done, number, image
    finally:
        killer.join()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_thousand_pods_submitted_replaced_and_deleted_with_kills_end_as_acknowledged(bare_agent: Agent) -> None:
    chance, wanted = random.Random(6), dict.fromkeys(range(NAMES), "")
    begin, acknowledged, kills, late = time.monotonic(), 0, 0, 0
    bare_agent.start()
    while acknowledged < ACKNOWLEDGED or kills < KILLS:
        done, number, image = work(bare_agent, wanted, chance)
        acknowledged, kills = acknowledged + done, kills + 1
        bare_agent.start()
        stored = Caller(bare_agent).stored(wanted)
        assert stored[number] in {wanted[number], image}, f"the call without an answer left pod-{number} half changed"
        late += stored[number] != wanted[number]
        wanted[number] = stored[number]
        assert stored == wanted
        (api,) = [s for s in bare_agent.agent_status()["sources"] if s["name"] == "api"]
        assert (api["ok"], api["pods"]) == (True, sum(map(bool, wanted.values())))
    print(
        f"\n{acknowledged} calls acknowledged over {kills} kills ({late} took effect unanswered),"
        f" {sum(map(bool, wanted.values()))} pods at the end, {time.monotonic() - begin:.0f} s"
    )
