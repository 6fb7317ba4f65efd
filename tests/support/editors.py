"""Files saved as people and tools save them: real tools where they are installed, else the system calls they make.

    for name, save in tools().items():
        save(path, text)          the file at `path` becomes `text`

The file at `path` must be whole before, as an editor opens it and changes lines in it.
"""

from __future__ import annotations

import os
import pty
import random
import select
import shutil
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

Save = Callable[[Path, str], None]

SFTP_SERVER = "/usr/lib/openssh/sftp-server"
PIECE = 40
"""Bytes per write of an upload over a slow line."""


def run(*command: str, text: str = "") -> None:
    """A command that must succeed."""
    subprocess.run(command, input=text, text=True, check=True, timeout=60, capture_output=True)


def beside(path: Path, text: str) -> Path:
    """The new content as a file outside the directory of `path`, on the same file system."""
    made = path.parent.parent / f"new-{path.name}"
    made.write_text(text)
    return made


def changed_lines(path: Path, text: str) -> list[tuple[int, str]]:
    """Which lines of the file at `path` become what, counted from 1; the number of lines stays."""
    pairs = zip(path.read_text().splitlines(), text.splitlines(), strict=True)
    return [(number, new) for number, (old, new) in enumerate(pairs, 1) if old != new]


def vim(backupcopy: str) -> Save:
    """vim with a swap file and a backup, which it makes in the way that `backupcopy` says."""

    def save(path: Path, text: str) -> None:
        edits = [f"call setline({number}, '{line}')" for number, line in changed_lines(path, text)]
        commands = [f"set backupcopy={backupcopy} writebackup nofsync", *edits, "wq"]
        run("vim", "-Nu", "NONE", "-es", *(word for c in commands for word in ("-c", c)), str(path))

    return save


def vim_renames(path: Path, text: str) -> None:
    """vim without vim: probe file 4913, the old file renamed away, a new one written."""
    probe = path.parent / "4913"
    probe.touch()
    probe.unlink()
    os.rename(path, f"{path}~")
    time.sleep(0.02)
    path.write_text(text)
    os.unlink(f"{path}~")


def nano(path: Path, text: str) -> None:
    """A person at nano: each changed line is typed above the old one, which is cut, then Ctrl-O, Enter, Ctrl-X."""
    keys = "".join(f"\x1f{number}\r{line}\r\x0b" for number, line in changed_lines(path, text))
    _type(["nano", "-I", str(path)], f"{keys}\x0f\r\x18".encode(), once=b"Exit")
    assert path.read_text() == text, "nano did not write what was typed"


def _type(command: list[str], keys: bytes, once: bytes) -> None:
    """Run a program on a terminal, and type `keys` as soon as it has shown `once`, until it has ended."""
    shown = b""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm"
        os.execvp(command[0], command)
    try:
        while select.select([terminal], [], [], 30)[0]:
            shown += os.read(terminal, 65536)
            if keys and once in shown:
                os.write(terminal, keys)
                keys = b""
    except OSError:
        pass  # the terminal's other end is closed: it has ended
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)


def in_place(path: Path, text: str) -> None:
    """VS Code, and nano without nano: the same file, emptied, written, synced."""
    with open(path, "r+") as file:
        file.truncate(0)
        file.flush()
        time.sleep(0.01)
        file.write(text)
        file.flush()
        os.fdatasync(file.fileno())


def sed(path: Path, text: str) -> None:
    """sed -i."""
    edits = [f"{number}s|.*|{line}|" for number, line in changed_lines(path, text)]
    run("sed", "-i", ";".join(edits), str(path))


def copy(path: Path, text: str) -> None:
    """cp over it."""
    run("cp", str(beside(path, text)), str(path))


def move(path: Path, text: str) -> None:
    """mv over it."""
    os.rename(beside(path, text), path)


def anew(path: Path, text: str) -> None:
    """git checkout: deleted, and created again."""
    path.unlink()
    path.write_text(text)


def rsync(path: Path, text: str) -> None:
    """rsync, which writes a hidden file beside and renames it."""
    if shutil.which("rsync"):
        run("rsync", "-I", str(beside(path, text)), str(path))
        return
    hidden = path.parent / f".{path.name}.Xy12z"
    hidden.write_text(text)
    os.rename(hidden, path)


def rsync_in_place(path: Path, text: str) -> None:
    """rsync --inplace."""
    run("rsync", "-I", "--inplace", str(beside(path, text)), str(path))


def echo(path: Path, text: str) -> None:
    """A shell's redirection."""
    run("sh", "-c", f"cat > {path}", text=text)


def slow_upload(path: Path, text: str) -> None:
    """An upload over a slow line: in place, in pieces."""
    with open(path, "w") as file:
        for start in range(0, len(text), PIECE):
            file.write(text[start : start + PIECE])
            file.flush()
            time.sleep(0.005)


def scp(path: Path, text: str) -> None:
    """scp, whose other end is a real sftp server without the network between."""
    _scp(path, text, f"exec {SFTP_SERVER}")


def scp_of_old(path: Path, text: str) -> None:
    """scp -O: the protocol of before OpenSSH 9, whose other end is another scp."""
    _scp(path, text, 'for last; do :; done; exec sh -c "$last"', "-O")


def _scp(path: Path, text: str, other_end: str, *flags: str) -> None:
    line = path.parent.parent / "line"
    line.write_text(f"#!/bin/sh\n{other_end}\n")
    line.chmod(line.stat().st_mode | stat.S_IXUSR)
    run("scp", "-q", *flags, "-S", str(line), str(beside(path, text)), f"box:{path}")


def tools() -> dict[str, Save]:
    """Every way to save that this machine knows, by name; the same set on every run of it."""
    found: dict[str, Save] = {
        "vim renames": vim_renames, "VS Code": in_place, "sed -i": sed, "cp": copy, "mv": move, "rsync": rsync,
        "echo >": echo, "slow upload": slow_upload, "git checkout": anew,
    }  # fmt: skip
    if shutil.which("vim"):
        found |= {f"vim backupcopy={how}": vim(how) for how in ("yes", "no", "auto")}
    if shutil.which("nano"):
        found["nano"] = nano
    if shutil.which("rsync"):
        found["rsync --inplace"] = rsync_in_place
    if shutil.which("scp"):
        found["scp -O"] = scp_of_old
        if os.path.exists(SFTP_SERVER):
            found["scp"] = scp
    return found


def cut_upload(path: Path, text: str, chance: random.Random) -> None:
    """scp whose connection breaks: a part of the new file in place of the old one."""
    with open(path, "w") as file:
        file.write(text[: chance.randrange(len(text) - 1)])
