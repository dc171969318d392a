"""What a function is, as text that changes when its code does: so that results of old code are not taken for new ones.

Looked at: module, qualified name, bytecode and constants, defaults, wrapped and enclosed functions, subgraphs, and the
plain values (numbers, texts, tuples of them) that a closure or a callable object holds, unless the function itself
assigns them: a counter is not code. Not looked at: functions that it finds by a global name, and what mutable objects
contain.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from hashlib import blake2b
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from runtime.run.program import Program
from runtime.types.attributes import attribute

if TYPE_CHECKING:
    from runtime.engine.plan import NodePlan, Plan

_DIGEST: Final = 16
_PLAIN: Final = (int, float, complex, str, bytes, type(None), type(...))
_ASSIGNING: Final = frozenset({"STORE_DEREF", "STORE_ATTR", "STORE_GLOBAL"})
_NOTHING: Final[frozenset[str]] = frozenset()


def node_identity(plan: Plan, node: NodePlan) -> str:
    """Return a digest of everything that a node's writes follow from, beside its input.

    That is its function, and because the writes include edges and routes, also its edges, its routers, and what the
    graph has to write to.
    """
    key_func = None if node.cache is None else node.cache.key_func
    text = "\n".join((_node(node, set()), _traits(key_func, set()), *plan.nodes, *plan.state))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()


def _node(node: NodePlan, seen: set[int]) -> str:
    function = None if node.call is None else node.call.function
    below = [_graph(program, seen) for program in node.subgraphs]
    return f"{node.name} {_traits(function, seen)} {node.edge_writes} {[*_routes(node, seen)]} {below}"


def _graph(program: Program, seen: set[int]) -> str:
    if id(program) in seen:
        return "again"
    seen.add(id(program))
    return f"graph {[_node(node, seen) for node in program.plan.nodes.values()]}"


def _routes(node: NodePlan, seen: set[int]) -> Iterator[str]:
    for branch in node.branches:
        ends = None if branch.ends is None else sorted(f"{key!r} {end}" for key, end in branch.ends.items())
        yield f"{branch.name} {_traits(branch.call.function, seen)} {ends}"


def _traits(value: Any, seen: set[int], assigned: frozenset[str] = _NOTHING) -> str:
    """Return a text of what a value is; ``assigned`` are attribute names that do not count."""
    if isinstance(value, _PLAIN) and not isinstance(value, Enum):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, tuple):
        kind = "" if type(value) is tuple else _named(type(value))
        return f"{kind}({', '.join(_traits(item, seen) for item in value)})"
    if type(value) is frozenset:
        return f"{{{', '.join(sorted(_traits(item, seen) for item in value))}}}"
    if id(value) in seen:
        return "again"
    seen.add(id(value))
    if isinstance(value, CodeType):
        return _code(value, seen)
    if isinstance(value, FunctionType):
        return _function(value, seen)
    if isinstance(value, MethodType):
        return f"method {_traits(value.__func__, seen)} of {_holder(value.__self__, seen, _assigned(value.__func__))}"
    if isinstance(value, partial):
        held = sorted(f"{key}={_traits(item, seen)}" for key, item in value.keywords.items())
        return f"partial {_traits(value.func, seen)} {_traits(value.args, seen)} {held}"
    if isinstance(value, Enum):
        return f"{_named(type(value))}.{value.name}"
    if isinstance(value, type | BuiltinFunctionType):
        return _named(value)
    wrapped = attribute(value, "__wrapped__")
    return _holder(value, seen, assigned) + ("" if wrapped is None else f" around {_traits(wrapped, seen)}")


def _function(function: FunctionType, seen: set[int]) -> str:
    assigned = _assigned(function)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    held = [f"{name}={_cell(cell, seen, assigned)}" for name, cell in cells if name not in assigned]
    defaults = _traits(function.__defaults__, seen)
    named = sorted(f"{key}={_traits(item, seen)}" for key, item in (function.__kwdefaults__ or {}).items())
    return f"{_named(function)} {_code(function.__code__, seen)} {defaults} {named} {held}"


def _cell(cell: Any, seen: set[int], assigned: frozenset[str]) -> str:
    try:
        return _traits(cell.cell_contents, seen, assigned)
    except ValueError:
        return "empty"


def _code(code: CodeType, seen: set[int]) -> str:
    constants = [_traits(constant, seen) for constant in code.co_consts]
    shape = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return f"{code.co_code.hex()} {shape} {names} {constants}"


def _holder(value: Any, seen: set[int], assigned: frozenset[str]) -> str:
    """Return a text of an object that is called, or that a function holds: its class and its plain attributes."""
    program = _held(value).get("program")
    if isinstance(program, Program):
        return _graph(program, seen)
    kind = type(value)
    call = getattr(kind, "__call__", None)
    assigned |= _assigned(call)
    held = sorted(f"{name}={_traits(item, seen)}" for name, item in _plain_attributes(value) if name not in assigned)
    return f"{_named(kind)} {_traits(call, seen) if isinstance(call, FunctionType) else ''} {held}"


def _plain_attributes(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield attributes that hold plain values; others may change without the code changing."""
    for name, item in _held(value).items():
        if isinstance(item, (*_PLAIN, tuple, frozenset)):
            yield name, item


def _held(value: Any) -> Mapping[str, Any]:
    names = getattr(type(value), "__struct_fields__", None)
    if names is None and is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in fields(value)]
    if names is not None:
        return {name: attribute(value, name) for name in names}
    held = attribute(value, "__dict__")
    return held if isinstance(held, dict) else {}


def _assigned(function: Any) -> frozenset[str]:
    """Return the names of variables and attributes that a function assigns, functions inside of it included."""
    code = getattr(function, "__code__", None)
    return frozenset(_assignments(code)) if isinstance(code, CodeType) else _NOTHING


def _assignments(code: CodeType) -> Iterator[str]:
    for step in dis.get_instructions(code):
        if step.opname in _ASSIGNING:
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _assignments(constant)


def _named(value: Any) -> str:
    return f"{attribute(value, '__module__')}:{attribute(value, '__qualname__', type(value).__qualname__)}"
