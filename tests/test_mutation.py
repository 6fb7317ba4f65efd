"""The mutator that judges the tests of core/: which changes it makes, and that each one is a change."""

from __future__ import annotations

import ast
import importlib.util
import types
from pathlib import Path

import pytest

from tests.support import mutation, swapping

CORE = sorted((Path(__file__).parents[1] / "edgelet" / "core").glob("*.py"))


def mutants(source: str) -> list[str]:
    """All mutants of a source, as source."""
    return [ast.unparse(mutation.mutate(source, site.number)) for site in mutation.sites(source)]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["x = a <= b"]),
        ("x = a == b != c", ["x = a != b != c", "x = a == b == c"]),
        ("x = a and b", ["x = a or b"]),
        ("x = not a", ["x = not not a"]),
        ("x = a + 2", ["x = a - 2", "x = a + 3"]),
        ("x = True", ["x = False"]),
        ("x = 'on'", ["x = 'XXonXX'"]),
        ("x = f'on {a}'", []),
        ("x = a if b else c", ["x = c if b else a"]),
        ("x = [a for a in b if a]", ["x = [a for a in b]"]),
        ("x = min(a, b)", ["x = max(a, b)"]),
        ("x = replace(a, b=c)", ["x = replace(a)"]),
        ("if a:\n    b()", ["if not a:\n    b()", "if a:\n    pass"]),
        (
            "def f(a: int=1) -> int:\n    return a",
            ["def f(a: int=2) -> int:\n    return a", "def f(a: int=1) -> int:\n    return None"],
        ),
        ("while a:\n    continue", ["while not a:\n    continue", "while a:\n    break"]),
        ("x += 1", ["x -= 1", "x += 2"]),
        ("match a:\n    case 1 if b < c:\n        pass", ["match a:\n    case 1 if b <= c:\n        pass"]),
        ('"""Words."""\nimport a\nfrom b import c', []),
        ("if TYPE_CHECKING:\n    import a", []),
        ("class A:\n    x: int = 3", ["class A:\n    x: int = 4"]),
        ("try:\n    pass\nexcept E:\n    x = 1", ["try:\n    pass\nexcept E:\n    x = 2"]),
    ],
)
def test_the_changes_it_makes(source: str, expected: list[str]) -> None:
    assert mutants(source) == expected


@pytest.mark.parametrize("path", CORE, ids=lambda p: p.stem)
def test_a_mutant_of_core_is_a_change_that_compiles_at_lines_that_exist(path: Path) -> None:
    source = path.read_text()
    plain = ast.dump(ast.parse(source))
    # Every ninth: each one parses the module anew.
    for site in mutation.sites(source)[::9]:
        tree = mutation.mutate(source, site.number)
        assert ast.dump(tree) != plain, site
        compile(tree, str(path), "exec")
        assert 1 <= site.first_line <= site.last_line <= source.count("\n") + 1


def test_no_change_is_no_change_and_an_unknown_one_is_an_error() -> None:
    assert ast.unparse(mutation.mutate("x = 1", mutation.NONE)) == "x = 1"
    with pytest.raises(IndexError):
        mutation.mutate("x = 1", 1)


SOURCE = """
import dataclasses, functools
def plain(): return 1
@functools.cache
def cached(): return 1
@dataclasses.dataclass(frozen=True, slots=True)
class Thing:
    x: int = 1
    def method(self): return [1 for _ in range(1)][0]
    @property
    def prop(self): return 1
    @classmethod
    def make(cls): return 1
    @staticmethod
    def static(): return 1
"""


def test_every_kind_of_function_takes_the_changed_code_where_it_was_imported_before(tmp_path: Path) -> None:
    path = tmp_path / "victim.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("victim", path)
    assert spec and spec.loader
    module: types.ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    plain, cached, thing = module.plain, module.cached, module.Thing
    swapping.swap_functions(module, ast.parse(SOURCE.replace("return 1", "return 2").replace("[1 for", "[2 for")))
    found = [plain(), cached(), thing().method(), thing().prop, thing.make(), thing.static()]
    assert found == [2, 2, 2, 2, 2, 2]


def test_a_site_knows_whether_it_acts_on_import() -> None:
    sites = mutation.sites("x = 1\ndef f(a=2):\n    return 3 + a\nclass A:\n    y = 4")
    assert [(s.what.split(" ")[0], s.in_function) for s in sites] == [
        ("1", False),
        ("2", False),
        ("return", True),
        ("Add", True),
        ("3", True),
        ("4", False),
    ]
