"""Checks with names and filters that are some backend's syntax: each is only ever itself, or refused.

SQL, LIKE and JSON paths, MongoDB's operators, Redis's globs and searches, Lua, shells and URLs; names that another
collation, case or normal form takes for each other; and what is no text at all where an id belongs.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from persistence.conformance.samples import config, content, everything, listed, put, values
from persistence.conformance.suite import Check, ConformanceError, expect
from persistence.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from persistence.contracts.saver import BaseCheckpointSaver as Saver

NAMES: Final[tuple[str, ...]] = (
    "' OR 1=1 --", '" OR ""="', "'; DROP TABLE checkpoints; --", "1) UNION SELECT * FROM checkpoints --", "\\'", "`x`",
    "%", "_", "a%", "a_", "\\%", "?", ":x", "$1", "%s", "%(x)s", "{}", "{0.__class__}", "$.a", "$[0]", "a.b", "a->>'b'",
    "$where", "$gt", '{"$gt": ""}', "$$ROOT", "_id", "/.*/", "*", "a*", "[a-z]", "@x:{*}", "x}) | (@y:{*", "a|b", ";",
    "\r\nFLUSHALL\r\n", "'..os.exit()..'", "]] os.exit() --[[", "../../etc/passwd", "%2e%2e%2f", "a:b", "a/b", "a\\b",
    "$(id)", "<script>", "\u202e", "\x1f", "\x7f",
)  # fmt: skip
"""Syntax of one kind or another; every character is legal in a name."""
ALIKE: Final[tuple[str, ...]] = (
    "a", "A", "a ", " a", "a\t", "\u00e1", "a\u0301", "\uff41", "\u0430", "aa", "\u00df", "ss", "\u0131", "i", "\u0130",
    "0", "00", "-0", "1", "1.0", "01", "null", "None", "true", "a\u200b", "\ufeffa", "\U0001f600", "x" * 300, "x" * 301,
)  # fmt: skip
"""Names that a careless comparison takes for each other."""
SAMPLE: Final = 4
"""Of so many names one is used for what takes long."""
NO_TEXTS: Final[tuple[Any, ...]] = (
    {"$gt": ""}, {"$ne": None}, {"$regex": ".*"}, ["t"], ("t",), {"t"}, b"t", bytearray(b"t"), re.compile(".*"), 1.5,
    object(),
)  # fmt: skip
"""What is no text; drivers take some of it for conditions, for many values, or for text."""
OPERATORS: Final[tuple[Any, ...]] = (
    {"$gt": ""}, {"$gte": -1}, {"$ne": "nothing"}, {"$exists": True}, {"$regex": ".*"}, {"$in": ["here"]}, {"$not": {}},
    ["here"], "%", "here%", "_ere", "*", "h*", "' OR ''='", "here' OR 'a'='a", "HERE", "here ", "/here/", True, 0, None,
)  # fmt: skip
"""Values that are conditions elsewhere; as the value of a filter, each is a value that no row has."""


async def names_are_only_themselves(saver: Saver, thread: str) -> None:
    """Any name is a channel, a task, a run, a checkpoint, a namespace and a thread of its own."""
    names = list(dict.fromkeys(NAMES + ALIKE))
    for name in names:
        where = await put(saver, f"{thread}{name}", name, {name: [name]}, ns=name, run_id=name, mark=thread)
        await saver.aput_writes(where, [(name, [name])], name, name)
    for name in names:
        place = config(f"{thread}{name}", None, name)
        found = await saver.aget_tuple(place)
        if found is None:
            message = f"a thread named with {name!r:.80} is not found again"
            raise ConformanceError(message)
        _, stored, _, _, writes = content(found)
        expect((found.checkpoint["id"], stored["channel_values"]), (name, {name: [name]}), f"a thread of {name!r:.80}")
        expect(list(map(tuple, writes)), [(name, name, [name])], f"the writes of a task named {name!r:.80}")
    for name in names[::SAMPLE]:
        others = await listed(saver, None, filter={"run_id": name, "mark": thread})
        expect(others, [name], f"checkpoints of the run {name!r:.80}, in all threads")
    for name in names[::SAMPLE]:
        await saver.adelete_thread(f"{thread}{name}")
    left = await listed(saver, None, filter={"mark": thread})
    expect(sorted(left), sorted(set(names) - set(names[::SAMPLE])), "what is left once some threads are deleted")


async def checkpoints_are_told_apart(saver: Saver, thread: str) -> None:
    """Checkpoints of one thread whose ids look alike, or are syntax, are different ones, in one order."""
    names = list(dict.fromkeys(NAMES + ALIKE))
    for number, name in enumerate(names):
        await put(saver, thread, name, {"a": [number]})
    order = sorted(names, reverse=True)
    expect(await listed(saver, config(thread)), order, "the order of ids")
    for number, name in enumerate(names):
        expect(await values(saver, thread, name), {"a": [number]}, f"the checkpoint {name!r:.80}")
    for name in names[::SAMPLE]:
        expect(await listed(saver, config(thread, name)), [name], f"a listing of the checkpoint {name!r:.80}")
    for name in (order[0], order[len(order) // 2], order[-1]):
        wanted = order[order.index(name) + 1 :]
        expect(await listed(saver, config(thread), before=config(thread, name)), wanted, f"before {name!r:.80}")


async def no_id_but_text(saver: Saver, thread: str) -> None:
    """What is no text names no thread, namespace, checkpoint, task or channel: refused, or nothing found or changed."""
    where = await put(saver, thread, "t", {"a": [1]}, ns="t", run_id="t")
    before = await everything(saver, thread)
    for odd in NO_TEXTS:
        for part in ("thread_id", "checkpoint_ns", "checkpoint_id"):
            odd_place = {"configurable": {"thread_id": thread, "checkpoint_ns": "t", part: odd}}
            for act in (
                lambda at=odd_place: saver.aget_tuple(at),
                lambda at=odd_place: listed(saver, at),
                lambda odd=odd: listed(saver, config(thread, None, "t"), before=config(thread, odd)),
            ):
                await finds_nothing(act, f"{part}={odd!r:.80}")
        for act in (
            lambda odd=odd: saver.adelete_thread(odd),
            lambda odd=odd: saver.aput_writes(where, [("a", 1)], odd),
            lambda odd=odd: saver.aput_writes(where, [(odd, 1)], "task"),
        ):
            await refused(act, f"{odd!r:.80}")
    expect(await everything(saver, thread), before, "the thread after ids that are no text")


async def operators_are_values(saver: Saver, thread: str) -> None:
    """A filter compares: a condition of some query language, as key or value, finds only what holds it literally."""
    await put(saver, thread, "1", {}, word="here", nested={"$gt": ""}, number=1)
    await put(saver, thread, "2", {}, word="there", nested={"$gt": "z", "x": 1}, number=2)
    where = config(thread)
    for value in OPERATORS:
        expect(await listed(saver, where, filter={"word": value}), [], f"a filter by word={value!r}")
    for key in (
        "$where",
        "$or",
        "$and",
        "$expr",
        "$nor",
        "$comment",
        "word' OR 1=1 --",
        "word.$ne",
        "nested.$gt",
        "1=1",
    ):
        for value in ("true", "here", [], [{}], [{"word": "here"}], {}, 1):
            expect(await listed(saver, where, filter={key: value}), [], f"a filter by {key}={value!r}")
    expect(
        await listed(saver, where, filter={"nested": {"$gt": ""}}), ["1"], "a filter for what looks like a condition"
    )
    expect(await listed(saver, where, filter={"nested": {"$gt": "z"}}), [], "a filter by a part of a value")
    limits: tuple[Any, ...] = ("1", "1; DROP TABLE checkpoints", [1], -1)
    for limit in limits:
        await finds_nothing(partial(listed, saver, where, limit=limit), f"limit={limit!r}")


async def names_in_upkeep(saver: Saver, thread: str) -> None:
    """Copying, pruning and deleting by run take names as they are, however many others a pattern would match."""
    kept = f"{thread}/kept"
    await put(saver, kept, "1", {"a": [0]}, run_id=f"{thread} run")
    for number, name in enumerate(NAMES):
        await put(saver, f"{thread}{name}", "1", {"a": [number]})
        await saver.acopy_thread(f"{thread}{name}", f"{thread}/copy {name}")
        expect(await values(saver, f"{thread}/copy {name}"), {"a": [number]}, f"a copy named {name!r}")
        await saver.adelete_for_runs([name, f"{thread} {name}", f"{thread}{name}"])
    await saver.aprune([f"{thread}{name}" for name in NAMES], strategy="delete")
    for number, name in enumerate(NAMES):
        expect(await listed(saver, config(f"{thread}{name}")), [], f"the deleted thread {name!r}")
        expect(await values(saver, f"{thread}/copy {name}"), {"a": [number]}, f"the copy {name!r} of a deleted thread")
    for odd in NO_TEXTS:
        for act in (
            lambda odd=odd: saver.acopy_thread(odd, f"{thread}/odd"),
            lambda odd=odd: saver.acopy_thread(kept, odd),
            lambda odd=odd: saver.aprune([odd], strategy="delete"),
            lambda odd=odd: saver.adelete_for_runs([odd]),
        ):
            await refused(act, f"{odd!r:.80}")
    expect(await values(saver, kept), {"a": [0]}, "a thread that no name meant")


async def finds_nothing(act: Callable[[], Awaitable[object]], what: str) -> None:
    """Raise ConformanceError unless it is refused before the database is asked, or finds nothing."""
    try:
        found = await act()
    except Exception as error:  # noqa: BLE001 - any refusal will do, but a database's
        _not_from_the_database(error, what)
        return
    if found:
        message = f"{what} found {found!r:.400}"
        raise ConformanceError(message)


async def refused(act: Callable[[], Awaitable[object]], what: str) -> None:
    """Take a refusal, or that nothing happens, which shows elsewhere; the database must not have been asked."""
    try:
        await act()
    except Exception as error:  # noqa: BLE001 - see above
        _not_from_the_database(error, what)


def _not_from_the_database(error: Exception, what: str) -> None:
    if isinstance(error, BackendError):
        message = f"{what} reached the database, which said: {error!r:.400}"
        raise ConformanceError(message) from error


CHECKS: Final = (
    *(
        Check(act.__name__.replace("_", " "), act)
        for act in (names_are_only_themselves, checkpoints_are_told_apart, no_id_but_text, operators_are_values)
    ),
    Check("names in upkeep", names_in_upkeep, "acopy_thread"),
)
