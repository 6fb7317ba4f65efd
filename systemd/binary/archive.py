"""Packs Python code into a zip archive: sorted, dated by SOURCE_DATE_EPOCH, the same bytes every time.

    archive.py OUT --bytecode PATH[=NAME] ...     a directory of packages, or one of them under another name
    archive.py OUT --source   PATH[=NAME] ...     as sources, for any interpreter

Bytecode is unchecked (no time stamps in it) and without docstrings and asserts.
"""

from __future__ import annotations

import importlib._bootstrap_external as bootstrap  # type: ignore[import-not-found]
import os
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

DATA = (".txt", ".json", ".pem", ".typed")
SKIPPED_DIRECTORIES = {"__pycache__", "test", "tests", "testing_data", ".mypy_cache"}
# Parts of the standard library that no part of edgelet asks for.
SKIPPED_STDLIB = """
    __phello__ antigravity config-3.11-x86_64-linux-gnu ctypes/test ctypes/macholib curses dbm dist-packages distutils
    ensurepip idlelib lib-dynload lib2to3 msilib pydoc pydoc_data site-packages sqlite3 this tkinter turtle turtledemo
    unittest venv wsgiref xmlrpc encodings/mbcs encodings/oem sitecustomize
""".split()


def main(arguments: list[str]) -> int:
    """See the module."""
    out, form, *places = arguments
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()), 315532800))[:6]
    entries: dict[str, bytes] = {}
    for place in places:
        path, _, name = place.partition("=")
        for relative, file in _files(Path(path), name):
            entries.setdefault(*_entry(relative, file, form == "--bytecode"))
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in sorted(entries.items()):
            info = zipfile.ZipInfo(name, date)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED, compresslevel=9)
    return 0


def _files(path: Path, name: str) -> Iterator[tuple[str, Path]]:
    """(name in the archive, file) of everything that goes in."""
    if path.is_file():
        yield name or path.name, path
        return
    prefix = f"{name}/" if name else ""
    for directory, below, files in os.walk(path):
        below[:] = sorted(set(below) - SKIPPED_DIRECTORIES)
        for file in sorted(files):
            relative = str((Path(directory) / file).relative_to(path))
            if not name and _skipped(relative):
                continue
            if file.endswith((".py", *DATA)):
                yield prefix + relative, Path(directory) / file


def _skipped(relative: str) -> bool:
    plain = relative.removesuffix(".py")
    return any(plain == s or plain.startswith(s + "/") for s in SKIPPED_STDLIB)


def _entry(name: str, file: Path, bytecode: bool) -> tuple[str, bytes]:
    data = file.read_bytes()
    if not bytecode or not name.endswith(".py"):
        return name, data
    code = compile(data, f"edgelet/{name}", "exec", dont_inherit=True, optimize=2)
    return name + "c", bytes(bootstrap._code_to_hash_pyc(code, b"\0" * 8, checked=False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
