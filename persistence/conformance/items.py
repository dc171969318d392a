"""Checks of stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from persistence.conformance.hostile import CUTS, KEYS, LARGE
from persistence.conformance.suite import Check, ConformanceError, cut_off, expect, expect_refusal
from persistence.contracts.store import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

if TYPE_CHECKING:
    from persistence.contracts.store import BaseStore as Store

TEXTS: Final = ("a\0b", "\U0001f600", "' OR 1=1 --", '{"$ne": 1}', "%s ?", "\\u0000", "é" * 300)


async def putting_and_getting(store: Store, room: str) -> None:
    """An item is what was put last; its birth is that of the first put."""
    expect(await store.aget((room, "a"), "k"), None, "an unknown item")
    await store.aput((room, "a"), "k", {"n": 1})
    first = await store.aget((room, "a"), "k")
    await store.aput((room, "a"), "k", {"m": [None, True, {"deep": 2.5}]})
    second = await store.aget((room, "a"), "k")
    if first is None or second is None:
        message = "an item that was put is not found"
        raise ConformanceError(message)
    expect(second.value, {"m": [None, True, {"deep": 2.5}]}, "the value put last")
    expect((second.namespace, second.key), ((room, "a"), "k"), "its address")
    expect(second.created_at, first.created_at, "its birth")
    if second.updated_at < first.updated_at:
        message = "updated_at went back"
        raise ConformanceError(message)
    await store.adelete((room, "a"), "k")
    await store.adelete((room, "a"), "k")
    expect(await store.aget((room, "a"), "k"), None, "a deleted item")


async def namespaces_by_segment(store: Store, room: str) -> None:
    """A prefix matches whole labels, never parts of one."""
    for labels in (("a",), ("ab",), ("a", "b"), ("a", "b", "c"), ("a_b",), ("a%",)):
        await store.aput((room, *labels), "k", {"at": list(labels)})
    found = {tuple(item.value["at"]) for item in await store.asearch((room, "a"), limit=100)}
    expect(found, {("a",), ("a", "b"), ("a", "b", "c")}, "a search below a namespace")
    listed = await store.alist_namespaces(prefix=(room,), max_depth=2, limit=100)
    expect(sorted(listed), sorted({(room, "a"), (room, "ab"), (room, "a_b"), (room, "a%")}), "namespaces cut by depth")
    ends = await store.alist_namespaces(prefix=(room,), suffix=("b",), limit=100)
    expect(ends, [(room, "a", "b")], "namespaces by their end")
    stars = await store.alist_namespaces(prefix=(room, "*", "b"), limit=100)
    expect(sorted(stars), [(room, "a", "b"), (room, "a", "b", "c")], "namespaces by a pattern")


async def filters(store: Store, room: str) -> None:
    """Filters compare values, with operators or without, and no key or value is taken for syntax."""
    for number in range(5):
        await store.aput((room,), f"k{number}", {"n": number, "kind": "even" if number % 2 == 0 else "odd"})

    async def keys(**wanted: Any) -> list[str]:
        return sorted(item.key for item in await store.asearch((room,), filter=wanted, limit=100))

    expect(await keys(kind="odd"), ["k1", "k3"], "a filter by equality")
    expect(await keys(n={"$gte": 3}), ["k3", "k4"], "a filter by an operator")
    expect(await keys(n={"$ne": 0}, kind="even"), ["k2", "k4"], "two filters")
    expect(await keys(n="1"), [], "a number is no text")
    for number, key in enumerate(KEYS):
        if not key.startswith("$"):
            await store.aput((room, "hostile"), f"h{number}", {key: "here"})
            found = await store.asearch((room, "hostile"), filter={key: "here"}, limit=100)
            expect([item.key for item in found], [f"h{number}"], f"a filter by the key {key!r}")
            none = await store.asearch((room, "hostile"), filter={key: "' OR ''='"}, limit=100)
            expect(list(none), [], f"a filter by the key {key!r} for what is not there")


async def pages(store: Store, room: str) -> None:
    """Limit and offset cut a listing without gap or overlap."""
    for number in range(7):
        await store.aput((room,), f"k{number}", {"n": number})
    found = []
    for offset in range(0, 9, 3):
        found += [item.key for item in await store.asearch((room,), limit=3, offset=offset)]
    expect(sorted(found), [f"k{number}" for number in range(7)], "all pages together")


async def hostile_text(store: Store, room: str) -> None:
    """Any text is a key, a label and a value, or is refused with an error before anything is stored."""
    for number, text in enumerate(TEXTS):
        await store.aput((room,), f"value {number}", {"text": text, text: number})
        item = await store.aget((room,), f"value {number}")
        expect(None if item is None else item.value, {"text": text, text: number}, f"a value with {text!r:.40}")
        try:
            await store.aput((room, f"in {text}"), text, {"n": number})
        except ValueError:
            continue
        item = await store.aget((room, f"in {text}"), text)
        expect(None if item is None else item.value, {"n": number}, f"an item under the key {text!r:.40}")


async def batches(store: Store, room: str) -> None:
    """The results of a batch come in its order; reads see what was there before, the last put of a key wins."""
    await store.aput((room,), "old", {"n": 0})
    results = await store.abatch(
        [
            PutOp((room,), "new", {"n": 1}),
            GetOp((room,), "old"),
            PutOp((room,), "new", {"n": 2}),
            SearchOp((room,), limit=10),
            ListNamespacesOp((MatchCondition("prefix", (room,)),)),
        ]
    )
    expect(len(results), 5, "the number of results")
    expect((results[0], results[2]), (None, None), "the results of puts")
    old: Any = results[1]
    expect(None if old is None else old.value, {"n": 0}, "the result of a get")
    item = await store.aget((room,), "new")
    expect(None if item is None else item.value, {"n": 2}, "the last put of a key")
    refused = [PutOp((room,), "good", {"n": 1}), PutOp((room,), "bad", {"n": object()})]
    await expect_refusal(store.abatch(refused), Exception, "a value that cannot be stored")
    expect(await store.aget((room,), "good"), None, "the other put of a batch that was refused")


async def bad_namespaces(store: Store, room: str) -> None:
    """A namespace that is no tuple of labels is refused."""
    for namespace in ((), ("",), (room, ""), "text"):
        await expect_refusal(store.aput(namespace, "k", {}), (ValueError, TypeError), f"namespace {namespace!r}")  # type: ignore[arg-type]


async def large_values(store: Store, room: str) -> None:
    """A value of several MiB comes back whole."""
    text = "x" * (LARGE // 4)
    await store.aput((room,), "large", {"text": text}, index=False)
    item = await store.aget((room,), "large")
    if item is None or item.value["text"] != text:
        message = f"a value of {len(text)} bytes did not come back whole"
        raise ConformanceError(message)
    await store.adelete((room,), "large")


async def cancelled_calls(store: Store, room: str) -> None:
    """A call that is cancelled leaves all of it or nothing, and the store works on."""
    for turn in range(CUTS):
        both = [PutOp((room,), f"a{turn}", {"n": turn}), PutOp((room,), f"b{turn}", {"n": turn})]
        await cut_off(lambda both=both: store.abatch(both), turn)  # type: ignore[misc]
        await cut_off(lambda turn=turn: store.aget((room,), f"a{turn}"), turn)  # type: ignore[misc]
        await cut_off(lambda: store.asearch((room,)), turn)
    await store.aput((room,), "after", {"n": -1})
    found = {item.key for item in await store.asearch((room,), limit=1000)}
    torn = [turn for turn in range(CUTS) if (f"a{turn}" in found) != (f"b{turn}" in found)]
    expect(torn, [], "batches of which one put was stored")
    expect("after" in found, True, "an item put after all the cancels")


CHECKS: Final = tuple(
    Check(act.__name__.replace("_", " "), act)
    for act in (
        putting_and_getting,
        namespaces_by_segment,
        filters,
        pages,
        hostile_text,
        batches,
        bad_namespaces,
        large_values,
        cancelled_calls,
    )
)
