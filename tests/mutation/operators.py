"""Small faults to plant in a module's source: one comparison, sum, constant, condition or return at a time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], list[type[ast.cmpop]]] = {
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
    ast.Lt: [ast.LtE, ast.GtE],
    ast.LtE: [ast.Lt, ast.Gt],
    ast.Gt: [ast.GtE, ast.LtE],
    ast.GtE: [ast.Gt, ast.Lt],
    ast.Is: [ast.IsNot],
    ast.IsNot: [ast.Is],
    ast.In: [ast.NotIn],
    ast.NotIn: [ast.In],
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.RShift: ast.LShift,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
MESSAGES = ("warn_once", "UserError", "unknown", "TypeError", "ValueError")  # their wording is nobody's result


@dataclass(frozen=True)
class Mutant:
    """A module's tree with one fault in it."""

    line: int
    before: str
    after: str
    tree: ast.Module


def mutants(source: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(source)
    # Tree positions are counted alike in a copy, so that a place found here is found again there.
    for place, node in enumerate(_mutable(tree)):
        for number, _ in enumerate(_changes(node)):
            changed = copy.deepcopy(tree)
            target = _mutable(changed)[place]
            before = ast.unparse(target)
            replacement = _changes(target)[number]()
            _replace(changed, target, replacement)
            yield Mutant(node.lineno, before, ast.unparse(replacement), ast.fix_missing_locations(changed))


def _mutable(tree: ast.Module) -> list[ast.expr | ast.stmt]:
    """The expressions and statements that do something: no docstrings, annotations, decorators or messages."""
    found: list[ast.expr | ast.stmt] = []

    def walk(node: ast.AST) -> None:
        if isinstance(node, ast.expr | ast.stmt):
            found.append(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in MESSAGES:
            return
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params") or isinstance(node, ast.JoinedStr):
                continue
            for child in value if isinstance(value, list) else [value]:
                text = isinstance(child, ast.Expr) and isinstance(child.value, ast.Constant)
                if isinstance(child, ast.AST) and not text:
                    walk(child)

    walk(tree)
    return found


def _changes(node: ast.expr | ast.stmt) -> list[Callable[[], ast.expr | ast.stmt]]:
    """Ways to make this node wrong."""
    made: list[Callable[[], ast.expr | ast.stmt]] = []
    if isinstance(node, ast.Compare):
        for other in COMPARISONS[type(node.ops[0])]:
            made.append(lambda other=other: ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        made.append(lambda: ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right))
    elif isinstance(node, ast.BoolOp):
        swapped = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        made.append(lambda: ast.BoolOp(swapped, node.values))
    elif isinstance(node, ast.UnaryOp):
        made.append(lambda: node.operand)
    elif isinstance(node, ast.Constant):
        made += [lambda value=value: ast.Constant(value) for value in _other_values(node.value)]
    elif isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        made.append(lambda: ast.Return(ast.Constant(None)))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        made.append(lambda: _with(node, test=ast.UnaryOp(ast.Not(), node.test)))
    elif isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
        made.append(lambda: ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value))
    elif isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        made.append(ast.Pass)
    return made


def _other_values(value: object) -> list[object]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1]
    if isinstance(value, float):
        return [value + 1, value / 2]
    if isinstance(value, str):
        return [value + "x"]
    return [value + b"x"] if isinstance(value, bytes) else []


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _with(node: ast.expr | ast.stmt, **fields: ast.AST) -> ast.expr | ast.stmt:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _replace(tree: ast.Module, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list):
                setattr(parent, name, [new if item is old else item for item in value])
