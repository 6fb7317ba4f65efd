"""The shape of the package, held by machine: layers, owners of libraries, sizes, docstrings, habits."""

from __future__ import annotations

import ast
import functools
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "edgelet"
MODULES = sorted(PACKAGE.rglob("*.py"))
IDS = [str(p.relative_to(PACKAGE)) for p in MODULES]

MAX_FUNCTION = 50
MAX_MODULE = 400

OWNERS = {
    "podman": ("adapters.podman",),
    "prometheus_client": ("adapters.metrics",),
    # In a child process only.
    "cryptography": ("adapters.pki.make", "adapters.apiserver.csr"),
    # The podman package's transport is a requests session, so its errors are requests'.
    "requests": ("adapters.url", "adapters.podman", "outgoing"),
    # What requests stands on: time limits and errors that requests does not name.
    "urllib3": ("outgoing", "adapters.apiserver"),
    "tornado": ("adapters.server", "cli"),
    # Its inotify binding also watches conmon's exit files.
    "watchdog": ("adapters.files", "adapters.exits"),
    "yaml": ("model", "config_file", "cli", "adapters.server", "adapters.apiserver"),
}
"""Third-party library -> the modules (and what lies below them) that may import it."""

GUARDS = ("app", "engine", "adapters", "cli.main")
"""Where a thread, or the program, ends: only there a broad `except` may stand, marked `# guard`."""


@functools.cache
def tree(path: Path) -> ast.Module:
    """The parsed module."""
    return ast.parse(path.read_text(), str(path))


def dotted(path: Path) -> str:
    """Module name below edgelet: adapters.podman.api."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Absolute names of all that a module imports, wherever the import stands."""
    package = ["edgelet", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield from (f"{module}.{alias.name}" for alias in node.names)


def within(name: str, owner: str) -> bool:
    """Whether module `name` is `owner` or lies below it."""
    return name == owner or name.startswith(owner + ".")


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    """Run the import contracts of setup.cfg in `directory`."""
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    return subprocess.run(
        [sys.executable, "-c", command], cwd=directory, capture_output=True, text=True, timeout=100, check=False
    )


def test_imports_go_one_way() -> None:
    result = lint(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("model/pod.py", "from ..core import plan"),
        ("core/plan.py", "from ..engine import store"),
        ("core/plan.py", "import time"),
        ("engine/store.py", "from .. import config"),
        ("errors.py", "from .model import pod"),
    ],
    ids=["nouns-decide", "decisions-hold-state", "decisions-read-a-clock", "engine-reads-config", "errors-know-nouns"],
)
def test_the_contracts_notice_an_import_the_wrong_way(tmp_path: Path, module: str, line: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "edgelet", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    with (tmp_path / "edgelet" / module).open("a") as file:
        file.write(f"\n{line}\n")
    result = lint(tmp_path)
    assert result.returncode == 1 and "BROKEN" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_third_party_libraries_have_owners(path: Path) -> None:
    for name in imports(path):
        library = name.split(".")[0]
        if library in sys.stdlib_module_names or library == "edgelet":
            continue
        assert library in OWNERS, f"{library} is not one of our libraries"
        assert any(within(dotted(path), o) for o in OWNERS[library]), f"{library} belongs to {OWNERS[library]}"


@pytest.mark.parametrize("path", [p for p in MODULES if "adapters" in p.parts], ids=lambda p: p.stem)
def test_sibling_adapters_do_not_know_each_other(path: Path) -> None:
    me = dotted(path).removeprefix("adapters").lstrip(".").split(".")[0]
    siblings = [n.split(".")[2] for n in imports(path) if n.startswith("edgelet.adapters.")]
    assert [s for s in siblings if s != me] == []


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_a_module_is_a_room_one_can_know(path: Path) -> None:
    assert ast.get_docstring(tree(path)), "a module docstring says what the module owns"
    lines = path.read_text().count("\n")
    assert lines <= MAX_MODULE, f"{lines} lines"


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_functions_are_short_and_public_ones_explained(path: Path) -> None:
    long, silent = [], []
    for node in ast.walk(tree(path)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if not isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION:
            long.append(node.name)
    for node in public(tree(path)):
        if not ast.get_docstring(node):
            silent.append(node.name)
    assert (long, silent) == ([], [])


def public(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Public functions and classes of a module. A method often only fills in what its base class explains."""
    for child in module.body:
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not child.name.startswith("_"):
            yield child


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_nobody_swallows_everything_nor_checks_input_by_assert(path: Path) -> None:
    source = path.read_text().splitlines()
    for node in ast.walk(tree(path)):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: assert vanishes under -O"
        if isinstance(node, ast.ExceptHandler) and broad(node):
            line = source[node.lineno - 1]
            assert "# guard" in line and any(within(dotted(path), g) for g in GUARDS), f"line {node.lineno}: {line}"


def broad(handler: ast.ExceptHandler) -> bool:
    """Whether it catches Exception, BaseException or all."""
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(c, ast.Name) and c.id in ("Exception", "BaseException") for c in caught)
