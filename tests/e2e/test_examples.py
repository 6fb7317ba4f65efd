"""manifests/ run as they are."""

from __future__ import annotations

import shutil
import urllib.request

from edgelet import demo
from tests.e2e.agent import ROOT, Agent

EXAMPLES = ROOT / "manifests"


def fetch(port: int) -> str:
    """What the example behind that port of this machine answers."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as reply:
        return str(reply.read().decode())


def test_the_examples_run_as_they_are(agent: Agent) -> None:
    agent.env.run("import", "--change", "ENV PATH=/bin", "-", demo.IMAGE, data=demo.root_file_system())
    for path in EXAMPLES.glob("*.yaml"):
        shutil.copy(path, agent.manifests)
    agent.start()
    agent.wait_ready("web", "shared-volume", "host-network", "host-device", seconds=60)
    assert fetch(18080) == "hello from web in web-n1\n"
    assert ":" in fetch(18081)
    assert "Inter-" in fetch(18082)
    agent.wait("a reading", lambda: "00 00 00 00" in agent.container_log("host-device", "reader"))
    agent.inside("web", "rm", "/www/ready", container="server")
    agent.wait("it to be not ready", lambda: agent.condition("web") == "False")
    assert agent.restarts("web", "server") == 0
    assert not agent.agent_status()["sources"][0]["problems"]
