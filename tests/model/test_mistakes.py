"""What people are told about the mistakes that they make: golden messages (issue 4, must show 5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgelet.model import decode, yaml_reader

FILE = Path(__file__).with_name("mistakes.txt")
GOOD = """\
apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: main
    image: nginx:1.27
"""


def cases() -> dict[str, tuple[str, str]]:
    """What it is -> the file and what is printed."""
    out = {}
    for block in FILE.read_text().split("\n### ")[1:]:
        name, _, rest = block.partition("\n")
        text, _, said = rest.partition(">>>\n")
        out[name] = (text, said.strip("\n"))
    return out


CASES = cases()


def told(text: str) -> str:
    """All that edgelet prints about a file."""
    whole = text.replace("...\n", GOOD, 1) if text.startswith("...\n") else text
    result = decode.decode(whole.encode(), decode.Origin("web.yaml", "file", "node"))
    return "\n".join(str(p) for p in result.problems)


def test_there_are_enough() -> None:
    assert len(CASES) >= 60
    assert "" not in {said for _, said in CASES.values()}


@pytest.mark.skipif(yaml_reader.C_PARSER is None, reason="the words of broken YAML are those of the C parser")
@pytest.mark.parametrize("name", CASES)
def test_mistake(name: str) -> None:
    text, said = CASES[name]
    assert told(text) == said


def rewrite() -> None:
    """Write what is printed now; then read the difference."""
    head = FILE.read_text().split("\n### ", maxsplit=1)[0]
    blocks = [f"\n### {name}\n{text}>>>\n{told(text)}\n" for name, (text, _) in CASES.items()]
    FILE.write_text(head + "".join(blocks))


if __name__ == "__main__":
    rewrite()
