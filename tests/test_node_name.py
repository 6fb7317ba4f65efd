"""The node's name: who wins, what is kept, what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgelet import config_values, errors, node_name


@pytest.mark.parametrize(
    ("configured", "stored", "host", "name", "warned"),
    [
        ("", "", "Edge7", "edge7", False),
        ("", "edge7", "edge7", "edge7", False),
        ("", "edge7", "localhost", "edge7", True),
        ("box", "", "edge7", "box", False),
        ("box", "box", "edge7", "box", False),
        ("box", "edge7", "edge7", "box", True),
        ("", "", "", "edge", False),
    ],
)
def test_who_wins(configured: str, stored: str, host: str, name: str, warned: bool) -> None:
    result = node_name.resolve(configured, stored, host)
    assert (result.name, bool(result.warning)) == (name, warned)


@pytest.mark.parametrize(
    ("host", "name"),
    [("My_Box.Local", "my-box.local"), ("-a-.b.", "a.b"), ("___", "edge"), ("x" * 80, "x" * 63), ("käse", "k-se")],
)
def test_a_host_name_is_made_valid(host: str, name: str) -> None:
    assert node_name.from_hostname(host) == name


@given(st.text())
def test_whatever_the_host_is_called_the_name_is_valid(host: str) -> None:
    name = node_name.from_hostname(host)
    assert name and config_values.node_name(name) == name


def test_the_first_name_is_kept_when_the_host_is_renamed(tmp_path: Path) -> None:
    root = str(tmp_path / "root")
    assert node_name.pin(root, "", "first") == node_name.NodeName("first")
    later = node_name.pin(root, "", "second")
    assert later.name == "first"
    assert '"second"' in later.warning and "--node-name second" in later.warning
    assert (tmp_path / "root" / "node-name").read_text() == "first\n"


def test_a_configured_name_renames_the_node_once_and_says_so(tmp_path: Path) -> None:
    node_name.pin(str(tmp_path), "", "first")
    assert "replaced by *-box" in node_name.pin(str(tmp_path), "box", "first").warning
    assert node_name.pin(str(tmp_path), "box", "first").warning == ""


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"not a name!", b"x" * 2000])
def test_a_stored_name_that_is_damaged_counts_as_absent(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "node-name").write_bytes(content)
    assert node_name.pin(str(tmp_path), "", "host").name == "host"
    assert (tmp_path / "node-name").read_text() == "host\n"


def test_a_name_that_cannot_be_stored_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(errors.StateError, match="file"):
        node_name.pin(str(tmp_path / "file" / "root"), "", "host")
