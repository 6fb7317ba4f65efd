"""A piece of the fuzzing in every test run, and hostile inputs under a memory limit.

EDGELET_FUZZ_SECONDS says how long (3; `make test` sets 60); the inputs are the same every time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from edgelet.model import decode, yaml_reader
from tests import fuzz_decode

ORIGIN = decode.Origin("f.yaml", "file", "node")
MIB = 2**20
HEAD = b"apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  containers:\n"
BOMB = b"a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 20)
)

HOSTILE = {
    "seven mebibytes of small values": b"- [a, b, {c: d}]\n" * 440_000,
    "one long list in JSON": b'{"a": [' + b"1," * (4 * MIB) + b"1]}",
    "nothing but documents": b"---\n" * (2 * MIB),
    "nothing but broken documents": b"---\n}\n" * MIB,
    "nothing but brackets": b"[" * (8 * MIB),
    "nothing but braces": b"{a: " * (2 * MIB),
    "nothing but line ends": b"\n" * (8 * MIB),
    "nothing but carriage returns": b"\r" * (8 * MIB),
    "nothing but comments": b"# hello there\n" * 500_000,
    "nothing but anchors": b"- &a x\n" * MIB,
    "nothing but holes of a template": b"{{ x }}\n" * MIB,
    "nothing but loose colons": b"a:]" * (2 * MIB),
    "one run of colons": b"[a" + b":" * (4 * MIB) + b"]",
    "nothing but escaped apostrophes": b'a: "' + b"\\'" * MIB + b'"',
    "stairs": b"".join(b" " * (n % 90) + b"a:\n" for n in range(150_000)),
    "alias bomb": BOMB,
    "thousands of pods": b"".join(
        b"---\n{apiVersion: v1, kind: Pod, metadata: {name: a%d}, spec: {containers: [{name: a, image: b}]}}\n" % n
        for n in range(2_000)
    ),
    "thousands of services": b"".join(b"---\n{apiVersion: v1, kind: Service}\n" for _ in range(5_000)),
    "thousands of containers": HEAD + b"".join(b"  - {name: a%d, image: b}\n" % n for n in range(9_000)),
    "thousands of mounts": HEAD
    + b"  - name: a\n    image: b\n    volumeMounts:\n"
    + b"".join(b"    - {name: v%d, mountPath: /%d}\n" % (n, n) for n in range(9_000)),
    "thousands of unknown fields": HEAD
    + b"  - name: a\n"
    + b"".join(b"    imagePull%d: x\n" % n for n in range(20_000)),
}


def test_fuzz() -> None:
    seconds = float(os.environ.get("EDGELET_FUZZ_SECONDS", "3"))
    assert fuzz_decode.run(1, 0, seconds) > 0


@pytest.mark.skipif(yaml_reader.C_PARSER is None, reason="the Python parser alone is seven times slower")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_costs_little_time(name: str) -> None:
    begin = time.process_time()
    result = decode.decode(HOSTILE[name], ORIGIN)
    assert time.process_time() - begin < fuzz_decode.MAX_CPU_SECONDS
    assert result.problems or result.empty


LIMITED = """
import resource, sys
limit = 64 * 2**20
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
from edgelet.model import decode
result = decode.decode(sys.stdin.buffer.read(), decode.Origin("f.yaml", "file", "node"))
print(len(result.problems), result.empty)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts private memory on Linux only")
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_input_is_decoded_within_64_mebibytes(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", LIMITED], input=HOSTILE[name], capture_output=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr.decode()[-500:]
    assert run.stdout.strip() != b"0 False"
