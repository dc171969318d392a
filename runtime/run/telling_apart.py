"""Which of several calls that a node makes at once is which, when the node starts again.

Calls made one after another are told apart by their number. Calls made at once (``gather``, a task group) may come in
another order the next time, so each notes in its checkpoints which graph it ran and with what; by that it finds its own
state again, and never another's.
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from persistence.errors import PersistenceError
from runtime.run.journal import CALL_MARK, CALLER
from runtime.types.config import parse_config
from runtime.types.constants import NS_END, NS_SEP

if TYPE_CHECKING:
    from runtime.context.scope import Scope
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
    """Return a call made at once with others, in the place that it had before if it had one."""
    nested, saver = call.nested, program.saver
    assert nested is not None  # noqa: S101 - only nested calls are made at once with others
    if nested.per_thread:
        return call  # told apart by its number alone: see run/keeping
    mark = _mark(program, call)
    if saver is None or isinstance(saver, bool) or mark is None:
        return call
    nested.mark = mark
    taken = nested.taken
    ns = call.config.checkpoint_ns
    if may_have_run(nested.scope, reviving=nested.around.reviving):
        ns = await _place(saver, call, mark, taken)
    taken.add(ns)
    configurable = {**call.config.configurable, "checkpoint_ns": ns}
    return replace(call, config=parse_config({**call.config.raw, "configurable": configurable}))


async def _place(saver: Any, call: Call, mark: str, taken: set[str]) -> str:
    nested, ns = call.nested, call.config.checkpoint_ns
    assert nested is not None  # noqa: S101 - see the caller
    here = nested.scope.task.ns
    known = await _calls_of(saver, call.config.thread_id, here)
    past = here if call.travel is None else call.travel.stored(here)
    if past != here:
        for each, whose in (await _calls_of(saver, call.config.thread_id, past)).items():
            known.setdefault(here + each.removeprefix(past), whose)
    mine = sorted(each for each, whose in known.items() if whose == mark and each not in taken)
    if mine:
        return mine[0]
    return ns if ns not in known and ns not in taken else f"{ns}{NS_SEP}{int(mark, 16)}"


async def _calls_of(saver: Any, thread_id: str | None, task_ns: str) -> dict[str, str]:
    """Return the marks, by namespace, of what a task has called at once."""
    known: dict[str, str] = {}
    caller = task_ns.rpartition(NS_SEP)[2].partition(NS_END)[2]
    async for found in saver.alist({"configurable": {"thread_id": thread_id}}, filter={CALLER: caller}):
        known.setdefault(found.config["configurable"].get("checkpoint_ns", ""), found.metadata.get(CALL_MARK, ""))
    return known


def _mark(program: Program, call: Call) -> str | None:
    """Return what stands for the graph and its input, the same in every process; None if nothing can."""
    stable = getattr(getattr(program.saver, "serde", None), "stable_form", None)
    try:
        form: bytes = repr(call.input).encode("utf-8", "surrogatepass") if stable is None else stable(call.input)
    except PersistenceError:
        return None
    plan = program.plan
    graph = repr((plan.name, list(plan.nodes), list(plan.state))).encode("utf-8", "surrogatepass")
    return blake2b(graph + b"\0" + form, digest_size=_DIGEST).hexdigest()
