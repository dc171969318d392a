"""Finding the graphs inside a graph: nodes that are compiled graphs, and graphs that a node's function refers to."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from functools import partial
from itertools import islice
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from runtime.run.program import Program
from runtime.types.attributes import attribute
from runtime.types.constants import NS_END, NS_SEP

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import Checkpoint
    from runtime.engine.plan import NodePlan, Plan


SOME: Final = 1000
"""Items of a list, tuple or dict that are looked at: nobody writes down more subgraphs, and data may be millions."""


def programs_in(function: Any) -> tuple[Program, ...]:
    """Return the programs of the subgraphs that a node runs, as far as its function shows them.

    Stateless ones (``checkpointer=False``) are left out: there is nothing of them to read.
    """
    found = {id(program): program for program in _found(function)[0] if program.saver is not False}
    return tuple(found.values())


def _found(function: Any) -> tuple[list[Program], set[str]]:
    """Return the programs that a function refers to, itself or through @task functions, and the names of these.

    It may refer to anything: to proxies that have nothing to show yet, to data that another thread changes meanwhile,
    or that is huge.
    """
    if (own := _program_of(function)) is not None:
        return [own], set()
    programs: list[Program] = []
    names: set[str] = set()
    waiting, seen = [function], {id(function)}
    while waiting:
        looked_at = waiting.pop()
        for referred in (each for value in _referred(looked_at) for each in _members(value)):
            if (own := _program_of(referred)) is not None:
                programs.append(own)
            elif id(referred) not in seen:
                seen.add(id(referred))
                if type(referred) is FunctionType:
                    if _encloses(looked_at, referred):
                        waiting.append(referred)  # a decorator's inner function looks at what it decorates
                elif (wrapped := attribute(referred, "__wrapped__")) is not None:
                    names.add(str(attribute(referred, "name") or ""))
                    waiting.append(wrapped)
    return programs, names


def _program_of(value: Any) -> Program | None:
    own = attribute(value, "program")
    return own if type(own) is Program else None


def _members(value: Any) -> Iterable[Any]:
    """Return a value, or what a list, tuple or dict of values holds at its beginning."""
    kind = type(value)
    if issubclass(kind, dict):
        return list(islice(dict.values(value), SOME))
    if issubclass(kind, (list, tuple)):
        plain: Any = list if issubclass(kind, list) else tuple
        return list(islice(plain.__iter__(value), SOME))
    return (value,)


def _encloses(function: Any, value: Any) -> bool:
    cells = getattr(function, "__closure__", None) or ()
    return any(cell.cell_contents is value for cell in cells if _is_set(cell))


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - raises if there is nothing in it yet
    except ValueError:
        return False
    return True


def _referred(function: Any) -> Iterable[Any]:
    """Return the values that a function can reach by name."""
    plain = function
    while type(plain) is partial:
        yield from (*plain.args, *plain.keywords.values())
        plain = plain.func
    if not inspect.isroutine(plain):
        yield from _attributes(plain)
        plain = getattr(type(plain), "__call__", None)
    elif hasattr(plain, "__self__"):
        yield from _attributes(plain.__self__)
        plain = getattr(plain, "__func__", None)
    if type(plain) is not FunctionType:
        return
    yield from (*(plain.__defaults__ or ()), *(plain.__kwdefaults__ or {}).values())
    try:
        names = inspect.getclosurevars(plain)
    except (TypeError, ValueError):
        return
    yield from (*names.nonlocals.values(), *names.globals.values())


def _attributes(value: Any) -> list[Any]:
    """Return what an instance holds."""
    held = attribute(value, "__dict__")
    return list(_members(held)) if isinstance(held, dict) else []


def find(plan: Plan, ns: str) -> list[Program]:
    """Return the programs whose checkpoints a namespace may hold; none if this graph has no such subgraph.

    A node that runs several graphs does not say which of them ran first; the checkpoint itself does (see ``fits``).
    """
    plans, above, found = [plan], list["Plan"](), list[Program]()
    for part in ns.split(NS_SEP):
        name = part.partition(NS_END)[0]
        if found and name.isdecimal():
            continue  # a further subgraph of the same task
        inside = [program for each in plans for node in _nodes(each) if node.name == name for program in node.subgraphs]
        if inside:
            above = plans
        found = inside or [program for each in above for program in _called(each, name)]
        if not found:
            return []
        plans = [program.plan for program in found]
    return found


def _nodes(plan: Plan) -> Iterable[NodePlan]:
    """Return the nodes of a graph and their error handlers."""
    for node in plan.nodes.values():
        yield node
        if node.handler is not None:
            yield node.handler


def _called(plan: Plan, name: str) -> Iterable[Program]:
    """Return the programs that a @task function runs, if nodes call one of that name."""
    calling = [_found(getattr(node.call, "function", None)) for node in _nodes(plan)]
    return [program for programs, names in calling if name in names for program in programs]


def fits(program: Program, checkpoint: Checkpoint) -> bool:
    """Tell whether a checkpoint can be one of the program's: it knows its channels, and the nodes that ran."""
    plan = program.plan
    ran = [name for name in checkpoint["versions_seen"] if not name.startswith("__")]
    return all(plan.template(key) is not None for key in checkpoint["channel_values"]) and all(
        plan.aliases.get(name, name) in plan.nodes for name in ran
    )
