"""Reports of users about other agents that this server must not earn."""

from __future__ import annotations

import ssl
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from edgelet.adapters.pki.store import Store
from edgelet.model.agent_report import SourceReport
from tests.support.serving import pod, running, serving

YEAR = 365 * 86400.0


def test_pain_70_a_clock_in_1970_locks_nobody_out(tmp_path: Path) -> None:
    with serving(tmp_path) as rig:
        rig.clock.jump(-rig.clock.time() + 60)
        rig.store.put(pod(), running())
        assert rig.client.get("/api/v1/namespaces/default/pods/web-edge1")["kind"] == "Pod"
        assert rig.client.get("/apis/edgelet.io/v1/status")["node"] == "edge1"


def test_pain_70_the_ca_of_a_first_day_in_1970_is_good_when_the_clock_is_set(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    store = Store(str(tmp_path / "pki"), ["localhost"])
    store.ensure_certificate(60.0)
    before = Path(store.ca).read_bytes()
    store.ensure_certificate(56 * YEAR)
    assert Path(store.ca).read_bytes() == before
    context = ssl.create_default_context(cafile=store.ca)  # the same that a kubeconfig carries
    assert context.verify_mode is ssl.CERT_REQUIRED
    when = str(int(56 * YEAR + 30 * 86400))
    checked = subprocess.run(
        ["openssl", "verify", "-attime", when, "-CAfile", store.ca, store.serving],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.stdout.strip().endswith("OK"), checked.stderr


def test_pain_137_a_bad_link_is_no_ill_health(tmp_path: Path) -> None:
    with serving(tmp_path) as rig:
        lost = SourceReport("http:fleet", "https://fleet.example/pods", ok=False, message="connection refused")
        rig.control.answer = replace(rig.control.answer, sources=(lost,))
        assert b"".join(rig.client.chunks("/healthz")) == b"ok"
        assert b"".join(rig.client.chunks("/livez")) == b"ok"
        assert b"".join(rig.client.chunks("/readyz")) == b"ok"
        assert rig.client.get("/apis/edgelet.io/v1/status")["degraded"] is True
