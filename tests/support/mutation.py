"""Small wrong changes to Python source: which there are, and the tree with one of them made. Pure."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
NONE = -1
"""The number of no change at all, to check the checker."""
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Site:
    """One possible change. `number` counts sites of one source; lines are those to reach to notice it.

    `in_function`: made inside a function's body, so that swapping code objects is enough.
    """

    number: int
    first_line: int
    last_line: int
    what: str
    in_function: bool = False


Apply = Callable[[], object]
Change = tuple[ast.expr | ast.stmt, str, Apply]
"""Where, what it becomes in words, and how to make it in place."""


def sites(source: str) -> list[Site]:
    """All changes that `mutate` can make to `source`."""
    tree = ast.parse(source)
    found = []
    bodies = [range(s.lineno, (s.end_lineno or s.lineno) + 1) for s in _function_bodies(tree)]
    for number, (statement, (node, what, _)) in enumerate(_changes(tree)):
        first = min(statement.lineno, node.lineno)
        inside = any(statement.lineno in body for body in bodies)
        found.append(Site(number, first, node.end_lineno or first, what, inside))
    return found


def _function_bodies(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from node.body


def mutate(source: str, number: int) -> ast.Module:
    """The tree of `source` with the change of that number made, or with none."""
    tree = ast.parse(source)
    if number == NONE:
        return tree
    for found, (_, (_, _, apply)) in enumerate(_changes(tree)):
        if found == number:
            apply()
            return ast.fix_missing_locations(tree)
    raise IndexError(f"there is no change number {number}")


def _changes(tree: ast.Module) -> list[tuple[ast.stmt, Change]]:
    """All changes in a fixed order; a list, because making one changes what a walk would meet."""
    return [(statement, change) for statement, block in _statements(tree) for change in _in_statement(statement, block)]


def _statements(node: ast.AST) -> Iterator[tuple[ast.stmt, list[ast.stmt]]]:
    """Every statement that does something, with the list it stands in."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if not isinstance(block, list):
            continue
        for statement in block:
            if not _idle(statement):
                yield statement, block
            yield from _statements(statement)
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from _statements(part)


def _idle(statement: ast.stmt) -> bool:
    """Imports, docstrings, ellipses, what is there for type checkers: nothing a test could notice."""
    if isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass | ast.Global | ast.Nonlocal):
        return True
    if isinstance(statement, ast.If) and getattr(statement.test, "id", "") == "TYPE_CHECKING":
        return True
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _in_statement(statement: ast.stmt, block: list[ast.stmt]) -> Iterator[Change]:
    if isinstance(statement, ast.Expr):
        yield statement, "left out", partial(_swap, block, statement, ast.Pass())
    elif isinstance(statement, ast.Continue):
        yield statement, "continue -> break", partial(_swap, block, statement, ast.Break())
    elif isinstance(statement, ast.Break):
        yield statement, "break -> continue", partial(_swap, block, statement, ast.Continue())
    elif isinstance(statement, ast.Return) and not _is_none(statement.value):
        yield statement, "return None", partial(setattr, statement, "value", ast.Constant(None))
    elif isinstance(statement, ast.AugAssign) and (other := OPERATORS.get(type(statement.op))):
        yield statement, f"{_name(statement.op)}= -> {other.__name__}=", partial(setattr, statement, "op", other())
    elif isinstance(statement, ast.If | ast.While) and isinstance(statement.test, ast.Name | ast.Call | ast.Attribute):
        negated = ast.copy_location(ast.UnaryOp(ast.Not(), statement.test), statement.test)
        yield statement.test, "condition negated", partial(setattr, statement, "test", negated)
    for expression in _own_expressions(statement):
        yield from _in_expression(expression)


def _own_expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions of the statement itself: no bodies, no annotations, no decorators, no base classes."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from statement.args.defaults
        yield from (d for d in statement.args.kw_defaults if d is not None)
    elif isinstance(statement, ast.AnnAssign):
        if statement.value is not None:
            yield statement.value
    elif isinstance(statement, ast.Match):
        yield statement.subject
        yield from (case.guard for case in statement.cases if case.guard is not None)
    elif not isinstance(statement, ast.ClassDef):
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                yield child
            elif isinstance(child, ast.withitem):
                yield child.context_expr


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Like ast.walk, without the fixed words of f-strings: they are messages, whose wording tests leave free."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(node, ast.JoinedStr) and isinstance(child, ast.Constant)):
            yield from _walk(child)


def _in_expression(root: ast.expr) -> Iterator[Change]:
    for node in _walk(root):
        if isinstance(node, ast.Compare):
            yield from _comparisons(node)
        elif isinstance(node, ast.BoolOp | ast.BinOp | ast.UnaryOp):
            yield from _operator(node)
        elif isinstance(node, ast.Constant):
            yield from _constant(node)
        elif isinstance(node, ast.Call):
            yield from _call(node)
        elif isinstance(node, ast.IfExp):
            yield node, "other branch", partial(_exchange, node)
        elif isinstance(node, ast.comprehension):
            for i, condition in enumerate(node.ifs):
                yield condition, "condition left out", partial(node.ifs.pop, i)


def _operator(node: ast.BoolOp | ast.BinOp | ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, f"{_name(node.op)} -> {_name(other)}", partial(setattr, node, "op", other)
    elif isinstance(node, ast.BinOp) and (operator := OPERATORS.get(type(node.op))):
        yield node, f"{_name(node.op)} -> {operator.__name__}", partial(setattr, node, "op", operator())
    elif isinstance(node.op, ast.Not):
        yield node, "not left out", partial(_twice, node)


def _comparisons(node: ast.Compare) -> Iterator[Change]:
    for i, op in enumerate(node.ops):
        other = COMPARISONS[type(op)]
        yield node, f"{_name(op)} -> {other.__name__}", partial(node.ops.__setitem__, i, other())


def _constant(node: ast.Constant) -> Iterator[Change]:
    value = node.value
    other: object
    if isinstance(value, bool):
        other = not value
    elif isinstance(value, int | float):
        other = value + 1
    elif isinstance(value, str) and value:
        other = f"XX{value}XX"
    else:
        return
    yield node, f"{value!r:.30} -> {other!r:.34}", partial(setattr, node, "value", other)


def _call(node: ast.Call) -> Iterator[Change]:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if isinstance(node.func, ast.Name) and name in CALLS:
        yield node, f"{name} -> {CALLS[name]}", partial(setattr, node.func, "id", CALLS[name])
    if name == "replace":
        for i, keyword in enumerate(node.keywords):
            yield node, f"replace without {keyword.arg}", partial(node.keywords.pop, i)


def _name(node: ast.AST) -> str:
    return type(node).__name__


def _swap(block: list[ast.stmt], old: ast.stmt, new: ast.stmt) -> None:
    block[block.index(old)] = ast.copy_location(new, old)


def _exchange(node: ast.IfExp) -> None:
    node.body, node.orelse = node.orelse, node.body


def _twice(node: ast.UnaryOp) -> None:
    """Make `not x` into `not not x`, in place."""
    node.operand = ast.copy_location(ast.UnaryOp(ast.Not(), node.operand), node.operand)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
