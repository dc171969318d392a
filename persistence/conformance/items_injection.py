"""Checks of stores with names and filters that are some backend's syntax; see ``injection``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from persistence.conformance.injection import ALIKE, NAMES, NO_TEXTS, SAMPLE, finds_nothing, refused
from persistence.conformance.suite import Check, ConformanceError, expect
from persistence.contracts.store import ListNamespacesOp, MatchCondition, PutOp

if TYPE_CHECKING:
    from persistence.contracts.store import BaseStore as Store

LABELS: Final = tuple(name for name in dict.fromkeys(NAMES + ALIKE) if "." not in name)
"""Names that are legal labels: a period may be a store's separator, and is refused or kept apart."""
UNKNOWN: Final[tuple[Any, ...]] = (
    {"$where": "1"}, {"$regex": ".*"}, {"$in": ["here"]}, {"$exists": True}, {"$not": {"$eq": 1}}, {"$or": [{}]},
    {"$gt' OR 1=1 --": 1}, {"$GT": 0}, {"$": 1}, {"$gt": "' OR 1=1 --"}, {"$lt": ["x"]}, {"$gte": {"$ne": 1}},
)  # fmt: skip
"""Operators that there are not, and operands that are none."""

_OTHERS: Final[tuple[Any, ...]] = (
    "%", "_ere", "here%", "HERE", "here ", "' OR ''='", "*", True, 0, 1.5, [], [{}], ["here"], {"deep": 2},
)  # fmt: skip
"""Values that no item has under these keys."""


async def names_are_only_themselves(store: Store, room: str) -> None:
    """Any key and any label is only itself, however many others a pattern would match."""
    for number, name in enumerate(LABELS):
        value = {"n": number, name: "here"}
        await store.abatch([PutOp((room, name), name, value), PutOp((room, "all"), name, value)])
    for number, name in enumerate(LABELS):
        item = await store.aget((room, name), name)
        expect(None if item is None else item.value, {"n": number, name: "here"}, f"the item {name!r:.80}")
        found = [item.value["n"] for item in await store.asearch((room, name), limit=1000)]
        expect(found, [number], f"a search below {name!r:.80}")
    for name in LABELS[::SAMPLE]:
        if name != "*":
            listed = await store.alist_namespaces(prefix=(room, name), limit=1000)
            expect(list(listed), [(room, name)], f"namespaces that begin with {name!r:.80}")
            listed = await store.alist_namespaces(prefix=(room,), suffix=(name,), limit=1000)
            expect(list(listed), [(room, name)], f"namespaces that end with {name!r:.80}")
        await store.adelete((room, "all"), name)
    left = sorted(item.key for item in await store.asearch((room, "all"), limit=1000))
    expect(left, sorted(set(LABELS) - set(LABELS[::SAMPLE])), "what is left once some keys are deleted")


async def separators_do_not_join(store: Store, room: str) -> None:
    """Labels that hold what a store may put between labels or before keys are refused, or are labels of their own."""
    await store.aput((room, "a", "b"), "k", {"n": 0})
    for separator in (".", ":", "/", "|", "\x1f", "\x01", "\x1e", "\\", ",", "','", '","', " ", "\t"):
        joined = f"a{separator}b", f"b{separator}k", f"{room}{separator}a"
        for namespace, key in (((room, joined[0]), "k"), ((room, "a"), joined[1]), ((joined[2], "b"), "k")):
            try:
                await store.aput(namespace, key, {"n": 1})
            except ValueError:
                continue
            item = await store.aget(namespace, key)
            expect(None if item is None else item.value, {"n": 1}, f"the item of {namespace!r}")
            await store.adelete(namespace, key)
            item = await store.aget((room, "a", "b"), "k")
            expect(None if item is None else item.value, {"n": 0}, f"the item beside {namespace!r} and {key!r}")
    found = [item.namespace for item in await store.asearch((room, "a"), limit=1000)]
    expect(found, [(room, "a", "b")], "what is left")


async def no_name_but_text(store: Store, room: str) -> None:
    """What is no text names no label and no item that text names: refused, or nothing found or changed."""
    await store.aput((room, "t"), "t", {"n": 0})
    for odd in NO_TEXTS:
        for act in (
            lambda odd=odd: store.aget((room, "t"), odd),
            lambda odd=odd: store.aget((room, odd), "t"),
            lambda odd=odd: store.aget((odd, "t"), "t"),
            lambda odd=odd: store.asearch((room, odd), limit=10),
            lambda odd=odd: store.asearch((odd,), limit=10),
            lambda odd=odd: store.alist_namespaces(prefix=(room, odd)),
            lambda odd=odd: store.alist_namespaces(prefix=(room,), suffix=(odd,)),
            lambda odd=odd: store.abatch([ListNamespacesOp((MatchCondition(odd, (room,)),))]),
        ):
            await finds_nothing(act, f"{odd!r:.80}")
        for act in (
            lambda odd=odd: store.adelete((room, "t"), odd),
            lambda odd=odd: store.adelete((room, odd), "t"),
            lambda odd=odd: store.aput((room, odd), "t", {"n": 1}),
        ):
            await refused(act, f"{odd!r:.80}")
    expect([item.value for item in await store.asearch((room, "t"), limit=10)], [{"n": 0}], "the item after all that")
    bounds: tuple[Any, ...] = ("1", "1; DROP TABLE store", [1], -1, None)
    for bound in bounds:
        await refused(partial(store.asearch, (room,), limit=bound), f"limit={bound!r}")
        await refused(partial(store.asearch, (room,), offset=bound), f"offset={bound!r}")


async def operators_are_few(store: Store, room: str) -> None:
    """A filter knows its own operators; those of any query language are refused, or match nothing."""
    await store.aput((room,), "1", {"word": "here", "n": 1, "nested": {"deep": 2}})
    await store.aput((room,), "2", {"word": "there", "n": 2, "nested": {"deep": 3}})
    for condition in UNKNOWN:
        for key in ("word", "n", "nested"):
            await finds_nothing(partial(store.asearch, (room,), filter={key: condition}), f"{key}={condition!r}")
    for key in ("$where", "$or", "$expr", "word' OR '1'='1", "nested.deep", "$.n", "n') OR 1=1 --", "*", "%"):
        for other in _OTHERS:
            await finds_nothing(partial(store.asearch, (room,), filter={key: other}), f"{key}={other!r}")
    for other in _OTHERS:
        found = await store.asearch((room,), filter={"word": other})
        expect(list(found), [], f"a filter by word={other!r}")
    for text in ("' OR 1=1 --", "x\0", "\ud800"):
        found = await store.asearch((room,), filter={"word": {"$ne": text}}, limit=10)
        expect(sorted(item.key for item in found), ["1", "2"], f"a filter by what word is not: {text!r}")
    query = await store.asearch((room,), query="' OR 1=1 -- {} $where *", limit=10)
    if len(query) not in (0, 2):
        message = f"a hostile query found {query!r:.400}"
        raise ConformanceError(message)


CHECKS: Final = tuple(
    Check(act.__name__.replace("_", " "), act)
    for act in (names_are_only_themselves, separators_do_not_join, no_name_but_text, operators_are_few)
)
