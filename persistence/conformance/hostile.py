"""Checks with input that breaks careless savers: text, keys, sizes, values, cancels."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from persistence.conformance.samples import config, everything, listed, put, values
from persistence.conformance.suite import Check, ConformanceError, cut_off, expect

if TYPE_CHECKING:
    from persistence.contracts.saver import BaseCheckpointSaver as Saver

LARGE: Final = 20 * 2**20
"""Bytes: more than MongoDB takes in a document, and than most drivers take in a packet by default."""
CUTS: Final = 12
"""How many turns of the event loop are tried as the moment of a cancel."""

TEXTS: Final[tuple[str, ...]] = (
    "a\0b",
    "a\ud800b",
    "\U0001f600",
    "' OR 1=1 --",
    'a"b',
    "{}",
    "$where",
    "%s %(x)s :x ? $1",
    "*?[a-z]",
    "\\x00",
    "a\r\nb\tc",
    "\u202e",
    "é" * 500,
)
KEYS: Final[tuple[str, ...]] = (
    "k') OR 1=1 --", "a.b", "a'b", 'a"b', "$", "$.step", "$where", "a[0]", "*", "%", "_", "{}", "é\U0001f600", "a b",
)  # fmt: skip
VALUES: Final[dict[str, Any]] = {
    "none": None,
    "falsy": [0, 0.0, "", [], {}, False, None],
    "integers": [2**63 - 1, -(2**63), 2**64, -(2**200)],
    "floats": [1e308, -0.0, 5e-324],
    "tuple": (1, ("nested", [(), {}])),
    "sets": [{1, 2}, frozenset({"a"})],
    "bytes": [b"", b"\0\xff", bytearray(b"x")],
    "keys": {1: "int", (1, 2): "tuple", None: "none", "": "empty"},
    "times": [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), date(2026, 1, 2), timedelta(days=-1, microseconds=1)],
    "numbers": [Decimal("1.10"), UUID(int=7), complex(1, -2)],
}


async def hostile_text(saver: Saver, thread: str) -> None:
    """Any text comes back as it was: as value, as key, in metadata, and nothing of it is taken for syntax."""
    given = {f"c{number}": {text: [text]} for number, text in enumerate(TEXTS)}
    where = await put(saver, thread, "1", given, note=[text for text in TEXTS if "\ud800" not in text])
    await saver.aput_writes(where, [("x", text) for text in TEXTS], "task")
    found = await saver.aget_tuple(where)
    if found is None:
        message = "a checkpoint with hostile text is not found again"
        raise ConformanceError(message)
    expect(dict(found.checkpoint["channel_values"]), given, "values of hostile text")
    expect([value for _, _, value in found.pending_writes or ()], list(TEXTS), "writes of hostile text")
    expect(found.metadata["note"], [text for text in TEXTS if "\ud800" not in text], "metadata of hostile text")


async def hostile_ids(saver: Saver, thread: str) -> None:
    """Ids that hold any backend's syntax name threads of their own."""
    names = [f"{thread}{text}" for text in KEYS] + [f"{thread}:a", f"{thread}", f"{thread}/", f"{thread}\\"]
    for number, name in enumerate(names):
        await put(saver, name, "1", {"a": [number]}, ns=KEYS[number % len(KEYS)])
    for number, name in enumerate(names):
        expect(await values(saver, name, ns=KEYS[number % len(KEYS)]), {"a": [number]}, f"thread {name!r}")
    for name in names[1:]:
        await saver.adelete_thread(name)
    for name in names[1:]:
        expect(await listed(saver, {"configurable": {"thread_id": name}}), [], f"the deleted thread {name!r}")
    left = await listed(saver, {"configurable": {"thread_id": names[0]}})
    expect(left, ["1"], "the one thread that was not deleted")


async def hostile_filters(saver: Saver, thread: str) -> None:
    """Any metadata key can be filtered on, and none is taken for syntax."""
    for number, key in enumerate(KEYS):
        await put(saver, thread, f"{number:02}", {}, **{key: "here"})
    for number, key in enumerate(KEYS):
        where = config(thread)
        expect(await listed(saver, where, filter={key: "here"}), [f"{number:02}"], f"a filter by {key!r}")
        expect(await listed(saver, where, filter={key: "' OR ''='"}), [], f"a filter by {key!r} for what is not there")
        expect(await listed(saver, where, filter={f"{key}x": "here"}), [], f"a filter by {key + 'x'!r}")


async def exact_values(saver: Saver, thread: str) -> None:
    """What goes in comes out, of the same type."""
    where = await put(saver, thread, "1", VALUES)
    await saver.aput_writes(where, list(VALUES.items()), "task")
    found = await values(saver, thread)
    for channel, value in VALUES.items():
        expect(found[channel], value, f"the value of channel {channel!r}")
        expect(repr(found[channel]), repr(value), f"the types in channel {channel!r}")
    again = await saver.aget_tuple(where)
    expect(repr([value for _, _, value in (again.pending_writes or ())] if again else None),
           repr(list(VALUES.values())), "the values of the writes")  # fmt: skip


async def refused_values(saver: Saver, thread: str) -> None:
    """A value that cannot be stored is refused at once, and the thread is as it was."""
    where = await put(saver, thread, "1", {"a": 1})
    before = await everything(saver, thread)
    for attempt in (
        lambda: put(saver, thread, "2", {"a": 2, "b": object()}, parent="1"),
        lambda: saver.aput_writes(where, [("a", 1), ("b", object())], "task"),
    ):
        try:
            await attempt()
        except Exception:  # noqa: BLE001, S112 - any refusal will do
            continue
        message = "an object() was stored without an error"
        raise ConformanceError(message)
    expect(await everything(saver, thread), before, "the thread after a refusal")


async def large_values(saver: Saver, thread: str) -> None:
    """A value of 20 MiB comes back whole."""
    value = {"blob": b"\x5a" * LARGE, "text": "é" * 1000}
    await put(saver, thread, "1", {"large": value, "small": 1})
    found = await values(saver, thread)
    if found is None or found["large"] != value:
        message = f"a value of {LARGE} bytes did not come back whole"
        raise ConformanceError(message)
    await saver.adelete_thread(thread)


async def cancelled_calls(saver: Saver, thread: str) -> None:
    """A call that is cancelled leaves all of it or nothing, and the saver works on."""
    await put(saver, thread, "000", {"a": ["base"]})
    for turn in range(CUTS):
        name = f"{turn + 1:03}"
        ended = await cut_off(lambda name=name: put(saver, thread, name, {"a": [name]}, parent="000"), turn)  # type: ignore[misc]
        found = await values(saver, thread, name)
        if found not in (None, {"a": [name]}) or (ended and found is None):
            message = f"a checkpoint cancelled after {turn} turns of the event loop reads {found!r}"
            raise ConformanceError(message)
        await cut_off(lambda: saver.aget_tuple(config(thread)), turn)
        await cut_off(lambda: listed(saver, config(thread)), turn)
        where = config(thread, "000")
        await cut_off(lambda where=where, turn=turn: saver.aput_writes(where, [("a", 1), ("b", 2)], f"t{turn}"), turn)  # type: ignore[misc]
    found_writes = await saver.aget_tuple(config(thread, "000"))
    for turn in range(CUTS):
        pending = (found_writes.pending_writes if found_writes else None) or ()
        written = [channel for task, channel, _ in pending if task == f"t{turn}"]
        if written not in ([], ["a", "b"]):
            message = f"writes cancelled after {turn} turns of the event loop are torn: {written}"
            raise ConformanceError(message)
    await put(saver, thread, "999", {"a": ["after"]}, parent="000")
    expect(await values(saver, thread), {"a": ["after"]}, "the thread after all the cancels")


CHECKS: Final = tuple(
    Check(act.__name__.replace("_", " "), act)
    for act in (
        hostile_text,
        hostile_ids,
        hostile_filters,
        exact_values,
        refused_values,
        large_values,
        cancelled_calls,
    )
)
