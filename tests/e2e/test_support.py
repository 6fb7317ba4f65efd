"""`edgelet support` of a running box: all that helps, and no secret of any kind that the box holds."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

from tests.e2e.agent import Agent
from tests.e2e.kubectl import serve
from tests.e2e.manifests import container, env, pod

SECRET = "hunter2-"


def test_the_archive_has_what_helps_and_no_secret(agent: Agent) -> None:
    serve(agent)
    hidden = container(env=env(DB=f"{SECRET}env"), script=f": --password={SECRET}arg; while :; do sleep 1; done")
    headers = [{"name": "X-Key", "value": f"{SECRET}header"}]
    hidden["livenessProbe"] = {"httpGet": {"port": 1, "httpHeaders": headers}, "initialDelaySeconds": 900}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": f"{SECRET}data"}}
    agent.write(pod("web", hidden), secret)
    agent.wait("it to run", lambda: agent.running_id("web"), 90)
    url = f"--manifest-url=http://user:{SECRET}url@127.0.0.1:1/pods?token={SECRET}query"
    agent.stop()
    agent.start(*agent.flags, url, f"--manifest-url-header=Authorization:Bearer {SECRET}bearer")
    agent.wait("the source to be tried", lambda: "127.0.0.1:1" in json.dumps(agent.agent_status()["sources"]))
    file = Path(agent.directory) / "out.tar.gz"
    told = agent.cli("support", "--file", str(file), "--log", str(agent.log)).stdout
    assert told == f"{file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as tar:
        found = {m.name.partition("/")[2]: tar.extractfile(m).read().decode() for m in tar.getmembers()}  # type: ignore[union-attr]
    assert not [name for name, text in found.items() if SECRET in text]
    tokens = [line.split(",")[0] for line in (agent.root / "pki/tokens.csv").read_text().splitlines()]
    assert not [name for name, text in found.items() if any(token in text for token in tokens)]
    for name in ("status.json", "events.json", "configuration.json", "pods.json", "node.json", "sources.json"):
        assert json.loads(found[name])
    assert "web-n1" in found["pods.json"]
    assert "Started" in found["events.json"]
    assert json.loads(found["configuration.json"])["kubeletconfig"]["staticPodPath"] == str(agent.manifests)
    assert "runs on node n1" in found["agent-file.log"]
    assert "version" in found["podman-info.txt"]
    assert "MemTotal" in found["files/proc/meminfo"]
