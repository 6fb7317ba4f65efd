"""The mutator that judges the tests of core/: which changes it makes, and that each one is a change."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.support import mutation

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
