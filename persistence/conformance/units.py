"""Checks of the unit door: order, acknowledgement, heads. A saver without it is not asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

from persistence.conformance.samples import checkpoint, config, listed, values
from persistence.conformance.suite import Check, ConformanceError, expect, expect_conflict
from persistence.contracts.checkpoint import TaskWrites, Unit
from persistence.contracts.saver import takes_units
from persistence.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from persistence.contracts.saver import Ack

THREADS: Final = 8
LENGTH: Final = 25


def _door(saver: Any) -> Any:
    if not takes_units(saver):
        message = f"{type(saver).__name__} takes no units."
        raise UnsupportedOperationError(message)
    return saver


def _unit(thread: str, number: int, *, expected: str | None = None) -> Unit:
    made = checkpoint(f"{number:03}", {"a": [number]}, {"a": f"{number:03}"})
    parent = None if number == 0 else f"{number - 1:03}"
    writes = [] if parent is None else [TaskWrites(parent, f"task {number}", "", [("a", [number])])]
    return Unit(thread, "", writes, made, parent, {"step": number}, {"a": [number]}, expected_head=expected)


async def acknowledged_in_order(saver: Any, thread: str) -> None:
    """Units of one thread become durable in the order they were sent, whatever runs beside; reads see what was sent."""
    door = _door(saver)

    async def run(name: str) -> None:
        acks: list[Ack] = []
        for number in range(LENGTH):
            unit = _unit(name, number, expected="" if number == 0 else f"{number - 1:03}")
            acks.append(await door.send(door.encode(unit)))
            if number % 5 == 0:
                expect(await values(saver, name), {"a": [number]}, "what a run reads of its own writes")
        await acks[-1].wait()
        if not all(ack.done and ack.error is None for ack in acks):
            message = "a unit was acknowledged before one that was sent earlier"
            raise ConformanceError(message)

    async with anyio.create_task_group() as group:
        for number in range(THREADS):
            group.start_soon(run, f"{thread}/{number}")
    wanted = [f"{number:03}" for number in reversed(range(LENGTH))]
    for number in range(THREADS):
        expect(await listed(saver, config(f"{thread}/{number}")), wanted, "the chain of a thread")


async def heads_are_compared(saver: Any, thread: str) -> None:
    """A unit that follows a head that has moved on is refused, and nothing of it is stored; others commit."""
    door = _door(saver)
    for number in range(2):
        ack = await door.send(door.encode(_unit(thread, number, expected="" if number == 0 else "000")))
        await ack.wait()
    stale = _unit(thread, 2, expected="000")
    stale.writes = [TaskWrites("001", "loser", "", [("a", [9])])]
    refused = await door.send(door.encode(stale))
    beside = await door.send(door.encode(_unit(f"{thread}/beside", 0, expected="")))
    await beside.wait()
    await expect_conflict(refused, "a unit on top of a head that had moved on")
    expect(await listed(saver, config(thread)), ["001", "000"], "the thread after a lost race")
    found = await saver.aget_tuple(config(thread))
    expect(list(found.pending_writes or ()) if found else None, [], "the writes of the one that lost")
    again = await door.send(door.encode(_unit(thread, 1, expected="000")))
    await again.wait()  # tried again: it is stored already


async def forks_need_their_start(saver: Any, thread: str) -> None:
    """A fork from a checkpoint that was pruned meanwhile is refused: it would be the newest, and could not be read."""
    door = _door(saver)
    for number in range(3):
        ack = await door.send(door.encode(_unit(thread, number)))
        await ack.wait()
    fork = _unit(thread, 3, expected="002")
    fork.parent_id, fork.writes = "001", []
    await (await door.send(door.encode(fork))).wait()
    await saver.aprune([thread])
    late = _unit(thread, 4, expected="003")
    late.parent_id, late.writes = "001", []
    refused = await door.send(door.encode(late))
    await expect_conflict(refused, "a fork whose start is gone")
    expect(await listed(saver, config(thread)), ["003"], "the thread")
    await (await door.send(door.encode(_unit(thread, 4, expected="003")))).wait()
    expect(await listed(saver, config(thread)), ["004", "003"], "the thread that goes on from its head")


async def based_writes_need_their_checkpoint(saver: Any, thread: str) -> None:
    """What a task wrote is refused once its thread was deleted, if it is said to need its checkpoint."""
    door = _door(saver)
    late = Unit(thread, "", [TaskWrites("000", "late", "", [("a", [1])])], based=True)
    for unit in (_unit(thread, 0), late):
        await (await door.send(door.encode(unit))).wait()
    found = await saver.aget_tuple(config(thread))
    expect(list(map(tuple, found.pending_writes or ())) if found else None, [("late", "a", [1])], "the writes")
    await saver.adelete_thread(thread)
    refused = await door.send(door.encode(late))
    await expect_conflict(refused, "what a task wrote without the checkpoint that it needs")
    await (await door.send(door.encode(_unit(thread, 0)))).wait()
    found = await saver.aget_tuple(config(thread))
    expect(list(found.pending_writes or ()) if found else None, [], "the writes of the thread that was deleted")


async def first_checkpoints_need_their_thread(saver: Any, thread: str) -> None:
    """A namespace is not begun on a thread that was deleted meanwhile, nor beside what others have begun since."""
    door, everywhere = _door(saver), {"configurable": {"thread_id": thread}}

    async def sent(unit: Unit) -> Ack:
        ack: Ack = await door.send(door.encode(unit))
        return ack

    def below(ns: str, anchor: str) -> Unit:
        unit = _unit(thread, 0, expected="")
        unit.checkpoint_ns, unit.anchor = ns, ("", anchor)
        unit.writes = [TaskWrites("000", "task of " + ns, "", [("a", [1])])]
        return unit

    for unit in (below("before", ""), _unit(thread, 0, expected=""), below("first", "000")):
        await (await sent(unit)).wait()
    await expect_conflict(await sent(below("late", "")), "a run's first checkpoint beside another's")
    await (await sent(_unit(thread, 1, expected="000"))).wait()
    await saver.aprune([thread])
    for unit in (below("before", ""), below("first", "000")):  # tried again: it is stored already
        await (await sent(unit)).wait()
    expect(await listed(saver, everywhere), ["001", "000", "000"], "the thread with two namespaces below")
    await saver.adelete_thread(thread)
    # What is sent at once may be committed at once.
    late = [await sent(below(ns, anchor)) for ns, anchor in (("first", "001"), ("second", "000"))]
    for ack in late:
        await expect_conflict(ack, "a checkpoint of a thread that was deleted")
    expect(await listed(saver, everywhere), [], "the thread that was deleted")
    anew = _unit(thread, 2, expected="")
    anew.parent_id, anew.writes = None, []
    begun = await sent(anew)
    late = [await sent(below("first", anchor)) for anchor in ("001", "")]
    for ack in late:
        await expect_conflict(ack, "what a run made on the thread before it was deleted")
    own = await sent(below("third", "002"))
    for ack in (begun, own):
        await ack.wait()
    expect(await listed(saver, everywhere), ["002", "000"], "the thread that was begun anew")
    found = await saver.aget_tuple(config(thread, ns="third"))
    wanted = [("task of third", "a", [1])]
    expect(list(map(tuple, found.pending_writes or ())) if found else None, wanted, "its writes")


async def tried_again(saver: Any, thread: str) -> None:
    """A unit that is sent twice, because its outcome was not known, is stored once."""
    door = _door(saver)
    for number in (0, 1, 1, 0):
        ack = await door.send(door.encode(_unit(thread, number)))
        await ack.wait()
    expect(await listed(saver, config(thread)), ["001", "000"], "the thread")
    found = await saver.aget_tuple(config(thread, "000"))
    expect(list(map(tuple, found.pending_writes or ())) if found else None, [("task 1", "a", [1])], "its writes")


CHECKS: Final = (
    Check("acknowledged in order", acknowledged_in_order, "send"),
    Check("heads are compared", heads_are_compared, "send"),
    Check("forks need their start", forks_need_their_start, "send"),
    Check("based writes need their checkpoint", based_writes_need_their_checkpoint, "send"),
    Check("first checkpoints need their thread", first_checkpoints_need_their_thread, "send"),
    Check("tried again", tried_again, "send"),
)
