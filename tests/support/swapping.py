"""Put a changed module in the place of the real one: while it is imported, or afterwards, function by function."""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import inspect
import types
from collections.abc import Iterator, Sequence
from pathlib import Path


class Swapped(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports one module from a changed tree, everything else as usual."""

    def __init__(self, name: str, path: Path, tree: ast.Module) -> None:
        self._name, self._path, self._tree = name, path, tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """See importlib."""
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def exec_module(self, module: types.ModuleType) -> None:
        """See importlib."""
        exec(compile(self._tree, str(self._path), "exec"), module.__dict__)


def swap_functions(module: types.ModuleType, tree: ast.Module) -> None:
    """Give every function of the live `module` the code it has in `tree`; whoever imported it sees that too.

    Only for changes inside function bodies. Raises ValueError when a function cannot take the code.
    """
    code = compile(tree, str(module.__file__), "exec")
    changed = {c.co_qualname: c for c in _codes(code)}
    for function in _functions(module):
        function.__code__ = changed[function.__code__.co_qualname]


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Code objects of functions that belong to the module or its classes (not those local to a function)."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            if not constant.co_flags & inspect.CO_OPTIMIZED:  # a class body
                yield from _codes(constant)


def _functions(module: types.ModuleType) -> Iterator[types.FunctionType]:
    """All functions that were written in the module's file, methods and properties included."""
    waiting: list[object] = list(vars(module).values())
    seen: set[int] = set()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, types.FunctionType):
            waiting.append(getattr(thing, "__wrapped__", None))
            if thing.__code__.co_filename == module.__file__ and "<" not in thing.__code__.co_qualname:
                yield thing
        elif isinstance(thing, type) and thing.__module__ == module.__name__:
            waiting += vars(thing).values()
        elif isinstance(thing, property):
            waiting += [thing.fget, thing.fset, thing.fdel]
        elif isinstance(thing, classmethod | staticmethod):
            waiting.append(thing.__func__)
        else:
            waiting.append(getattr(thing, "__wrapped__", None))
