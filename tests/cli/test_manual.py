"""The manual page and the completion are made from the parser: complete, and understood by their readers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from edgelet import config
from edgelet.cli import main, manual

EPOCH = 1_700_000_000


def complete(tmp_path: Path, *words: str) -> list[str]:
    """What bash offers for the last of `words`; `edgelet` itself is a stand-in that knows two pods."""
    (tmp_path / "completion").write_text(manual.bash(main.full_parser()))
    script = f"""
        edgelet() {{ printf 'pod/web-n1\\npod/db-n1\\n'; }}
        . {tmp_path}/completion
        COMP_WORDS=({" ".join(f"'{word}'" for word in words)})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _edgelet
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stderr == ""
    return done.stdout.split()


def test_every_command_and_every_flag_is_in_the_page() -> None:
    parser = main.full_parser()
    page = manual.man(parser, EPOCH).replace(r"\-", "-")
    assert set(manual.commands(parser)) == set(main.COMMANDS)
    for name, command in manual.commands(parser).items():
        assert f".SS {name}\n" in page
        for flag in (f for action in command._actions for f in action.option_strings):
            assert rf"\fB{flag}\fR" in page, f"{name} {flag}"
    for option in config.OPTIONS:
        assert rf"\fB{option.variable}\fR" in page


def test_the_same_parser_and_date_give_the_same_bytes() -> None:
    first, second = (manual.man(main.full_parser(), EPOCH) for _ in range(2))
    assert first == second
    assert '"2023-11-14"' in first


@pytest.mark.skipif(not shutil.which("groff"), reason="groff is not installed")
def test_groff_reads_the_page_without_a_warning() -> None:
    page = manual.man(main.full_parser(), EPOCH)
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-ww", "-z"], input=page.encode(), capture_output=True, check=True
    )
    assert done.stderr.decode() == ""


def test_bash_offers_commands_flags_choices_pods_and_files(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").touch()
    assert complete(tmp_path, "edgelet", "val") == ["validate"]
    assert "--config" in complete(tmp_path, "edgelet", "run", "--")
    assert complete(tmp_path, "edgelet", "status", "-o", "j") == ["json"]
    assert complete(tmp_path, "edgelet", "get", "-o", "w") == ["wide"]
    assert complete(tmp_path, "edgelet", "logs", "w") == ["web-n1"]
    assert complete(tmp_path, "edgelet", "validate", "we") == ["web.yaml"]
    assert complete(tmp_path, "edgelet", "run", "--config", "we") == ["web.yaml"]


def test_it_says_how_to_be_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert manual.run([]) == 2
    assert "man|bash" in capsys.readouterr().err
