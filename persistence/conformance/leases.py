"""Checks of leases: who may write to a thread. A saver whose threads have none is not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from persistence.conformance.samples import checkpoint, config, listed
from persistence.conformance.suite import Check, expect, expect_conflict
from persistence.contracts.checkpoint import TaskWrites, Unit
from persistence.contracts.lease import Lease
from persistence.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from persistence.contracts.saver import Ack

GRAPH: Final = "conformance"


def _owner(saver: Any) -> str:
    owner: str | None = getattr(saver, "lease_owner", None)
    if owner is None:
        message = f"{type(saver).__name__} keeps no leases."
        raise UnsupportedOperationError(message)
    return owner


def _unit(thread: str, number: int | None, lease: Lease) -> Unit:
    if number is None:
        return Unit(thread, "", [TaskWrites("000", "task", "", [("a", [1])])], lease=lease)
    made = checkpoint(f"{number:03}", {"a": [number]}, {"a": f"{number:03}"})
    parent = None if number == 0 else f"{number - 1:03}"
    return Unit(thread, "", [], made, parent, {"step": number}, {"a": [number]}, lease=lease)


async def _sent(saver: Any, unit: Unit) -> Ack:
    ack: Ack = await saver.send(saver.encode(unit))
    return ack


async def _is_free(saver: Any, thread: str) -> bool:
    """Tell whether a thread is among those of its graph that nobody holds, and is so in its place."""
    found = [row.thread_id for row in await saver.afree_leases(GRAPH, "", 1_000_000)]
    later = [row.thread_id for row in await saver.afree_leases(GRAPH, thread)]
    elsewhere = [row.thread_id for row in await saver.afree_leases(f"not {GRAPH}")]
    return thread in found and thread not in later + elsewhere and found == sorted(found)


async def taken_and_let_go(saver: Any, thread: str) -> None:
    """A run's first unit takes the thread, its last one lets go of it; epochs grow; nothing is held afterwards."""
    owner = _owner(saver)
    expect(await saver.alease(thread), None, "the lease of a thread that never had one")
    for epoch in (1, 2):
        seen = (epoch - 1, owner if epoch > 1 else "")
        await (await _sent(saver, _unit(thread, 2 * epoch - 2, Lease(epoch, owner, GRAPH, *seen, True)))).wait()
        found = await saver.alease(thread)
        expect(found[:5], (thread, epoch, owner, GRAPH, True), "the lease that was taken")
        expect(saver.is_dead(found), False, "whether an owner at work counts as dead")
        expect(thread in [row.thread_id for row in await saver.aheld_leases()], True, "whether it is among those held")
        expect(await _is_free(saver, thread), False, "whether it is among those that nobody holds")
        await (await _sent(saver, _unit(thread, 2 * epoch - 1, Lease(epoch, owner, GRAPH, *seen, False, True)))).wait()
        expect((await saver.alease(thread)).held, False, "whether the thread is held after its last unit")
        expect(await _is_free(saver, thread), True, "whether it is among those that nobody holds")
        expect(thread in [row.thread_id for row in await saver.aheld_leases()], False, "whether it is among those held")


async def stale_leases_are_refused(saver: Any, thread: str) -> None:
    """Who was overtaken stores nothing, not even a task's writes; others in the same commit are stored."""
    owner = _owner(saver)
    await (await _sent(saver, _unit(thread, 0, Lease(1, owner, GRAPH, 0, "", True)))).wait()
    await (await _sent(saver, _unit(thread, None, Lease(2, "heir", GRAPH, 1, owner, True)))).wait()
    late = [await _sent(saver, _unit(thread, number, Lease(1, owner, GRAPH))) for number in (1, None)]
    late.append(await _sent(saver, _unit(thread, 1, Lease(2, "another", GRAPH, 1, owner, True))))
    beside = await _sent(saver, _unit(f"{thread}/beside", 0, Lease(1, owner, GRAPH, 0, "", True)))
    await beside.wait()
    for ack in late:
        await expect_conflict(ack, "a unit of a run that was overtaken")
    expect(await listed(saver, config(thread)), ["000"], "the thread")
    found = await saver.aget_tuple(config(thread, "000"))
    expect([tuple(each) for each in found.pending_writes], [("task", "a", [1])], "the heir's writes, and no others")
    expect((await saver.alease(thread))[1:3], (2, "heir"), "whose the thread is")


async def tried_again_after_all(saver: Any, thread: str) -> None:
    """A unit that is sent once more, because its outcome was not known, passes, also after the thread was let go."""
    owner = _owner(saver)
    first, last = Lease(1, owner, GRAPH, 0, "", True), Lease(1, owner, GRAPH, 0, "", True, True)
    for number, lease in ((0, first), (0, first), (1, last), (1, last), (0, first)):
        await (await _sent(saver, _unit(thread, number, lease))).wait()
    await (await _sent(saver, _unit(thread, 2, Lease(2, "heir", GRAPH, 1, owner, True)))).wait()
    await (await _sent(saver, _unit(thread, 1, last))).wait()
    expect((await saver.alease(thread))[1:3], (2, "heir"), "whose the thread is")
    expect(await listed(saver, config(thread)), ["002", "001", "000"], "the thread")


async def deleted_with_the_thread(saver: Any, thread: str) -> None:
    """A thread that was deleted stays so: who held it cannot write to it."""
    owner = _owner(saver)
    await (await _sent(saver, _unit(thread, 0, Lease(1, owner, GRAPH, 0, "", True)))).wait()
    await saver.adelete_thread(thread)
    expect(await saver.alease(thread), None, "the lease of a thread that was deleted")
    for number in (1, None):
        late = await _sent(saver, _unit(thread, number, Lease(1, owner, GRAPH)))
        await expect_conflict(late, "a unit of a deleted thread")
    expect(await listed(saver, config(thread)), [], "the thread")


CHECKS: Final = (
    Check("leases: taken and let go", taken_and_let_go, "alease"),
    Check("leases: stale ones are refused", stale_leases_are_refused, "alease"),
    Check("leases: tried again", tried_again_after_all, "alease"),
    Check("leases: deleted with the thread", deleted_with_the_thread, "alease"),
)
