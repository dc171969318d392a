"""Searching by meaning: what is indexed, how it is ranked, whoever makes the vectors."""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import numpy as np
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from persistence.errors import CorruptDataError
from persistence.memory import InMemoryStore
from persistence.sqlite import SqliteStore
from persistence.stores import ranking
from persistence.stores.managed import ManagedStore
from persistence.stores.ranking import Ranking, packed
from runtime.store import GetOp, PutOp, SearchOp
from tests.persistence.stores.conftest import OpenStore

pytestmark = pytest.mark.anyio

NS = ("docs",)
WORDS = ("honey", "bee", "wasp", "rain")


def counts(text: str) -> list[float]:
    return [float(text.count(word)) for word in WORDS]


class Counting:
    """An embedding that counts words, and what it is asked."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(list(texts))
        return [counts(text) for text in texts]


@pytest.fixture
def embed() -> Counting:
    return Counting()


@pytest.fixture
async def store(open_store: OpenStore, embed: Counting) -> ManagedStore:
    return await open_store(index={"dims": len(WORDS), "embed": embed, "fields": ["text"]})


async def scores(store: ManagedStore, query: str, **options: Any) -> list[tuple[str, float | None]]:
    return [(item.key, item.score) for item in await store.asearch(options.pop("prefix", ()), query=query, **options)]


async def test_the_likest_come_first_and_what_is_not_indexed_last(store: ManagedStore) -> None:
    await store.aput(NS, "none", {"text": "rain"}, index=False)
    await store.aput(NS, "far", {"text": "wasp"})
    await store.aput(NS, "both", {"text": "honey bee"})
    await store.aput(NS, "same", {"text": "bee bee"})
    await store.aput(NS, "silent", {"other": "bee"})
    await store.aput(("elsewhere",), "same", {"text": "bee"})
    expected = [("same", 1.0), ("both", round(1 / math.sqrt(2), 6)), ("far", 0.0), ("none", None), ("silent", None)]
    assert await scores(store, "bee", prefix=NS) == expected
    assert await scores(store, "bee", prefix=NS, limit=2, offset=1) == expected[1:3]
    assert await scores(store, "bee", prefix=NS, limit=2, offset=4) == expected[4:]
    assert len(await scores(store, "bee")) == 6
    assert await scores(store, "bee", prefix=NS, filter={"text": {"$ne": "bee bee"}}) == expected[1:]


async def test_without_a_query_the_order_is_that_of_creation(store: ManagedStore, embed: Counting) -> None:
    await store.aput(NS, "a", {"text": "wasp"})
    await store.aput(NS, "b", {"text": "bee"})
    embed.calls.clear()
    assert await scores(store, "") == [("a", None), ("b", None)]
    assert [item.score for item in await store.asearch(NS)] == [None, None]
    assert embed.calls == []


async def test_equal_scores_follow_the_order_of_creation(store: ManagedStore) -> None:
    await store.abatch([PutOp(NS, f"{number}", {"text": "honey bee rain"}) for number in range(40)])
    assert [key for key, _ in await scores(store, "bee", limit=40)] == [f"{number}" for number in range(40)]


async def test_a_query_on_a_store_without_an_index_ranks_nothing(open_store: OpenStore) -> None:
    store = await open_store()
    await store.aput(NS, "a", {"text": "wasp"}, index=["text"])
    assert await scores(store, "bee") == [("a", None)]


async def test_a_put_replaces_what_was_indexed(store: ManagedStore) -> None:
    await store.aput(NS, "a", {"text": "bee"})
    await store.aput(NS, "a", {"text": "wasp"})
    assert await scores(store, "bee") == [("a", 0.0)]
    await store.aput(NS, "a", {"text": "bee"}, index=False)
    assert await scores(store, "bee") == [("a", None)]
    await store.aput(NS, "a", {"text": "bee"})
    await store.aput(NS, "a", {"text": "bee"}, index=[])
    assert await scores(store, "bee") == [("a", None)]
    await store.aput(NS, "a", {"text": "bee"})
    await store.adelete(NS, "a")
    await store.aput(NS, "a", {"text": "bee"}, index=False)
    assert await scores(store, "bee") == [("a", None)]


async def test_an_item_counts_as_its_likest_text(store: ManagedStore, embed: Counting) -> None:
    value = {"text": "rain", "parts": [{"of": "wasp"}, {"of": "bee"}, {"of": "wasp"}], "title": "honey"}
    await store.aput(NS, "a", value, index=["parts[*].of", "title"])
    assert embed.calls == [["wasp", "bee", "honey"]]
    assert await scores(store, "bee") == [("a", 1.0)]
    assert await scores(store, "rain") == [("a", 0.0)]


async def test_the_whole_value_is_indexed_by_default(open_store: OpenStore, embed: Counting) -> None:
    store = await open_store(index={"dims": len(WORDS), "embed": embed})
    await store.aput(NS, "a", {"b": "bee", "a": ["honey"]})
    assert embed.calls == [['{"a": ["honey"], "b": "bee"}']]


async def test_a_batch_embeds_each_text_once(store: ManagedStore, embed: Counting) -> None:
    await store.abatch(
        [PutOp(NS, "a", {"text": "bee"}), PutOp(NS, "b", {"text": "bee"}), PutOp(NS, "c", {"text": "wasp"})]
    )
    assert embed.calls == [["bee", "wasp"]]
    embed.calls.clear()
    results: Any = await store.abatch([SearchOp(NS, query="bee"), SearchOp((), query="bee"), GetOp(NS, "a")])
    assert embed.calls == [["bee"]]
    assert results[0] == results[1]
    embed.calls.clear()
    await store.abatch([PutOp(NS, "a", {"text": "lost"}), PutOp(NS, "a", {"text": "kept"}), PutOp(NS, "b", None)])
    assert embed.calls == [["kept"]]


async def test_values_are_taken_before_they_are_embedded(open_store: OpenStore) -> None:
    waiting, go_on = anyio.Event(), anyio.Event()

    async def embed(texts: list[str]) -> list[list[float]]:
        waiting.set()
        await go_on.wait()
        return [counts(text) for text in texts]

    store = await open_store(index={"dims": len(WORDS), "embed": embed})
    value = {"text": "bee"}
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(store.aput, NS, "a", value)
        await waiting.wait()
        value["text"] = "wasp"
        go_on.set()
    assert [(item.value, item.score) for item in await store.asearch(NS, query="bee")] == [({"text": "bee"}, 1.0)]


class Documents:
    """An object with the sync methods of LangChain's embeddings, and async ones that must not be used."""

    def embed_documents(self, texts: list[str]) -> Any:
        assert threading.current_thread() is not threading.main_thread()
        return np.array([counts(text) for text in texts])

    def embed_query(self, text: str) -> list[float]:
        return counts(text.removeprefix("query: "))

    async def aembed_documents(self, texts: list[str]) -> Any:
        pytest.fail("a sync method is there")


class AsyncDocuments:
    """An object with async methods only."""

    async def aembed_documents(self, texts: list[str]) -> list[tuple[float, ...]]:
        await anyio.sleep(0)
        return [tuple(counts(text)) for text in texts]

    async def aembed_query(self, text: str) -> list[float]:
        return counts(text.removeprefix("query: "))


class NoQueries:
    """An object that knows documents only."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [counts(text) for text in texts]


class AsyncCall:
    """An object that is called and awaited."""

    async def __call__(self, texts: list[str]) -> list[list[float]]:
        return [counts(text) for text in texts]


async def asynchronous(texts: list[str]) -> list[list[float]]:
    return [counts(text) for text in texts]


def returns_a_coroutine(texts: list[str]) -> Any:
    return asynchronous(texts)


def partly(factor: float, texts: list[str]) -> list[list[float]]:
    return [[factor * number for number in counts(text)] for text in texts]


EMBEDDERS: list[Any] = [
    Counting(),
    Documents(),
    AsyncDocuments(),
    NoQueries(),
    AsyncCall(),
    asynchronous,
    returns_a_coroutine,
    partial(partly, 5.0),
]
NAMES = ["sync", "object", "async object", "documents", "async call", "async", "returns a coroutine", "partial"]


@pytest.mark.parametrize("embed", EMBEDDERS, ids=NAMES)
async def test_whatever_makes_vectors_will_do(open_store: OpenStore, embed: Any) -> None:
    store = await open_store(index={"dims": len(WORDS), "embed": embed})
    await store.aput(NS, "a", {"text": "bee"})
    assert await scores(store, "query: bee") == [("a", 1.0)]

    def work() -> list[Any]:
        store.put(NS, "b", {"text": "wasp"})
        return [(item.key, item.score) for item in store.search(NS, query="query: wasp")]

    assert await to_thread.run_sync(work) == [("b", 1.0), ("a", 0.0)]


async def test_a_sync_embedding_does_not_hold_the_event_loop_up(open_store: OpenStore) -> None:
    reached, release = threading.Event(), threading.Event()

    def embed(texts: list[str]) -> list[list[float]]:
        reached.set()
        assert release.wait(10)
        return [counts(text) for text in texts]

    store = await open_store(index={"dims": len(WORDS), "embed": embed})
    async with anyio.create_task_group() as nursery:
        nursery.start_soon(store.aput, NS, "a", {})
        while not reached.is_set():
            await anyio.sleep(0)
        assert await store.aget(NS, "a") is None
        release.set()


@pytest.mark.parametrize(
    ("embed", "words"),
    [
        (lambda texts: [[1.0]] * len(texts), "1 dimensions, the store's index 4"),
        (lambda texts: [], "0 vectors of 1 texts"),
        (lambda texts: [[1.0, 2.0, 3.0, math.nan]], "not finite"),
        (lambda texts: [[1.0, 2.0, 3.0, math.inf]], "not finite"),
    ],
)
async def test_vectors_that_cannot_be_are_refused(open_store: OpenStore, embed: Callable[..., Any], words: str) -> None:
    store = await open_store(index={"dims": len(WORDS), "embed": embed})
    with pytest.raises(ValueError, match=words):
        await store.aput(NS, "a", {"text": "bee"})
    with pytest.raises(ValueError, match=words):
        await store.asearch(NS, query="bee")
    assert await store.asearch(NS) == []


async def test_what_an_embedding_raises_comes_through_and_nothing_is_stored(open_store: OpenStore) -> None:
    def embed(texts: list[str]) -> list[list[float]]:
        raise ConnectionError("no model today")

    store = await open_store(index={"dims": 2, "embed": embed})
    with pytest.raises(ConnectionError, match="no model today"):
        await store.abatch([PutOp(NS, "b", {}, False), PutOp(NS, "a", {})])
    assert await store.asearch(()) == []


@pytest.mark.parametrize(
    ("config", "error", "words"),
    [
        ({"embed": asynchronous}, ValueError, "dims"),
        ({"embed": asynchronous, "dims": 0}, ValueError, "dims"),
        ({"embed": asynchronous, "dims": True}, ValueError, "dims"),
        ({"dims": 2}, TypeError, "needs embed"),
        ({"dims": 2, "embed": "nobody:text-embedding-3-small"}, ImportError, "pip install langchain"),
        ({"dims": 2, "embed": asynchronous, "fields": "text"}, TypeError, "list of paths"),
        ({"dims": 2, "embed": asynchronous, "fields": ["a["]}, ValueError, "not well formed"),
        ({"dims": 2, "embed": asynchronous, "dim": 2}, ValueError, "Unknown"),
        ({"dims": 2, "embed": asynchronous, "distance_type": "l2"}, ValueError, "cosine"),
    ],
)
def test_configs_are_checked(config: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        InMemoryStore(index=config)


@pytest.mark.parametrize(("index", "error"), [("text", TypeError), (True, TypeError), (["a["], ValueError)])
async def test_what_a_put_says_about_its_index_is_checked(
    store: ManagedStore, index: Any, error: type[Exception]
) -> None:
    with pytest.raises(error, match="path"):
        await store.aput(NS, "a", {"text": "bee"}, index=index)


async def test_vectors_of_another_length_count_as_none(path: Any, embed: Counting) -> None:
    async with SqliteStore(path, index={"dims": len(WORDS), "embed": embed}) as before:
        await before.aput(NS, "a", {"text": "bee"})
    async with SqliteStore(path, index={"dims": 2, "embed": lambda texts: [[1.0, 1.0]] * len(texts)}) as after:
        await after.aput(NS, "b", {"text": "bee"})
        assert await scores(after, "bee") == [("b", 1.0), ("a", None)]
        await after.aput(NS, "a", {"text": "bee"})
        assert await scores(after, "bee") == [("a", 1.0), ("b", 1.0)]


async def test_a_thousand_items_rank_as_numpy_ranks_them(open_store: OpenStore) -> None:
    random = np.random.default_rng(7)
    vectors = {f"{number}": random.normal(size=24) for number in range(1000)}
    query = random.normal(size=24)

    def embed(texts: list[str]) -> list[Any]:
        return [query if text == "query" else vectors[text] for text in texts]

    store = await open_store(index={"dims": 24, "embed": embed, "fields": ["text"]})
    await store.abatch([PutOp(("n", f"{int(key) % 7}"), key, {"text": key}) for key in vectors])
    likeness = {
        key: float(vector @ query / np.linalg.norm(vector) / np.linalg.norm(query)) for key, vector in vectors.items()
    }
    expected = sorted(likeness, key=lambda key: -likeness[key])
    found = await scores(store, "query", limit=50, offset=20)
    assert [key for key, _ in found] == expected[20:70]
    assert [score for _, score in found] == pytest.approx([likeness[key] for key, _ in found], abs=1e-5)


numbers = st.floats(-10, 10, width=32)
vectors = st.lists(numbers, min_size=3, max_size=3)


@given(st.lists(st.lists(vectors, max_size=3), max_size=12), vectors, st.integers(1, 100))
def test_ranking_is_by_the_greatest_cosine(items: list[list[list[float]]], query: list[float], chunk: int) -> None:
    def cosine(vector: list[float]) -> float:
        length = math.hypot(*vector) * math.hypot(*query)
        return sum(a * b for a, b in zip(vector, query, strict=True)) / length if length else 0.0

    wanted = {number: max(map(cosine, item), default=None) for number, item in enumerate(items)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "CHUNK_BYTES", chunk)
        orders = []
        for with_numpy in (True, False):
            ranked = Ranking(packed(query, 3), with_numpy=with_numpy)
            for number in reversed(range(len(items))):
                ranked.add(number, b"".join(packed(vector, 3) for vector in items[number]) or None)
            orders.append(ranked.ordered())
    for order in orders:
        assert {number for number, _ in order} == set(range(len(items)))
        for number, score in order:
            expected = wanted[number]
            assert score is None if expected is None else score == pytest.approx(expected, abs=1e-5)
        keys = [(score is None, -(score or 0.0), number) for number, score in order]
        assert keys == sorted(keys)


def test_damaged_vectors_are_noticed() -> None:
    with pytest.raises(CorruptDataError, match="item 5 are 7 bytes"):
        Ranking(packed([1, 2], 2)).add(5, b"damaged")


@pytest.mark.parametrize("with_numpy", [True, False])
def test_vectors_that_were_damaged_are_ranked_somewhere(with_numpy: bool) -> None:
    """In silence: numpy would warn, and a warning reads its source."""
    huge, endless, none = (struct.pack("<2f", *numbers) for numbers in ((3e38, 3e38), (math.inf, 1), (math.nan, 1)))
    ranked = Ranking(packed([3, 4], 2), with_numpy=with_numpy)
    for number, vectors in enumerate((none, packed([3, 4], 2), huge, endless)):
        ranked.add(number, vectors)
    found = ranked.ordered()
    assert {number for number, _ in found} == {0, 1, 2, 3}
    assert [number for number, _ in found][-2:] == [1, 0]
    assert dict(found)[1] == pytest.approx(1)
