"""Finding the graphs inside a graph: nodes that are compiled graphs, and graphs that a node's function refers to."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
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
    return tuple(program for program in _programs(function) if program.saver is not False)


def _programs(function: Any) -> Iterable[Program]:
    if isinstance(own := getattr(function, "program", None), Program):
        return (own,)
    plain = function
    while isinstance(plain, partial):
        plain = plain.func
    plain = getattr(plain, "__func__", plain)
    if not inspect.isfunction(plain):
        plain = getattr(type(plain), "__call__", None)
    if not inspect.isfunction(plain):
        return ()
    try:
        seen = inspect.getclosurevars(plain)
    except (TypeError, ValueError):
        return ()
    referred = (*seen.nonlocals.values(), *seen.globals.values())
    return tuple(found for value in referred if isinstance(found := getattr(value, "program", None), Program))


def find(plan: Plan, ns: str) -> Program | None:
    """Return the program whose checkpoints a namespace holds, or None if this graph has no such subgraph."""
    program: Program | None = None
    here = plan
    for part in ns.split(NS_SEP):
        name = part.partition(NS_END)[0]
        if name.isdecimal() and program is not None:
            continue  # a further subgraph of the same task, which the graphs of its node stand for
        node = here.nodes.get(name)
        if node is None or not node.subgraphs:
            return None
        program = node.subgraphs[_index_after(ns, part) % len(node.subgraphs)]
        here = program.plan
    return program


def _index_after(ns: str, part: str) -> int:
    parts = ns.split(NS_SEP)
    following = parts[parts.index(part) + 1 :]
    return int(following[0]) if following and following[0].isdecimal() else 0
