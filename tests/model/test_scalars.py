"""What unquoted words mean, and that kubectl, where it is present, agrees."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from edgelet.model import scalars, yaml_reader

WORDS: list[tuple[str, scalars.Scalar]] = [
    ("22:22", "22:22"),
    ("12:30:45", "12:30:45"),
    ("190:20:30", "190:20:30"),
    ("2024-01-01", "2024-01-01"),
    ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00Z"),
    ("y", True),
    ("Y", True),
    ("YES", True),
    ("on", True),
    ("n", False),
    ("off", False),
    ("yEs", "yEs"),
    ("0o17", 15),
    ("017", 15),
    ("08", 8),
    ("0o8", "0o8"),
    ("0x1f", 31),
    ("+0x1f", 31),
    ("-0x1f", -31),
    ("0x", "0x"),
    ("0x_1", 1),
    ("0b11", 3),
    ("0b2", "0b2"),
    ("-0b11", -3),
    ("1_000", 1000),
    ("_1", "_1"),
    ("1__0", 10),
    ("1e1", 10),
    ("1e+5", 100000),
    ("1.5e3", 1500),
    ("1_0.5", 10.5),
    (".5", 0.5),
    ("1.", 1),
    ("1.0", 1),
    ("1.2.3", "1.2.3"),
    ("1e400", "1e400"),
    ("-0", 0),
    ("+1", 1),
    ("9223372036854775807", 9223372036854775807),
    ("99999999999999999999", 100000000000000000000),
    ("=", "="),
    ("~", None),
    ("Null", None),
    ("nULL", "nULL"),
    ("!!str 5", "5"),
    ("!!int '5'", 5),
    ("!!float 3", 3),
    ("!!bool yes", True),
    ("!!binary aGk=", "hi"),
    ("!foo bar", "bar"),
    ("! 5", "5"),
    ("'5'", "5"),
    ('"y"', "y"),
]


def read(text: str) -> object:
    """The value of `text` in the place of a map's value."""
    result = yaml_reader.read(f"v: {text}\n")
    assert not result.errors, result.errors
    node = result.documents[0]
    assert node is not None
    return node.value["v"].value


@pytest.mark.parametrize(("text", "value"), WORDS)
def test_word(text: str, value: scalars.Scalar) -> None:
    found = read(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "!!int x", "!!null x", "!!binary '?'", "!!bool 3"])
def test_word_that_no_manifest_can_hold(text: str) -> None:
    assert yaml_reader.read(f"v: {text}\n").errors


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl, the second opinion, is not installed")
def test_kubectl_reads_the_same(tmp_path: Path) -> None:
    manifest = tmp_path / "words.yaml"
    rows = "".join(f"- {text}\n" for text, _ in WORDS)
    manifest.write_text(f"apiVersion: a/v1\nkind: A\nmetadata: {{name: a}}\nwords:\n{rows}")
    run = subprocess.run(
        ["kubectl", "annotate", "--local", "-f", str(manifest), "x=y", "-o", "json"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(run.stdout)["words"] == [value for _, value in WORDS]
