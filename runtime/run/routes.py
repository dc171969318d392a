"""Where a subgraph that keeps its state finds it again, when the number of its call depends on timing.

Its namespace is made of names and numbers of calls. A number says which call it is only as long as calls are made one
after another: beside others that were called at once it may be another on the thread's next turn. So what is kept also
notes its route, which has no such numbers: the names, and for each call its graph and which of that graph's calls it
is. That much is the same every time, as those who keep their state are never at work at once (see run/keeping).
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from runtime.run.metadata import KEPT_AT
from runtime.run.travelling import names_of
from runtime.types.config import parse_config
from runtime.types.constants import NS_SEP

if TYPE_CHECKING:
    from persistence.contracts.checkpoint import CheckpointTuple
    from runtime.run.nesting import Nested
    from runtime.run.program import Call, Program

_DIGEST: Final = 8


async def kept_in_place(program: Program, call: Call) -> Call:
    """Return a call of a subgraph that keeps its state, in the place where that is."""
    nested, saver = call.nested, program.saver
    assert nested is not None  # noqa: S101 - only subgraphs keep their state beside a parent
    if saver is None or isinstance(saver, bool):
        return call
    route, sure = _route(nested)
    nested.kept_at = blake2b(route.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).hexdigest()
    if sure:
        return call
    ns = await _place(saver, call, nested, nested.kept_at)
    configurable = {**call.config.configurable, "checkpoint_ns": ns}
    return replace(call, config=parse_config({**call.config.raw, "configurable": configurable}))


def _route(nested: Nested) -> tuple[str, bool]:
    """Return the way to a subgraph, and whether the numbers in its namespace are the same every time."""
    above, scope = nested.around, nested.scope
    if above.nested is None or above.nested.per_thread:
        start, sure = above.ns, True
    else:
        start, sure = _route(above.nested)
    names = names_of(scope.task.ns.removeprefix(above.ns))
    return f"{start}\0{names}\0{nested.shape}\0{nested.turn}", sure and not nested.unsure


async def _place(saver: Any, call: Call, nested: Nested, kept_at: str) -> str:
    """Return the namespace that is found by a route; if there is none, one that no other route leads to."""
    thread_id, ns = call.config.thread_id, call.config.checkpoint_ns
    known: str | None = None
    async for found in saver.alist({"configurable": {"thread_id": thread_id}}, filter={KEPT_AT: kept_at}, limit=1):
        known = found.config["configurable"].get("checkpoint_ns", "")
    if known is not None:
        return known
    base = names_of(nested.scope.task.ns)
    there = await _newest(saver, thread_id, ns)
    if not nested.aside and (there is None or KEPT_AT in there.metadata):
        # Its number among the calls that the node itself makes is the same every time.
        ns = f"{base}{NS_SEP}{nested.in_line}" if nested.in_line else base
        there = await _newest(saver, thread_id, ns)
    free = there is None or KEPT_AT not in there.metadata
    return ns if free else f"{base}{NS_SEP}{int(kept_at, 16)}"


async def _newest(saver: Any, thread_id: str | None, ns: str) -> CheckpointTuple | None:
    place = {"thread_id": thread_id, "checkpoint_ns": ns}
    found: CheckpointTuple | None = await saver.aget_tuple({"configurable": place})
    return found
