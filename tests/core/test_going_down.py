"""What is planned while the machine goes down: everything ends in time, and nothing of it is a wish."""

from __future__ import annotations

import pytest

from edgelet.core.memory import Ending
from tests.core.scenes import NOW, Case, ended, fresh, known, memory, newer, over, pod, runs, sandbox, scene, stops

CASES = [
    Case("nothing is begun", scene(pod(), None, fresh(), down=20)),
    Case(
        "every container is told to end, within the time left",
        scene(pod(), sandbox(runs(grace=60), runs("side", grace=5)), memory({"app": known()}), down=20),
        ("stop container app app-0 20", "stop container side side-0 5"),
    ),
    Case(
        "a stop under way ends in time",
        scene(pod(), sandbox(runs()), memory({"app": known(stopping=stops(ago=1))}), down=20),
        wake=NOW + 19,
    ),
    Case(
        "and is enforced",
        scene(pod(), sandbox(runs()), memory({"app": known(stopping=stops(ago=20))}), down=20),
        ("kill container app app-0",),
    ),
    Case(
        "what has ended is not started again, and its pod stays",
        scene(pod(), sandbox(ended(code=143)), memory({"app": over(143)}), down=20),
    ),
    Case(
        "a pod that runs until it succeeds has not succeeded by that, so it is made anew",
        scene(pod(restart_policy="OnFailure"), sandbox(runs()), memory({"app": known()}), down=20),
        ("stop container app app-0 20",),
        ending="the machine is going down",
        keeps_data=True,
        anew=True,
    ),
    Case(
        "and its sandbox goes at once",
        scene(
            pod(restart_policy="OnFailure"),
            sandbox(ended()),
            memory({"app": over()}, ending=Ending("the machine is going down", True, 1.0, True)),
            down=20,
        ),
        ("remove pod sandbox",),
        ending="the machine is going down",
        keeps_data=True,
    ),
    Case(
        "one that had succeeded before is left alone",
        scene(pod(restart_policy="OnFailure"), sandbox(ended()), memory({"app": over()}), down=20),
    ),
    Case(
        "a version that waits for its image does not keep the old one up",
        scene(newer(pod()), sandbox(runs()), memory({"app": known()}), down=20),
        ("stop container app app-0 20",),
    ),
    Case(
        "a pod that nobody wants any more goes as ever, but in time",
        scene(None, sandbox(runs(grace=60)), memory({"app": known()}), down=20),
        ("stop container app app-0 20",),
        ending="its manifest is gone",
    ),
    Case("a pod stopped by a person stays stopped", scene(pod(), None, fresh(), held=True, down=20)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_pain_50_the_machine_goes_down(case: Case) -> None:
    case.check()
