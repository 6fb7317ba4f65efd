"""The real kubectl against an agent's TLS port, with the kubeconfig that the agent makes."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from tests.e2e.agent import Agent
from tests.support.ports import free_port


class Kubectl:
    """Commands of one user."""

    def __init__(self, agent: Agent, role: str = "admin") -> None:
        if shutil.which("kubectl") is None:
            pytest.skip("needs kubectl")
        self._home = Path(agent.directory) / f"home-{role}"
        self._home.mkdir(exist_ok=True)
        (self._home / "config").write_text(agent.cli("kubeconfig", "--role", role).stdout)

    @property
    def environment(self) -> dict[str, str]:
        """What kubectl is told by the environment."""
        return {**os.environ, "HOME": str(self._home), "KUBECONFIG": str(self._home / "config")}

    def __call__(self, *words: str, given: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """One command to its end."""
        done = subprocess.run(
            ["kubectl", *words],
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        if check and done.returncode:
            raise AssertionError(
                f"kubectl {' '.join(words)}: exit status {done.returncode}: {done.stdout}{done.stderr}"
            )
        return done


def serve(agent: Agent) -> int:
    """Start the agent with its TLS port open; which that is. Skips where the agent cannot make a certificate."""
    if importlib.util.find_spec("cryptography") is None:
        pytest.skip("the Python library cryptography (python3-cryptography) is not installed: no TLS port")
    port = free_port()
    agent.start(f"--port={port}")

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    agent.wait("the TLS port to answer", answers)
    return port
