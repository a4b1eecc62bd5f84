"""Turns a class defined in a notebook or script into the text of a module that any process can import.

Workers are new processes: they can import modules, but not read notebooks. The class is therefore written out with
everything it uses: functions and classes of the notebook, imports, and simple constants. Anything else is rejected by
name. The same code gives the same text, because its hash is part of the keys of results.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import inspect
import linecache
import symtable
import sys
import textwrap
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from bench.registry import UserError

_HEADER = '"""A copy of what was defined in {home}, for the processes that run it."""\n'
_LONGEST_CONSTANT = 10_000  # characters; anything longer is data, not a constant


def module_text(cls: type) -> str:
    """The source of a class with everything it needs."""
    if "<locals>" in cls.__qualname__ or "." in cls.__qualname__:
        raise UserError(f"{cls.__qualname__} is defined inside another class or function; move it to the top level")
    if not cls.__name__[:1].isupper():
        raise UserError(f"the class {cls.__name__} needs a name that starts with a capital letter; rename it")
    found = _Definitions(cls)
    found.take(cls.__name__, cls)
    return found.text()


class _Definitions:
    """Everything that a class needs, found by name in the namespace where it was defined."""

    def __init__(self, cls: type) -> None:
        self.cls, self.home = cls, cls.__module__
        self.namespace = vars(sys.modules[self.home])
        self.imports: set[str] = set()
        self.constants: dict[str, str] = {}
        self.definitions: dict[str, str] = {}
        self._seen: set[str] = set()
        self._future = False

    def text(self) -> str:
        where = "a notebook or script" if self.home == "__main__" else self.home
        parts = [_HEADER.format(home=where)]
        if self._future:
            parts.append("from __future__ import annotations\n")
        parts.append("".join(f"{line}\n" for line in sorted(self.imports)))
        parts.append("".join(f"{name} = {value}\n" for name, value in sorted(self.constants.items())))
        return "\n".join(filter(None, [*parts, *(f"\n{text}\n" for text in self.definitions.values())]))

    def take(self, name: str, value: Any) -> None:
        """Handle one name, starting with what its value needs itself."""
        if name in self._seen:
            return
        self._seen.add(name)
        if isinstance(value, ModuleType):
            self.imports.add(_import_of(value, name) or self._refuse(name, value))
        elif isinstance(value, type | FunctionType) and value.__module__ == self.home:
            self._define(name, value)
        elif _is_constant(value):
            self.constants[name] = repr(value)
        else:
            self.imports.add(_from_import(name, value, self.home) or self._refuse(name, value))

    def _define(self, name: str, value: type | FunctionType) -> None:
        if "<locals>" in value.__qualname__:
            self._refuse(name, value)
        if value.__name__ != name:  # an alias
            self.take(value.__name__, value)
            self.definitions[name] = f"{name} = {value.__name__}"
            return
        source = _source(value)
        if source is None:
            raise UserError(
                f"the source of {name} cannot be found, so no other process could run it; put it into a file"
            )
        self._future |= _has_future_annotations(value)
        for used in _global_names(source):
            if used in self.namespace and used != name:
                self.take(used, self.namespace[used])
            elif used not in self.namespace and not hasattr(builtins, used):
                raise UserError(f"{name} uses `{used}`, which is not defined; define it before the class is used")
        for line in _submodules(source, self.namespace):
            self.imports.add(line)
        self.definitions[name] = source

    def _refuse(self, name: str, value: Any) -> str:
        raise UserError(
            f"{self.cls.__name__} uses `{name}` ({type(value).__name__}), which cannot be copied into a module for "
            "the workers; make it a setting or a plain constant, or put the class into a file that can be imported"
        )


def _source(value: type | FunctionType) -> str | None:
    """The source of a class or function, wherever it was entered."""
    try:
        return textwrap.dedent(inspect.getsource(value)).rstrip()
    except (OSError, TypeError):
        return _class_in_cells(value) if isinstance(value, type) else None


def _class_in_cells(cls: type) -> str | None:
    """The source of a class from a notebook: `inspect` knows the cells of functions, and therefore of methods."""
    methods = list(_own_functions(cls))
    places = [(method.__code__.co_filename, method.__code__.co_firstlineno) for method in methods]
    for file, line in places or [(file, 0) for file in reversed([*linecache.cache])]:
        lines = linecache.getlines(file)
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            continue
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                last = node.end_lineno or node.lineno
                if not line or first <= line <= last:
                    return "".join(lines[first - 1 : last]).rstrip()
    return None


def _own_functions(cls: type) -> Iterator[FunctionType]:
    for value in vars(cls).values():
        function = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)))
        typed = (
            isinstance(function, FunctionType) and function.__qualname__ == f"{cls.__qualname__}.{function.__name__}"
        )
        if typed and linecache.getlines(function.__code__.co_filename):
            yield function


def _has_future_annotations(value: type | FunctionType) -> bool:
    functions = [value] if isinstance(value, FunctionType) else _own_functions(value)
    return any(one.__code__.co_flags & __future__.annotations.compiler_flag for one in functions)


def _global_names(source: str) -> list[str]:
    """The names that a definition uses from its environment, excluding its own variables and parameters."""
    names: dict[str, None] = {}
    waiting = [symtable.symtable(source, "definition", "exec")]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        top = table.get_type() == "module"
        for symbol in table.get_symbols():
            taken = not symbol.is_assigned() if top else symbol.is_global()
            if symbol.is_referenced() and taken:
                names[symbol.get_name()] = None
    return list(names)


def _submodules(source: str, namespace: dict[str, Any]) -> Iterator[str]:
    """Imports of modules that are accessed through a parent package: `torch.nn.functional` through `torch`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            words = ast.unparse(node).split(".")
            found = namespace.get(words[0])
            for word in words[1:]:
                found = getattr(found, word, None) if isinstance(found, ModuleType) else None
            if isinstance(found, ModuleType) and found.__name__ in sys.modules and "." in found.__name__:
                yield f"import {found.__name__}"


def _import_of(module: ModuleType, name: str) -> str | None:
    full = module.__name__
    if full == "__main__" or sys.modules.get(full) is not module:
        return None
    return f"import {full}" if full == name else f"import {full} as {name}"


def _is_constant(value: Any) -> bool:
    try:
        text = repr(value)
        return len(text) <= _LONGEST_CONSTANT and bool(ast.literal_eval(text) == value)
    except Exception:  # an object with an unusual repr or comparison is not a constant
        return False


def _from_import(name: str, value: Any, home: str) -> str | None:
    """An import statement that yields exactly this object."""
    own = getattr(value, "__module__", None)
    known = [getattr(value, attribute, None) for attribute in ("__qualname__", "__name__", "_name")]
    for word in [word for word in known if isinstance(word, str) and word.isidentifier()]:
        if isinstance(own, str) and own != home and getattr(sys.modules.get(own), word, None) is value:
            return f"from {own} import {word}" + ("" if word == name else f" as {name}")
    for module in sorted(sys.modules, key=lambda one: (one.count("."), one)):
        found = sys.modules[module]
        public = module != home and not module.startswith("_") and isinstance(found, ModuleType)
        if public and vars(found).get(name) is value:
            return f"from {module} import {name}"
    return None
