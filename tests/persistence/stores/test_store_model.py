"""Any sequence of batches leaves every store as it leaves a plain dict, seen through every way to look."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.memory import InMemoryStore
from persistence.postgres import PostgresStore
from persistence.serde.encrypted import EncryptedSerializer
from persistence.sqlite import SqliteStore
from runtime.store import GetOp, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from tests.persistence.postgres.server import Server
from tests.persistence.stores.clocks import Clock

pytestmark = pytest.mark.anyio

SPACES = (("a",), ("a", "b"), ("ab",), ("a", "b", "c"), ("*", "%"))
QUERIES = ("", "one", "two")


def embed(texts: list[str]) -> list[list[float]]:
    return [[1.0, 0.0] if text == "one" else [0.0, 1.0] for text in texts]


@dataclass
class Entry:
    """What an address should hold."""

    order: int
    value: dict[str, Any]
    created: float
    updated: float
    ttl: float | None
    expires: float | None
    text: str | None


class Model:
    """The contract, as simply as it can be said."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.entries: dict[tuple[tuple[str, ...], str], Entry] = {}
        self.count = 0

    def batch(self, ops: list[Op]) -> list[Any]:
        now = self.clock()
        self.entries = {at: one for at, one in self.entries.items() if one.expires is None or one.expires > now}
        results = [None if isinstance(op, PutOp) else self.read(op) for op in ops]
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        for at, op in puts.items():
            if op.value is None:
                self.entries.pop(at, None)
            else:
                self.put(at, op)
        return results

    def put(self, at: tuple[tuple[str, ...], str], op: PutOp) -> None:
        now, old = self.clock(), self.entries.get(at)
        self.count += 1
        assert op.value is not None
        self.entries[at] = Entry(
            old.order if old else self.count,
            dict(op.value),
            old.created if old else now,
            now,
            op.ttl,
            None if op.ttl is None else now + op.ttl * 60,
            None if op.index is False else op.value.get("text"),
        )

    def read(self, op: Op) -> Any:
        if isinstance(op, GetOp):
            found = [at for at in self.entries if at == (op.namespace, op.key)]
            self.touch(found, op.refresh_ttl)
            return self.shown(found[0]) if found else None
        if isinstance(op, ListNamespacesOp):
            length = len(op.match_conditions[0].path) if op.match_conditions else 0
            wanted = op.match_conditions[0].path if op.match_conditions else ()
            return sorted({at[0][: op.max_depth] for at in self.entries if at[0][:length] == wanted})
        assert isinstance(op, SearchOp)
        size = len(op.namespace_prefix)
        found = [at for at in self.entries if at[0][:size] == op.namespace_prefix and self.passes(at, op)]
        found.sort(key=lambda at: (*self.rank(at, op.query), self.entries[at].order))
        page = found[op.offset : op.offset + op.limit]
        self.touch(page, op.refresh_ttl)
        return [(self.shown(at), self.score(at, op.query)) for at in page]

    def passes(self, at: Any, op: SearchOp) -> bool:
        return not op.filter or self.entries[at].value["n"] >= op.filter["n"]["$gte"]

    def score(self, at: Any, query: str | None) -> float | None:
        text = self.entries[at].text
        return None if not query or text is None else float((text == "one") == (query == "one"))

    def rank(self, at: Any, query: str | None) -> tuple[bool, float]:
        score = self.score(at, query)
        return score is None, -(score or 0.0)

    def touch(self, found: list[Any], refresh: bool | None) -> None:
        for at in found:
            entry = self.entries[at]
            if refresh is not False and entry.ttl is not None:
                entry.expires = self.clock() + entry.ttl * 60

    def shown(self, at: Any) -> Any:
        entry = self.entries[at]
        return (*at, copy.deepcopy(entry.value), entry.created, entry.updated)


def shown(result: Any) -> Any:
    """Return a real store's result as the model shows it."""
    if isinstance(result, list):
        return [each if isinstance(each, tuple) else (shown(each), each.score) for each in result]
    if result is None:
        return None
    at = (result.created_at.timestamp(), result.updated_at.timestamp())
    return (result.namespace, result.key, result.value, *at)


spaces = st.sampled_from(SPACES)
keys = st.sampled_from("kl")
prefixes = spaces | st.just(())
refreshes = st.sampled_from([None, True, False])
values = st.fixed_dictionaries(
    {"n": st.integers(0, 2)}, optional={"text": st.sampled_from(["one", "two"]), "more": st.lists(st.integers())}
)
puts = st.builds(PutOp, spaces, keys, st.none() | values, st.sampled_from([None, False]), st.sampled_from([None, 1, 3]))
gets = st.builds(GetOp, spaces, keys, refreshes)
searches = st.builds(
    SearchOp,
    prefixes,
    st.none() | st.integers(0, 2).map(lambda n: {"n": {"$gte": n}}),
    st.integers(0, 4),
    st.integers(0, 3),
    st.sampled_from(QUERIES),
    refreshes,
)
listings = st.builds(
    ListNamespacesOp,
    st.none() | st.sampled_from(SPACES[:4]).map(lambda path: (MatchCondition("prefix", path),)),
    st.none() | st.integers(1, 3),
    st.just(100),
    st.just(0),
)
batches = st.lists(puts | puts | gets | searches | listings, min_size=1, max_size=6)
histories = st.lists(st.tuples(batches, st.sampled_from([0, 0, 0.5, 1, 2])), min_size=1, max_size=8)


@settings(max_examples=60)
@given(histories)
async def test_stores_agree_with_a_dict(history: list[tuple[list[Op], float]]) -> None:
    async with SqliteStore(":memory:", **(options := chosen())) as sqlite:
        await agree([InMemoryStore(**options), sqlite], options["clock"], history)


@pytest.mark.slow
@settings(max_examples=25)
@given(history=histories)
async def test_the_store_on_a_server_agrees_with_a_dict(schema: str, history: list[tuple[list[Op], float]]) -> None:
    sealed: Any = {**chosen(), "serde": EncryptedSerializer(b"0123456789abcdef")}
    for options in (chosen(), sealed):
        async with PostgresStore(schema, **options) as store:
            await agree([store], options["clock"], history)
            options["clock"].advance(minutes=1e6)
            await store.asweep_ttl()
            await store.abatch([PutOp(item.namespace, item.key, None) for item in await store.asearch((), limit=1000)])


@pytest.fixture(scope="module")
def schema(postgres: Server) -> Iterator[str]:
    """A schema that every example empties for itself."""
    with postgres.schema() as url:
        yield url


def chosen() -> dict[str, Any]:
    return {"clock": Clock(), "index": {"dims": 2, "embed": embed, "fields": ["text"]}}


async def agree(stores: list[Any], clock: Clock, history: list[tuple[list[Op], float]]) -> None:
    """Have the stores and a dict do the same, and compare what they answer."""
    model = Model(clock)
    for batch, minutes in history:
        expected = model.batch(batch)
        for store in stores:
            assert [shown(result) for result in await store.abatch(batch)] == expected
        clock.advance(minutes=minutes)
    assert len({await store.asweep_ttl() for store in stores}) == 1
    everything: list[Op] = [SearchOp((), limit=100), SearchOp((), limit=100, query="two"), ListNamespacesOp()]
    expected = model.batch(everything)
    for store in stores:
        assert [shown(result) for result in await store.abatch(everything)] == expected
