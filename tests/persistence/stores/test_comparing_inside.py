"""Vectors that SQLite compares itself, with sqlite-vec: the same answers as without it."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.errors import CorruptDataError
from persistence.serde import EncryptedSerializer
from persistence.sqlite import SqliteStore, comparing
from tests.persistence.stores.files import change

NS = ("a", "b")

LOADS = hasattr(sqlite3.Connection, "enable_load_extension")

needs_extension = pytest.mark.skipif(not LOADS, reason="this Python is built without extensions for SQLite")


def embed(texts: list[str]) -> list[list[float]]:
    """Return the numbers that a text consists of."""
    return [[float(number) for number in text.split()] for text in texts]


def index() -> Any:
    return {"dims": 3, "embed": embed, "fields": ["texts[*]"]}


ALL = 99
NOISE = 2e-6
"""Two scores that are almost one may be rounded to neighbours, here and there."""

numbers = st.integers(-3, 3)
text = st.lists(numbers, min_size=3, max_size=3).map(lambda found: " ".join(map(str, found)))
items = st.lists(st.tuples(st.sampled_from([NS, (*NS, "c"), ("a",), ("ab",)]), st.lists(text, max_size=3)), max_size=12)


async def answers(path: Any, stored: list[Any], query: str, page: dict[str, Any]) -> tuple[bool, list[list[Any]]]:
    """Store items, search for them everywhere; return how they were compared and what was found in each place."""
    found = []
    async with SqliteStore(path, index=index()) as store:
        for key, (namespace, texts) in enumerate(stored):
            await store.aput(namespace, str(key), {"texts": texts})
        for prefix in ((), ("a",), NS):
            found.append([(item.key, item.score) for item in await store.asearch(prefix, query=query, **page)])
    return store.compares_inside, found


@needs_extension
@given(items, text, st.integers(0, 3), st.integers(1, 12))
def test_the_answers_are_the_same(stored: list[Any], query: str, offset: int, limit: int) -> None:
    import anyio  # noqa: PLC0415 - a law is no async test

    inside, found = anyio.run(answers, ":memory:", stored, query, {"limit": ALL})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "load", lambda _connection: False)
        outside, expected = anyio.run(answers, ":memory:", stored, query, {"limit": ALL})
    assert (inside, outside) == (True, False)
    for here, there in zip(found, expected, strict=True):
        assert [score for _, score in here] == pytest.approx([score for _, score in there], abs=NOISE)
        scores = dict(there)
        for (key, _), (other, score) in zip(here, there, strict=True):
            assert key == other or scores[key] == pytest.approx(score, abs=NOISE)
    _, pages = anyio.run(answers, ":memory:", stored, query, {"offset": offset, "limit": limit})
    assert pages == [each[offset : offset + limit] for each in found]


@needs_extension
async def test_both_connections_of_a_file_compare_inside(path: Path) -> None:
    inside, found = await answers(path, [(NS, ["1 0 0", "0 1 0"]), (NS, []), (NS, ["0 0 0"])], "0 2 0", {"limit": 9})
    assert inside
    assert found == [[("0", 1.0), ("2", 0.0), ("1", None)]] * 3


@needs_extension
async def test_filters_are_asked_outside(path: Path) -> None:
    async with SqliteStore(path, index=index()) as store:
        for number in range(4):
            await store.aput(NS, str(number), {"texts": [f"{number} 1 0"], "even": number % 2 == 0})
        found = await store.asearch(NS, query="1 0 0", filter={"even": True})
    assert [item.key for item in found] == ["2", "0"]


@pytest.mark.parametrize("encrypted", [False, True])
async def test_sealed_vectors_are_compared_outside(path: Path, encrypted: bool) -> None:
    serde = EncryptedSerializer(b"k" * 32) if encrypted else None
    async with SqliteStore(path, index=index(), serde=serde) as store:
        await store.aput(NS, "k", {"texts": ["1 0 0"]})
        assert [(item.key, item.score) for item in await store.asearch(NS, query="1 0 0")] == [("k", 1.0)]


@pytest.mark.parametrize("blob", ["64616d61676564", "0000803f" * 4, "0000803f" * 7])
async def test_damaged_vectors_are_an_error(path: Path, blob: str) -> None:
    async with SqliteStore(path, index=index()) as store:
        await store.aput(NS, "k", {"texts": ["1 0 0"]})
        change(path, f"UPDATE store_vectors SET vectors = x'{blob}'")
        with pytest.raises(CorruptDataError, match="damaged"):
            await store.asearch(NS, query="1 0 0")


async def test_a_store_without_an_index_loads_nothing(path: Path) -> None:
    async with SqliteStore(path) as store:
        assert not store.compares_inside


async def test_without_the_package_vectors_are_compared_outside(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    assert await answers(path, [(NS, ["1 0 0"])], "1 0 0", {"limit": 1}) == (False, [[("0", 1.0)]] * 3)


@needs_extension
async def test_an_extension_that_does_not_load_is_told_of(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    broken: Any = ModuleType("sqlite_vec")
    missing: Callable[[], str] = lambda: str(path.with_name("no such extension"))  # noqa: E731 - typed
    broken.loadable_path = missing
    monkeypatch.setitem(sys.modules, "sqlite_vec", broken)
    assert await answers(path, [(NS, ["1 0 0"])], "1 0 0", {"limit": 1}) == (False, [[("0", 1.0)]] * 3)
    assert "sqlite-vec is installed, but cannot be used" in caplog.text
