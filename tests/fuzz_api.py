"""Fuzzes the API by its own OpenAPI document and by one of all its routes: no 5xx, no hang. `make fuzz-api`.

A server with real submissions, logs and commands stands behind; only Podman is missing.  schemathesis is
installed apart (it is ten times the size of everything else that tests need).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from edgelet.adapters.logs.reader import LogReader
from edgelet.model.layout import Layout
from tests.support import described
from tests.support.forward import forward
from tests.support.serving import Rig, pod, running, serving
from tests.support.sessions import LocalExecs

HANG_SECONDS = 20
HOOKS = '''
import schemathesis

@schemathesis.hook
def before_call(context, case, kwargs):
    """What goes on for ever is to end soon."""
    if case.query and "watch" in case.query:
        case.query["timeoutSeconds"] = 1
'''


def main() -> int:
    """Run it; 0 = nothing found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemathesis", default="schemathesis", help="the program")
    parser.add_argument("--seconds", type=int, default=600, help="for both documents together")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    status = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for name, document in (("own", described.own()), ("routed", described.routed())):
            place = Path(folder) / name
            place.mkdir()
            (place / "document.json").write_text(json.dumps(document))
            (place / "hooks.py").write_text(HOOKS)
            with serving(place, LogReader(Layout("", "", "")), LocalExecs()) as rig, forward(rig.socket) as port:
                _fill(rig, place)
                status |= _run(args.schemathesis, place, port, args.seconds // 2, args.seed)
                rig.client.get("/version")  # it still answers
    return status


def _fill(rig: Rig, place: Path) -> None:
    (place / "0.log").write_text("2026-11-30T14:00:00Z stdout F one\n")
    status = running()
    container = replace(status.containers[0], log_path=str(place / "0.log"))
    rig.store.put(pod(app="web"), replace(status, containers=(container,)))


def _run(program: str, place: Path, port: int, seconds: int, seed: int) -> int:
    url = f"http://127.0.0.1:{port}"
    flags = ["--checks=not_a_server_error", f"--max-time={seconds}", f"--request-timeout={HANG_SECONDS}",
             f"--seed={seed}", "--continue-on-failure", "--warnings=off", "--suppress-health-check=all"]  # fmt: skip
    print(f"{place.name}: seed {seed}, {seconds} s", flush=True)
    return subprocess.run(
        [program, "run", "document.json", f"--url={url}", *flags],
        cwd=place,
        env={**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(place)},
        check=False,
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
