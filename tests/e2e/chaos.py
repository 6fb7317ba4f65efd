"""Random trouble for one agent and its pods, and what must be true whenever the trouble is over.

Each round begins and ends settled.  `tests.e2e.chaos_run` plays them, `tests.e2e.chaos_pods` has the pods.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.agent import Agent, alive, end_services, inspect
from tests.e2e.chaos_pods import KINDS, Json
from tests.support import net_left

SETTLE = 480.0
"""Seconds until all is as it should be: several failures in a row are answered with growing patience."""
DYING = 10.0
"""Seconds that a killed process may take to be gone."""
GOING = 15.0
"""Seconds that a pod may take to go down, over as many rounds as there are in them."""
LEFT = 480.0
"""Seconds until what a killed Podman left is gone, at the end of all."""


@dataclass
class Chaos:
    """One run: `wanted` is the version by pod; `touched` are the pods that this round has given a cause to restart."""

    agent: Agent
    chance: random.Random
    wanted: dict[str, int] = field(default_factory=dict)
    kinds: dict[str, Callable[[str, int], Json]] = field(default_factory=lambda: KINDS)
    version: int = 0
    touched: set[str] = field(default_factory=set)
    edited: set[str] = field(default_factory=set)
    slow: dict[str, float] = field(default_factory=dict)
    """When pods were told to go down that may still run, and be Ready, when all looks as wanted."""
    rough: bool = False
    """Something was killed in this round."""
    hurt: bool = False
    """The job was begun in such a round: one that has lost its sandbox is not begun again, and has failed (3.2.2)."""
    story: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    before: dict[str, Any] = field(default_factory=dict)

    # -- trouble ------------------------------------------------------------------------------------

    def edit(self) -> None:
        """A new version, or a pod that is not there now."""
        name = self.chance.choice(sorted(self.kinds))
        self.version += 1
        self._touch(name, edited=True)
        self.wanted[name] = self.version
        self.agent.write(self.kinds[name](name, self.version), name=name)
        self._note(f"edit {name} to {self.version}")

    def delete(self) -> None:
        """A manifest goes."""
        if (name := self._some()) is None:
            return
        self._touch(name, edited=True)
        del self.wanted[name]
        self.agent.remove(name)
        self._note(f"delete {name}")

    def away_and_back(self) -> None:
        """A manifest goes and comes back, as an editor or a script does it."""
        if (name := self._some()) is None:
            return
        file, aside = self.agent.manifests / f"{name}.yaml", self.agent.directory / "aside"
        pause = self.chance.choice((0.0, 0.3, 1.0, 3.0)) * self.chance.random()
        self._touch(name, edited=True)
        self.slow[name] = time.monotonic()
        self._note(f"move {name} away for {pause:.2f} s")
        file.rename(aside)
        time.sleep(pause)
        aside.rename(file)

    def kill_container(self) -> None:
        """A container's process dies."""
        self._murder("container", lambda c: not c.get("IsInfra"), lambda c: int(c["State"]["Pid"]))

    def kill_infra(self) -> None:
        """An infra container's process dies."""
        self._murder("infra", lambda c: bool(c.get("IsInfra")), lambda c: int(c["State"]["Pid"]))

    def kill_conmon(self) -> None:
        """A monitor dies, of whatever container. What it watched is ended with grace: it runs on till then."""
        killed = self._murder("conmon", lambda c: True, lambda c: int(Path(c["ConmonPidFile"]).read_text()))
        self.slow |= dict.fromkeys(killed, time.monotonic())

    def kill_agent(self) -> None:
        """kill -9, and a new one a moment later."""
        self._note("kill the agent")
        self.agent.kill()
        time.sleep(self.chance.random() * self.chance.choice((0.1, 2.0)))
        self.agent.start(wait=False)

    def kill_service(self) -> None:
        """SIGKILL for the Podman service in the middle of what an edit makes it do, some times in a row."""
        for _ in range(self.chance.choice((1, 1, 2, 4))):
            if self.chance.random() < 0.7:
                self.edit()
            time.sleep(self.chance.random() * 0.8)
            end_services(self.agent.run_dir)
            self.rough = True
            self._note("kill the service")

    def restart(self) -> None:
        """A person restarts a pod."""
        if (name := self._some()) is None or not self.agent.running:
            return
        self._touch(name, edited=True)
        self.slow[name] = time.monotonic()
        self.agent.cli("restart", name, check=False)
        self._note(f"restart {name}")

    def troubles(self) -> list[Callable[[], None]]:
        """What may happen, as often as it should."""
        weights = (
            (self.edit, 5), (self.delete, 2), (self.away_and_back, 3), (self.kill_container, 4), (self.kill_infra, 2),
            (self.kill_conmon, 3), (self.kill_agent, 3), (self.kill_service, 4), (self.restart, 1),
        )  # fmt: skip
        return [trouble for trouble, weight in weights for _ in range(weight)]

    def _some(self) -> str | None:
        return self.chance.choice(sorted(self.wanted)) if self.wanted else None

    def _touch(self, name: str, edited: bool = False) -> None:
        self.touched.add(name)
        if edited:
            self.edited.add(name)

    def _note(self, what: str) -> None:
        self.counts[what.partition(" ")[0]] += 1
        self.story.append(f"{time.strftime('%H:%M:%S')} {what}")

    def _murder(self, what: str, which: Callable[[Json], bool], pid_of: Callable[[Json], int]) -> set[str]:
        """Kill a process of a random container that Podman says is running; the pod whose it was."""
        made = sorted(self._all(), key=lambda c: str(c["Name"]))
        self.chance.shuffle(made)
        for one in made:
            if one["State"]["Status"] != "running" or not which(one):
                continue
            with contextlib.suppress(OSError, ValueError):
                pid = pid_of(one)
                if pid <= 0:
                    continue
                name = self._pod_of(one)
                self._touch(name)
                self._note(f"{what} of {name} killed")
                self.rough = True
                _kill(pid)
                return {name}
        return set()

    def _all(self) -> list[Json]:
        """`podman inspect` of every container, infra too; patient with a machine that is busy."""
        end = time.monotonic() + SETTLE
        while True:
            try:
                rows = self.agent.rows("containers")
                return [{**c, "PodName": r["PodName"]} for r in rows for c in inspect(self.agent.env, r["Id"])]
            except TimeoutError:
                if time.monotonic() > end:
                    raise

    def _pod_of(self, made: Json) -> str:
        """The short name of the pod of a container."""
        return str(made["PodName"]).partition("-n1")[0]

    # -- a round --------------------------------------------------------------------------------------

    def round(self) -> None:
        """Some troubles at random moments, then quiet until all is as wanted."""
        late = {name for name, told in self.slow.items() if time.monotonic() - told < GOING}
        self.touched.clear()
        self.edited.clear()
        self.story.clear()
        self.rough = False
        kinds = self.troubles()
        for _ in range(self.chance.randint(1, 8)):
            self.chance.choice(kinds)()
            time.sleep(self.chance.choice((0.0, 0.2, 1.0)) * self.chance.random())
        self.quiet()
        self.hurt = self.rough if "job" in self.touched else self.hurt or (self.rough and "job" in late)
        self.touched |= late
        self.settle()
        self.compare()

    def quiet(self) -> None:
        """No more trouble from here on."""

    def settle(self) -> None:
        """Until desired = running; a container that waits for its back-off is edited, as a person would."""
        if not self.agent.running:
            self.agent.start(wait=False)
        end = time.monotonic() + SETTLE
        while wrong := self.wrong():
            if time.monotonic() > end:
                raise AssertionError(f"not settled: {wrong}")
            time.sleep(0.3)
            self._end_back_off()

    def _end_back_off(self) -> None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            for name in sorted(self.wanted):
                waits = [c for c in ("app", "side", "init") if self.agent.waiting(name, c) == "CrashLoopBackOff"]
                if waits and name not in self.edited:
                    self._touch(name, edited=True)
                    self.slow[name] = time.monotonic()
                    self.agent.cli("restart", name, check=False)

    def wrong(self) -> str:
        """What is not yet as wanted, "" = nothing."""
        try:
            shown = {n: self._shown(p) for n, p in self.agent.pods().items()}
            in_podman = self._wrong_in_podman()
        except (OSError, ValueError, http.client.HTTPException) as error:
            return f"no answer: {error}"
        wanted = {n: ("Succeeded" if n == "job" else "Running", n != "job", v) for n, v in self.wanted.items()}
        if self.hurt and "job" in wanted and shown.get("job", ("",))[0] == "Failed":
            wanted["job"] = ("Failed", False, self.wanted["job"])
        if shown != wanted:
            return f"shown {shown}, wanted {wanted}"
        return in_podman

    def _shown(self, found: Json) -> tuple[str, bool, int]:
        ready = {c["type"]: c["status"] for c in found["status"].get("conditions") or []}.get("Ready") == "True"
        said = found["spec"]["containers"][0].get("env") or [{}]
        return found["status"].get("phase", ""), ready, int(said[0].get("value", -1))

    def _wrong_in_podman(self) -> str:
        """Podman's own words about pods and containers."""
        pods = sorted(r["Name"].partition("-n1")[0] for r in self.agent.rows("pods"))
        if pods != sorted(self.wanted) and not (self.hurt and pods == sorted(self.wanted.keys() - {"job"})):
            return f"Podman has pods {pods}, wanted {sorted(self.wanted)}"
        every = self._all()
        dead = [c["Name"] for c in every if c["State"]["Running"] and not alive(int(c["State"]["Pid"]))]
        # a job has ended here, and its infra container ends with it
        odd = [c["Name"] for c in every if c.get("IsInfra") and c["State"]["Running"] == (self._pod_of(c) == "job")]
        if dead or odd:
            return f"dead, or alive without a reason: {dead + odd}"
        made = [c for c in every if not c.get("IsInfra")]
        running = sorted((self._pod_of(c), self._name_of(c)) for c in made if c["State"]["Running"])
        should = sorted(
            (n, c["name"]) for n in self.wanted if n != "job" for c in self.kinds[n](n, 0)["spec"]["containers"]
        )
        if running != should:
            return f"Podman runs {running}, wanted {should}"
        old = [c["Name"] for c in made if self._version(c) not in (None, self.wanted.get(self._pod_of(c)))]
        return f"of another version: {old}" if old else ""

    def _name_of(self, made: Json) -> str:
        return str((made["Config"]["Labels"] or {}).get("io.kubernetes.container.name", ""))

    def _version(self, made: Json) -> int | None:
        found = [e.partition("=")[2] for e in made["Config"]["Env"] if e.startswith("VERSION=")]
        return int(found[0]) if found else None

    def compare(self) -> None:
        """Nothing that this round gave no cause has been restarted."""
        now = self.identity()
        for name, before in self.before.items():
            if name not in self.touched:
                assert now.get(name) == before, f"{name} was restarted without a cause: {before} -> {now.get(name)}"
        self.before = now

    def identity(self) -> dict[str, Any]:
        """By pod: what must not change while nobody touches it."""
        found: dict[str, Any] = {}
        for made in self._all():
            if made.get("IsInfra") or made["State"]["Running"]:
                key = (made["Id"][:12], made["State"]["StartedAt"], made["State"]["Pid"])
                found.setdefault(self._pod_of(made), []).append(key)
        return {name: sorted(rows) for name, rows in found.items()}

    # -- the end ----------------------------------------------------------------------------------------

    def end(self) -> list[str]:
        """Take everything away through the agent; what is left then."""
        for path in self.agent.manifests.iterdir():
            path.unlink()
        self.wanted.clear()
        self.settle()
        end = time.monotonic() + LEFT
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(1)
        assert self.agent.stop() == 0, "the agent did not end in good order"
        return left

    def left(self) -> list[str]:
        """Anything of any pod that is still on the machine."""
        agent, storage = self.agent, self.agent.env.storage
        # A Podman that is killed while it makes a pod leaves a name in its storage that tells nobody whose it was.
        names = agent.podman("ps", "--all", "--external", "--format", "{{.Names}}").split()
        inside = [f"container of the storage {name}" for name in names if not name.endswith("-infra")]
        logs = [f"log directory {p}" for p in agent.logs.glob("*")] if agent.logs.exists() else []
        data = [f"data {p}" for p in (agent.root / "pods").glob("*")]
        below = Path("/proc/self/mountinfo").read_text().splitlines()
        mounts = [line.split()[4] for line in below if f" {storage.root}/" in line and "/merged" in line]
        return [*agent.leftovers(), *net_left.found(), *inside, *logs, *data, *(f"mount {m}" for m in mounts)]


def _kill(pid: int) -> None:
    """SIGKILL, and dead: on a busy box it takes a while, in which a round could end as if nothing had happened."""
    os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + DYING
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.002)
