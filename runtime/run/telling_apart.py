"""Which of several calls that a node makes at once is which, when the node starts again.

Calls made one after another are told apart by their number. Calls made at once (``gather``, a task group) may come in
another order the next time, so each notes in its checkpoints which graph it ran and with what; by that it finds its own
state again, and never another's. So does one that the node makes itself while others are at work beside it.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from persistence.errors import PersistenceError
from runtime.run.metadata import CALL_MARK, CALLER
from runtime.types.config import parse_config
from runtime.types.constants import NS_END, NS_SEP

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.context.scope import Scope
    from runtime.run.nesting import Nested
    from runtime.run.program import Call, Program

_DIGEST: Final = 8


def may_have_run(scope: Scope, *, reviving: bool) -> bool:
    """Tell whether anything can be stored of what a task runs: only if it has been run before."""
    if reviving:
        return True
    one: Scope | None = scope
    while one is not None:
        if one.attempt > 1:
            return True
        one = one.task.around
    return False


async def told_apart(program: Program, call: Call) -> Call:
    """Return a call; one whose number depends on timing, in the place that it had before if it had one."""
    nested, saver, ns = call.nested, program.saver, call.config.checkpoint_ns
    assert nested is not None  # noqa: S101 - only nested calls are made at once with others
    if saver is None or isinstance(saver, bool):
        return call
    may_be_stored = may_have_run(nested.scope, reviving=nested.around.reviving)
    if not nested.unsure and not (may_be_stored and await _displaced(program, call, nested)):
        nested.taken.add(ns)
        return call
    mark = _mark(program, call)
    if mark is None:
        return call
    nested.mark = mark
    if may_be_stored:
        ns = await _place(saver, call, nested, mark)
    nested.taken.add(ns)
    configurable = {**call.config.configurable, "checkpoint_ns": ns}
    return replace(call, config=parse_config({**call.config.raw, "configurable": configurable}))


async def _displaced(program: Program, call: Call, nested: Nested) -> bool:
    """Tell whether a call made at once with others is stored where the number of this one leads."""
    node = nested.scope.task.node
    if node.call is not None and node.call.function is program.graph:
        return False  # nothing else is called in a node that is a graph
    ns = call.config.checkpoint_ns
    found = await _stored(program.saver, call, ns if call.travel is None else call.travel.stored(ns))
    return found is not None and CALL_MARK in found.metadata


async def _place(saver: Any, call: Call, nested: Nested, mark: str) -> str:
    ns, taken = call.config.checkpoint_ns, nested.taken
    here = nested.scope.task.ns
    known = await _calls_of(saver, call.config.thread_id, here)
    past = here if call.travel is None else call.travel.stored(here)
    if past != here:
        for each, whose in (await _calls_of(saver, call.config.thread_id, past)).items():
            known.setdefault(here + each.removeprefix(past), whose)
    mine = sorted(each for each, whose in known.items() if whose == mark and each not in taken)
    if mine:
        return mine[0]
    known_or_taken = known.keys() | taken

    async def unmarked(each: str) -> bool:
        """Tell whether a call is stored there that was known by its number alone."""
        return each not in known_or_taken and (
            await _stored(saver, call, each) is not None
            or (past != here and await _stored(saver, call, past + each.removeprefix(here)) is not None)
        )

    if nested.aside:
        free = ns not in known_or_taken and not await unmarked(ns)
        return ns if free else f"{ns}{NS_SEP}{int(mark, 16)}"
    # Its number was enough if it was made before all others the first time.
    for number in range(nested.scope.children):
        each = here if number == 0 else f"{here}{NS_SEP}{number}"
        if await unmarked(each):
            return each
    return ns if ns not in known_or_taken else f"{ns}{NS_SEP}{int(mark, 16)}"


async def _stored(saver: Any, call: Call, ns: str) -> CheckpointTuple | None:
    place = {"thread_id": call.config.thread_id, "checkpoint_ns": ns}
    found: CheckpointTuple | None = await saver.aget_tuple({"configurable": place})
    return found


async def _calls_of(saver: Any, thread_id: str | None, task_ns: str) -> dict[str, str]:
    """Return the marks, by namespace, of what a task has called at once."""
    known: dict[str, str] = {}
    caller = task_ns.rpartition(NS_SEP)[2].partition(NS_END)[2]
    async for found in saver.alist({"configurable": {"thread_id": thread_id}}, filter={CALLER: caller}):
        if CALL_MARK in found.metadata:
            known.setdefault(found.config["configurable"].get("checkpoint_ns", ""), found.metadata[CALL_MARK])
    return known


def _mark(program: Program, call: Call) -> str | None:
    """Return what stands for the graph and its input, the same in every process; None if nothing can."""
    stable = getattr(getattr(program.saver, "serde", None), "stable_form", None)
    try:
        form: bytes = repr(call.input).encode("utf-8", "surrogatepass") if stable is None else stable(call.input)
    except PersistenceError:
        return None
    graph = program.plan.shape.encode("utf-8", "surrogatepass")
    return blake2b(graph + b"\0" + form, digest_size=_DIGEST).hexdigest()
