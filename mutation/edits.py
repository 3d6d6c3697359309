"""The faults that can be put into a statement, and how a statement is recognised again."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import Any

_EACH_OTHER = """
Add Sub, Mult Div, BitAnd BitOr, LShift RShift, Lt LtE, Gt GtE, Eq NotEq, Is IsNot, In NotIn, And Or
"""
_OPERATORS: dict[type, type] = {ast.Pow: ast.Mult, ast.Mod: ast.Mult}
for _one, _other in (pair.split() for pair in _EACH_OTHER.split(",")):
    _OPERATORS[getattr(ast, _one)] = getattr(ast, _other)
    _OPERATORS[getattr(ast, _other)] = getattr(ast, _one)
_PAIRS = [("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"), ("any", "all")]
_PAIRS += [("floor", "ceil"), ("nanmin", "nanmax"), ("left", "right")]
_SWAPPED = {a: b for pair in _PAIRS for a, b in (pair, pair[::-1])} | {"sum": "mean"}
#: What a mutant in their arguments would change is words or types, not numbers.
_WORDS = {"cast", "isinstance", "warn", "format", "join", "getattr", "hasattr", "zip"}
#: Words that keep their meaning when everything else is renamed.
_KEPT = {*_SWAPPED, *_WORDS, "np", "len", "range", "abs", "float", "int", "self", "axis"}


def header(statement: ast.stmt) -> ast.stmt:
    """Return a copy of a statement, without the blocks that stand in it."""
    if not hasattr(statement, "body"):
        return copy.deepcopy(statement)
    bare: Any = copy.copy(statement)
    bare.body, bare.orelse = [ast.Pass()], []
    return copy.deepcopy(bare)


def faults(statement: ast.stmt) -> list[ast.stmt]:
    """Return the header of a statement once for each fault that can be put into it, in order."""
    made: list[ast.stmt] = []
    if not _numeric(statement):
        return made
    bare = header(statement)
    for holder, field, position in list(_slots(ast.Module([bare], []))):
        held = getattr(holder, field)
        node = held if position is None else held[position]
        for wrong in _faulty(node, holder, field):
            _put(holder, field, position, wrong)
            root = holder.body[0] if isinstance(holder, ast.Module) else bare
            made.append(copy.deepcopy(root))
        _put(holder, field, position, node)
    before = ast.unparse(bare)
    return [wrong for wrong in made if ast.unparse(wrong) != before]


def shape(statement: ast.stmt) -> str:
    """Return a statement's header with its names taken out: the same after they are changed."""
    bare = header(statement)
    for node in ast.walk(bare):
        for field in ("id", "attr", "arg"):
            name = getattr(node, field, None)
            if isinstance(name, str) and name not in _KEPT:
                setattr(node, field, "_")
        if isinstance(node, ast.AnnAssign):
            node.annotation = ast.Name("_")
    return ast.unparse(bare)


def _numeric(statement: ast.stmt) -> bool:
    kinds = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr
    if isinstance(statement, ast.If):
        return not all(isinstance(inner, ast.Raise) for inner in statement.body)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement, kinds | ast.For | ast.While | ast.With | ast.Delete)


def _slots(node: ast.AST) -> Iterator[tuple[Any, str, int | None]]:
    """Where expressions stand below a node, in the order in which they are read."""
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "type_comment", "ctx", "op", "ops"):
            continue
        for position, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST) and not _is_words(child):
                yield node, field, position if isinstance(value, list) else None
                if not _is_negative_number(child):
                    yield from _slots(child)


def _is_words(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        name = called(node)
        return name in _WORDS or name.endswith(("Error", "Warning"))
    return isinstance(node, ast.JoinedStr)


def called(call: ast.Call) -> str:
    """Return the last word of what is called."""
    return getattr(call.func, "id", None) or getattr(call.func, "attr", None) or ""


def _is_negative_number(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)


def _put(holder: Any, field: str, position: int | None, node: ast.AST) -> None:
    if position is None:
        setattr(holder, field, node)
    else:
        getattr(holder, field)[position] = node


def _with(node: Any, **fields: Any) -> Any:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _faulty(node: Any, holder: ast.AST, field: str) -> list[ast.AST]:
    """Return what may stand in place of a node."""
    match node:
        case ast.BinOp(op=ast.FloorDiv()):  # rounded up
            negative = _with(node, left=ast.UnaryOp(ast.USub(), node.left))
            return [ast.UnaryOp(ast.USub(), negative)]
        case ast.BinOp(op=ast.MatMult()):
            return [ast.BinOp(ast.Constant(2), ast.Mult(), node)]
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp() if type(node.op) in _OPERATORS:
            return [_with(node, op=_OPERATORS[type(node.op)]())]
        case ast.Compare():
            return [
                _with(node, ops=[*node.ops[:i], _OPERATORS[type(op)](), *node.ops[i + 1 :]])
                for i, op in enumerate(node.ops)
            ]
        case ast.UnaryOp():
            return [node.operand]
        case ast.Slice():
            bounds = [name for name in ("lower", "upper") if getattr(node, name) is not None]
            return [_with(node, **{name: None}) for name in bounds]
        case ast.Constant():
            return _other_constant(node, holder, field)
        case ast.Call(func=ast.Name(id=name)) if name in _SWAPPED and name != "sum":
            return [_with(node, func=ast.Name(_SWAPPED[name], ast.Load()))]
        case ast.Call(func=ast.Attribute(attr=name)) if name in _SWAPPED:
            return [_with(node, func=_with(node.func, attr=_SWAPPED[name]))]
    return []


def _other_constant(node: ast.Constant, holder: ast.AST, field: str) -> list[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        return [ast.Constant(not value)]
    if isinstance(value, int | float):
        zero_or_one = {0: 1, 1: 0}.get(value)
        other = (value + 1 if isinstance(value, int) else 2 * value) if zero_or_one is None else 0
        return [ast.Constant(type(value)(other if zero_or_one is None else zero_or_one))]
    is_side = isinstance(holder, ast.keyword) and holder.arg == "side" and field == "value"
    return [ast.Constant(_SWAPPED[value])] if is_side and value in _SWAPPED else []
