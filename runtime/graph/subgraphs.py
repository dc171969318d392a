"""Finding the graphs inside a graph: nodes that are compiled graphs, and graphs that a node's function refers to."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from runtime.run.program import Program
from runtime.types.constants import NS_END, NS_SEP

if TYPE_CHECKING:
    from runtime.engine.plan import Plan


def programs_in(function: Any) -> tuple[Program, ...]:
    """Return the programs of the subgraphs that a node runs, as far as its function shows them.

    Stateless ones (``checkpointer=False``) are left out: there is nothing of them to read.
    """
    found = {id(program): program for program in _programs(function, set()) if program.saver is not False}
    return tuple(found.values())


def _programs(value: Any, seen: set[int]) -> Iterable[Program]:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(own := getattr(value, "program", None), Program):
        yield own
        return
    for referred in _referred(value):
        if isinstance(own := getattr(referred, "program", None), Program):
            yield own
        elif hasattr(referred, "__wrapped__") and not inspect.isfunction(referred):
            yield from _programs(referred.__wrapped__, seen)  # a @task function


def _referred(function: Any) -> Iterable[Any]:
    """Return the values that a function can reach by name."""
    plain = function
    while isinstance(plain, partial):
        yield from (*plain.args, *plain.keywords.values())
        plain = plain.func
    if not inspect.isroutine(plain):
        yield from getattr(plain, "__dict__", {}).values()
        plain = getattr(type(plain), "__call__", None)
    elif hasattr(plain, "__self__"):
        yield from getattr(plain.__self__, "__dict__", {}).values()
        plain = getattr(plain, "__func__", None)
    if not inspect.isfunction(plain):
        return
    yield from (*(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values())
    try:
        names = inspect.getclosurevars(plain)
    except (TypeError, ValueError):
        return
    yield from (*names.nonlocals.values(), *names.globals.values())


def find(plan: Plan, ns: str) -> list[Program]:
    """Return the programs whose checkpoints a namespace may hold; none if this graph has no such subgraph.

    A node that runs several graphs does not say which of them ran first; the checkpoint itself does (see ``fits``).
    """
    first, *rest = (part.partition(NS_END)[0] for part in ns.split(NS_SEP))
    found = _inside(plan, first)
    for name in rest:
        if name.isdecimal():
            continue  # a further subgraph of the same task
        deeper = [program for outer in found for program in _inside(outer.plan, name)]
        if not deeper and any(name in outer.plan.nodes for outer in found):
            return []
        found = deeper or found  # the name of a @task function, which runs what its caller refers to
    return found


def _inside(plan: Plan, name: str) -> list[Program]:
    node = plan.nodes.get(name)
    return [] if node is None else list(node.subgraphs)


def fits(program: Program, values: Mapping[str, Any]) -> bool:
    """Tell whether a checkpoint with these channels can be one of the program's."""
    return all(program.plan.template(key) is not None for key in values)
