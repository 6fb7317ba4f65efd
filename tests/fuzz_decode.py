"""Throws mutated, generated and random inputs at the decoder: no crash, no hang, no memory over the bound.

    python -m tests.fuzz_decode --seconds 60            # from where the state file says, or from 0
    python -m tests.fuzz_decode --seed 3 --only 12345   # one input again, printed

Input number N of a seed is always the same, so a run can be resumed and a find repeated. What was
run so far is in docs/fuzzing.md.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

from edgelet.model import decode, fields, yaml_reader

HERE = Path(__file__).parent
CORPUS = HERE.parents[1] / "shared" / "data" / "manifests"
MAX_SEED_BYTES = 450
"""Longer files are cut into pieces of this size: small inputs find the same faults, much faster."""
MAX_CPU_SECONDS = 1.0
MAX_MEBIBYTES = 64
MAX_MESSAGE = 1500
ORIGIN = decode.Origin("f.yaml", "file", "node")
PARITY_EVERY = 64
"""Every so many inputs are read by the Python parser too; the pods must be the same."""

GOOD = """\
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {a: "1"}}
spec:
  containers:
  - name: main
    image: nginx:1.27
    env: [{name: A, value: "x"}]
    ports: [{containerPort: 80, hostPort: 8080}]
    livenessProbe: {httpGet: {port: 80}}
    resources: {limits: {cpu: 500m, memory: 64Mi}}
    volumeMounts: [{name: v, mountPath: /data}]
  volumes: [{name: v, hostPath: {path: /srv, type: Directory}}]
"""
TOKENS = [
    *("\n", "\n  ", "\n- ", ": ", ":", "- ", "? ", "{", "}", "[", "]", ",", "&a ", "*a", "<<: *a", "!!int ", "!!str "),
    *(
        "!x ",
        "|\n",
        ">-\n",
        "'",
        '"',
        "\\",
        "\\'",
        "\\x41",
        "\\ud800",
        "#",
        " #",
        "---\n",
        "...\n",
        "%YAML 1.1\n",
        "\t",
    ),
    *(
        "\r\n",
        "null",
        "~",
        "true",
        "y",
        "0o17",
        "1e9",
        "-1",
        "9" * 25,
        ".inf",
        "1_0",
        "0x",
        "2024-01-01",
        "\ufeff",
        "\0",
    ),
    *("\x85", "é", "\U0001f600", "{{ x }}", "${X}", "$(A)", "kind: List\nitems:\n", "items", "64Mi", "1e999", "../.."),
    *("@", "`", "%", "="),
]

Make = Callable[[random.Random], bytes]


def seeds() -> list[bytes]:
    """Texts to start from: ours, and pieces of the collected manifests where they are present."""
    blocks = (HERE / "model" / "mistakes.txt").read_text().split("\n### ")[1:]
    own = [GOOD.encode(), *(b.partition("\n")[2].partition(">>>")[0].encode() for b in blocks)]
    for path in sorted(CORPUS.glob("*.yaml")):
        data = path.read_bytes()
        own += [data[at : at + MAX_SEED_BYTES] for at in range(0, min(len(data), 10 * MAX_SEED_BYTES), MAX_SEED_BYTES)]
    return own


class Inputs:
    """Makes input number N of a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._seeds = seeds()
        self._names = sorted({name for rows in fields.table().values() for name in rows})

    def make(self, number: int) -> bytes:
        """The same bytes for the same seed and number, always."""
        rng = random.Random(self._seed * 1_000_003 + number)
        kind = number % 8
        if kind < 5:
            return self._mutated(rng)
        if kind == 5:
            return self._tokens(rng)
        return self._document(rng) if kind == 6 else rng.randbytes(rng.randrange(1, 60))

    def _mutated(self, rng: random.Random) -> bytes:
        data = bytearray(rng.choice(self._seeds))
        for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
            self._mutate(data, rng)
        return bytes(data)

    def _mutate(self, data: bytearray, rng: random.Random) -> None:
        at = rng.randrange(len(data) + 1)
        span = rng.randrange(1, 30)
        match rng.randrange(7):
            case 0:
                del data[at : at + span]
            case 1:
                data[at:at] = data[at : at + span]
            case 2:
                data[at:at] = rng.choice(TOKENS).encode()
            case 3:
                data[at : at + 1] = bytes((rng.randrange(256),))
            case 4:
                del data[at:]
            case 5:
                line = data.find(b"\n", at) + 1
                data[line:line] = b" " * rng.randrange(5)
            case _:
                colon = data.find(b": ", at) + 2
                end = data.find(b"\n", colon)
                data[colon : end if end > 0 else colon] = rng.choice(TOKENS).encode()

    def _tokens(self, rng: random.Random) -> bytes:
        return "".join(rng.choices(TOKENS, k=rng.randrange(1, 20))).encode("utf-8", "surrogatepass")

    def _document(self, rng: random.Random) -> bytes:
        """A pod whose fields are real names with random values."""
        values = {n: self._value(rng, 2) for n in rng.choices(self._names, k=rng.randrange(1, 4))}
        container = {"name": "c", "image": "i:1", **(values if rng.random() < 0.5 else {})}
        spec = {"containers": [container], **(values if len(container) == 2 else {})}
        kind = rng.choice(("Pod", "Pod", "Pod", "Deployment", "ConfigMap", "List"))
        metadata = {"name": "p", **({} if rng.random() < 0.8 else values)}
        return json.dumps(
            {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec, "data": values}
        ).encode()

    def _value(self, rng: random.Random, depth: int) -> object:
        if depth and rng.random() < 0.6:
            if rng.random() < 0.4:
                return [self._value(rng, depth - 1) for _ in range(rng.randrange(3))]
            return {rng.choice(self._names): self._value(rng, depth - 1) for _ in range(rng.randrange(1, 3))}
        return rng.choice((None, True, 0, 1, 80, -5, 2**40, 1.5, "", "x", "80", "64Mi", "/a", "../b", "Always", "TCP"))


class Found(Exception):
    """An input that the decoder did not take as it should."""


def check(data: bytes, parity: bool) -> None:
    """Decode once, or twice; raises Found."""
    begin = time.process_time()
    result = decode.decode(data, ORIGIN)
    spent = time.process_time() - begin
    if spent > MAX_CPU_SECONDS:
        raise Found(f"took {spent:.2f} s")
    if result.failed == bool(not result.problems or all(p.warning for p in result.problems)):
        raise Found("failed without an error")
    if not (result.pods or result.objects or result.problems or result.empty):
        raise Found("nothing came of it and nothing was said")
    if any(len(str(p)) > MAX_MESSAGE or not str(p).isprintable() for p in result.problems):
        raise Found("a message is no single line of a decent length")
    for pod in result.pods:
        document = json.loads(pod.document)
        again = decode.decode(pod.document.encode(), decode.Origin("f.yaml", "api", "node"))
        if not again.pods or again.pods[0].containers != pod.containers or document["metadata"]["name"] != pod.name:
            raise Found(f"the document of {pod.name} does not decode to the same pod: {again.problems}")
    if parity:
        _same_without_c(data, result)


def _same_without_c(data: bytes, first: decode.Decoded) -> None:
    parser = yaml_reader.C_PARSER
    yaml_reader.C_PARSER = None
    try:
        second = decode.decode(data, ORIGIN)
    finally:
        yaml_reader.C_PARSER = parser
    if (first.pods, first.objects) != (second.pods, second.objects):
        raise Found(f"another result without the C parser: {first.problems} {second.problems}")


def memory() -> float:
    """Peak resident memory of this process, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run(seed: int, start: int, seconds: float, count: int | None = None) -> int:
    """Inputs from `start` on until the time is over; the number of the next one. Raises Found."""
    inputs, number = Inputs(seed), start
    before = memory()
    until = time.monotonic() + seconds
    while time.monotonic() < until and (count is None or number < start + count):
        for _ in range(200):
            data = inputs.make(number)
            try:
                check(data, parity=number % PARITY_EVERY == 0)
            except Found as found:
                raise Found(f"seed {seed}, input {number}: {found}\n{data!r}") from found
            except Exception as error:
                raise Found(f"seed {seed}, input {number}: {type(error).__name__}: {error}\n{data!r}") from error
            number += 1
        if memory() - before > MAX_MEBIBYTES:
            raise Found(f"seed {seed}, before input {number}: {memory() - before:.0f} MiB more than at the start")
    return number


def main() -> int:
    """Run for a time, going on where the state file says."""
    parser = argparse.ArgumentParser(description="throw inputs at the decoder")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--state", type=Path, help="file that keeps the number of the next input")
    parser.add_argument("--only", type=int, help="one input, printed")
    args = parser.parse_args()
    if args.only is not None:
        data = Inputs(args.seed).make(args.only)
        print(data)
        check(data, parity=True)
        return 0
    start = int(args.state.read_text()) if args.state and args.state.exists() else 0
    end, until = start, time.monotonic() + args.seconds
    try:
        while (left := until - time.monotonic()) > 0:
            end = run(args.seed, end, min(left, 10))
            if args.state:
                args.state.write_text(str(end))
    except Found as found:
        print(found, file=sys.stderr)
        return 1
    print(f"seed {args.seed}: inputs {start} to {end}, nothing found, peak {memory():.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
