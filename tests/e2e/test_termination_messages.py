"""What a container says at its end, through the real agent on real Podman (semantics 3.14)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.agent import Agent
from tests.e2e.manifests import container, mount, pod

FALLBACK = "FallbackToLogsOnError"


def says(agent: Agent, name: str, container_name: str = "app") -> str:
    """The termination message of a container that has ended."""
    return str(agent.container(name, container_name)["state"]["terminated"].get("message", ""))


def end(agent: Agent, phase: str, *containers: dict[str, Any], **spec: Any) -> None:
    """Run a pod called `last` to its end."""
    agent.start().write(pod("last", *containers, restartPolicy="Never", **spec))
    agent.wait(f"the pod to have {phase}", lambda: agent.phase("last") == phase)


ARM = b"\x7fELF\x02\x01\x01" + bytes(9) + (2).to_bytes(2, "little") + (183).to_bytes(2, "little") + bytes(200)
"""Begins as a program for arm64 does (elf(5): EM_AARCH64)."""


def test_a15_a_message_in_the_file_is_told_with_the_end(agent: Agent) -> None:
    end(agent, "Succeeded", container(script="printf DONE > /dev/termination-log"))
    assert says(agent, "last") == "DONE"  # no wait: whoever sees the phase sees the message
    assert "DONE" in agent.cli("describe", "pod", "last").stdout


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ("printf DONE; exit 1", 1, "DONE"),
        ("echo out; echo err >&2; exit 1", 1, "out\nerr\n"),
        ("echo log; printf FILE > /dev/termination-log; exit 1", 1, "FILE"),
        ("echo log; exit 0", 0, ""),
    ],
    ids=["a16: the log of a failure", "both streams", "the file comes first", "no failure, no log"],
)
def test_a16_the_log_stands_in_for_a_message_after_an_error(agent: Agent, script: str, code: int, message: str) -> None:
    end(agent, "Failed" if code else "Succeeded", container(script=script, terminationMessagePolicy=FALLBACK))
    assert says(agent, "last") == message


def test_messages_are_cut_to_their_limits(agent: Agent) -> None:
    many = "head -c {} /dev/zero | tr '\\0' {}"
    end(
        agent,
        "Failed",
        container("file", f"{{ {many.format(5000, 'x')}; printf END; }} > /dev/termination-log; exit 1"),
        container("lines", "seq 1 100; exit 1", terminationMessagePolicy=FALLBACK),
        container("bytes", f"{many.format(3000, 'y')}; echo; exit 1", terminationMessagePolicy=FALLBACK),
    )
    assert says(agent, "last", "file") == "x" * 4093 + "END"  # 4096 bytes of a file, the last ones
    assert says(agent, "last", "lines") == "".join(f"{n}\n" for n in range(21, 101))  # 80 lines of a log
    assert says(agent, "last", "bytes") == "y" * 2047 + "\n"  # 2048 bytes of a log


def test_all_messages_of_a_pod_share_12288_bytes(agent: Agent) -> None:
    script = "{ printf BEGIN; head -c 4091 /dev/zero | tr '\\0' z; } > /dev/termination-log"
    end(agent, "Succeeded", *(container(name, script) for name in ("a", "b", "c", "d")))
    assert {says(agent, "last", name) for name in ("a", "b", "c", "d")} == {"BEGIN" + "z" * 3067}


def test_anybody_may_write_it_at_any_path_and_none_is_made_unasked(agent: Agent) -> None:
    user = {"securityContext": {"runAsUser": 12345, "readOnlyRootFilesystem": True}}
    end(
        agent,
        "Succeeded",
        container("user", "printf mine > /last/words", terminationMessagePath="/last/words", **user),
        container("own", "printf yours > /v/x", terminationMessagePath="/v/x", volumeMounts=[mount("v", "/v")]),
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    assert (says(agent, "last", "user"), says(agent, "last", "own")) == ("mine", "yours")


def test_each_instance_has_its_own_message_also_after_a_restart_of_the_agent(agent: Agent) -> None:
    script = "n=$(cat /data/n || echo 0); echo $((n+1)) > /data/n; printf end-$n > /dev/termination-log; exit 1"
    app = container(script=script, volumeMounts=[mount("data", "/data")])
    agent.start().write(pod("crash", app, volumes=[{"name": "data", "emptyDir": {}}]))
    agent.wait("the second restart", lambda: agent.restarts("crash") == 2, 60)
    agent.wait("its end", lambda: agent.waiting("crash") == "CrashLoopBackOff")
    assert agent.container("crash")["lastState"]["terminated"]["message"] == "end-2"
    files = list(agent.root.glob("pods/*/containers/app/*"))
    assert sorted(f.name for f in files) == ["00000001", "00000002"]
    agent.kill()
    agent.start()
    agent.wait("the state from before", lambda: agent.waiting("crash") == "CrashLoopBackOff")
    assert agent.container("crash")["lastState"]["terminated"]["message"] == "end-2"


@pytest.mark.parametrize("program", [b"echo hi\n", ARM], ids=["no #!", "arm64"])
def test_a_program_that_this_machine_cannot_run_says_so_and_backs_off(agent: Agent, program: bytes) -> None:
    """runc starts it and its last words are in the log; crun refuses the start. Both say what the kernel said."""
    image = "localhost/edgelet-format:1"
    agent.env.add_image(image, extra={"odd": program})
    policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    agent.start().write(pod("odd", {"name": "app", "image": image, "command": ["/odd"], **policy}))
    agent.wait("a back-off", lambda: agent.waiting("odd") == "CrashLoopBackOff")
    ended = agent.container("odd").get("lastState", {}).get("terminated", {})
    told = ended.get("message", "") + "".join(e["message"] for e in agent.events("odd"))
    assert "exec format error" in told.lower()
