"""Checks of the five methods that every saver has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from persistence.conformance.samples import checkpoint, config, listed, put, values
from persistence.conformance.suite import Check, expect, expect_refusal
from persistence.contracts.checkpoint import ERROR, INTERRUPT, RESUME

if TYPE_CHECKING:
    from persistence.contracts.saver import BaseCheckpointSaver as Saver


async def newest_and_addressed(saver: Saver, thread: str) -> None:
    """The newest checkpoint is the one with the greatest id, others are found by theirs."""
    expect(await saver.aget_tuple(config(thread)), None, "an unknown thread")
    first = await put(saver, thread, "1", {"a": [1], "n": 1})
    second = await put(saver, thread, "3", {"a": [2], "n": 2}, parent="1", step=7)
    await put(saver, thread, "2", {"a": [0]}, parent="1")
    await put(saver, thread, "9", {"a": []}, ns="child")
    expect(second, config(thread, "3"), "what aput returns")
    newest = await saver.aget_tuple(config(thread))
    if newest is None:
        expect(newest, second, "the newest checkpoint")
        return
    expect(newest.config["configurable"]["checkpoint_id"], "3", "the newest checkpoint")
    expect(dict(newest.checkpoint["channel_values"]), {"a": [2], "n": 2}, "its values")
    expect(newest.metadata["step"], 7, "its metadata")
    expect((newest.parent_config or {}).get("configurable"), first["configurable"], "its parent")
    expect(list(newest.pending_writes or ()), [], "its pending writes")
    expect(await values(saver, thread, "1"), {"a": [1], "n": 1}, "a checkpoint addressed by id")
    expect(await values(saver, thread, ns="child"), {"a": []}, "another namespace")
    expect(await saver.aget_tuple(config(thread, "8")), None, "an unknown checkpoint id")


async def same_id_replaces(saver: Saver, thread: str) -> None:
    """Storing a checkpoint again replaces it."""
    await put(saver, thread, "1", {"a": "x"}, step=1)
    await put(saver, thread, "1", {"a": "x"}, step=2)
    expect(await listed(saver, config(thread)), ["1"], "the thread")
    found = await saver.aget_tuple(config(thread))
    expect(None if found is None else found.metadata["step"], 2, "the metadata stored last")


async def unchanged_channels(saver: Saver, thread: str) -> None:
    """A channel that is not among the new versions keeps the value stored under its version."""
    await put(saver, thread, "1", {"kept": ["old"], "moved": 1})
    versions = {"kept": "1.kept", "moved": "2.moved"}
    made = checkpoint("2", {"kept": ["old"], "moved": 2}, versions)
    await saver.aput(config(thread, "1"), made, {"source": "loop", "step": 1, "parents": {}}, {"moved": "2.moved"})
    expect(await values(saver, thread), {"kept": ["old"], "moved": 2}, "the newest values")
    expect(await values(saver, thread, "1"), {"kept": ["old"], "moved": 1}, "the older values")


async def writes_kept_and_replaced(saver: Saver, thread: str) -> None:
    """A task's first result stays; rows of errors, questions and answers are replaced."""
    where = await put(saver, thread, "1", {})
    await saver.aput_writes(where, [("a", 1), ("b", 2)], "task", "~x")
    await saver.aput_writes(where, [("a", 10), ("b", 20), ("c", 30)], "task", "~x")
    for value in ("first", "second"):
        await saver.aput_writes(where, [(ERROR, value), (INTERRUPT, value), (RESUME, value)], "other", "~y")
    found = await saver.aget_tuple(where)
    written = [] if found is None else sorted(map(tuple, found.pending_writes or ()), key=repr)
    wanted: list[tuple[str, str, Any]] = [("task", "a", 1), ("task", "b", 2), ("task", "c", 30)]
    wanted += [("other", channel, "second") for channel in (ERROR, INTERRUPT, RESUME)]
    expect(written, sorted(wanted, key=repr), "the pending writes")


async def writes_in_order(saver: Saver, thread: str) -> None:
    """Pending writes come by task path, task and position, whatever order they were stored in."""
    where = await put(saver, thread, "1", {})
    for task, path in (("t3", "~c"), ("t1", "~a"), ("t2", "~b")):
        await saver.aput_writes(where, [("x", f"{task} first"), ("x", f"{task} second")], task, path)
    found = await saver.aget_tuple(where)
    order = [value for _, _, value in (found.pending_writes or ())] if found else []
    wanted = [f"{task} {which}" for task in ("t1", "t2", "t3") for which in ("first", "second")]
    expect(order, wanted, "the order of pending writes")


async def writes_before_their_checkpoint(saver: Saver, thread: str) -> None:
    """Writes may be stored before the checkpoint that they belong to, and are found with it."""
    await saver.aput_writes(config(thread, "1"), [("a", 1)], "task")
    await put(saver, thread, "1", {})
    found = await saver.aget_tuple(config(thread, "1"))
    expect(list(map(tuple, found.pending_writes or ())) if found else None, [("task", "a", 1)], "the pending writes")


async def forks(saver: Saver, thread: str) -> None:
    """Two children of one checkpoint are both kept, each with its own values under versions of its own."""
    await put(saver, thread, "1", {"a": [1]})
    await put(saver, thread, "2", {"a": [1, 2]}, parent="1")
    await put(saver, thread, "3", {"a": [1, 3]}, parent="1")
    expect(await listed(saver, config(thread)), ["3", "2", "1"], "the thread")
    expect(await values(saver, thread, "2"), {"a": [1, 2]}, "the first branch")
    expect(await values(saver, thread, "3"), {"a": [1, 3]}, "the second branch")


async def listing(saver: Saver, thread: str) -> None:
    """Listings are newest first, and cut by namespace, limit, before and filter."""
    for number in range(6):
        await put(saver, thread, f"{number}", {"a": [number]}, step=number, kind="even" if number % 2 == 0 else "odd")
    await put(saver, thread, "7", {}, ns="child")
    where = config(thread)
    cases: list[tuple[str, list[str], list[str]]] = [
        ("a namespace", await listed(saver, where), ["5", "4", "3", "2", "1", "0"]),
        ("every namespace", await listed(saver, {"configurable": {"thread_id": thread}}), list("7543210")),
        ("limit", await listed(saver, where, limit=2), ["5", "4"]),
        ("before", await listed(saver, where, before=config(thread, "3")), ["2", "1", "0"]),
        ("one checkpoint", await listed(saver, config(thread, "4")), ["4"]),
        ("filter", await listed(saver, where, filter={"kind": "odd"}), ["5", "3", "1"]),
        ("filter and limit", await listed(saver, where, filter={"kind": "odd"}, limit=1), ["5"]),
        ("two keys", await listed(saver, where, filter={"kind": "odd", "step": 3}), ["3"]),
        ("a filter that nothing matches", await listed(saver, where, filter={"kind": "neither"}), []),
        ("an unknown thread", await listed(saver, config(f"{thread}/unknown")), []),
    ]
    for what, found, wanted in cases:
        expect(found, wanted, f"a listing by {what}")


async def all_threads(saver: Saver, thread: str) -> None:
    """Without a config every thread is listed."""
    for number in (1, 2):
        await put(saver, f"{thread}/{number}", "1", {}, mark=thread)
    found = [one.config["configurable"]["thread_id"] async for one in saver.alist(None, filter={"mark": thread})]
    expect(sorted(found), [f"{thread}/1", f"{thread}/2"], "the threads")


async def deleting(saver: Saver, thread: str) -> None:
    """A deleted thread is gone in every namespace, can start again, and others are left alone."""
    for one in (thread, f"{thread}/other"):
        await put(saver, one, "1", {"a": ["old"]})
        await put(saver, one, "2", {"a": ["old"]}, ns="child")
        await saver.aput_writes(config(one, "1"), [("a", 1)], "task")
    await saver.adelete_thread(thread)
    await saver.adelete_thread(f"{thread}/never existed")
    expect(await listed(saver, {"configurable": {"thread_id": thread}}), [], "the deleted thread")
    expect(await listed(saver, {"configurable": {"thread_id": f"{thread}/other"}}), ["2", "1"], "the other thread")
    await put(saver, thread, "1", {"a": ["new"]})
    found = await saver.aget_tuple(config(thread))
    expect(dict(found.checkpoint["channel_values"]) if found else None, {"a": ["new"]}, "the thread begun again")
    expect(list(found.pending_writes or ()) if found else None, [], "its pending writes")


async def no_thread_id(saver: Saver, thread: str) -> None:
    """A config without a thread id is refused."""
    nowhere: dict[str, Any] = {"configurable": {"checkpoint_ns": ""}}
    made = checkpoint("1", {}, {})
    await expect_refusal(saver.aput(nowhere, made, {}, {}), _REFUSALS, "a checkpoint of no thread")
    await expect_refusal(saver.aput_writes(config(thread), [("a", 1)], "t"), _REFUSALS, "writes to no checkpoint")


_REFUSALS: Final = (ValueError, TypeError, KeyError)

_ACTS: Final[tuple[Callable[[Any, str], Awaitable[None]], ...]] = (
    newest_and_addressed,
    same_id_replaces,
    unchanged_channels,
    writes_kept_and_replaced,
    writes_in_order,
    writes_before_their_checkpoint,
    forks,
    listing,
    all_threads,
    deleting,
    no_thread_id,
)
CHECKS: Final = tuple(Check(act.__name__.replace("_", " "), act) for act in _ACTS)
