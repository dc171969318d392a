"""InMemoryCache: bounded, the least recently used leaves first, any loop and thread may use it."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.memory import InMemoryCache
from persistence.memory.cache import ENTRY_BYTES, MAX_BYTES, MAX_ENTRIES
from persistence.serde import Serializer

pytestmark = pytest.mark.anyio


def key(name: object) -> tuple[tuple[str, ...], str]:
    return ("g", "n"), str(name)


async def test_its_bounds_are_known_and_told() -> None:
    cache = InMemoryCache()
    told = cache.statistics()
    assert (told.max_entries, told.max_bytes) == (MAX_ENTRIES, MAX_BYTES) == (10_000, 64 * 1024 * 1024)
    assert (told.entries, told.bytes, told.hits, told.misses) == (0, 0, 0, 0)
    await cache.aset({key("a"): ("x" * 100, None)})
    await cache.aget([key("a"), key("b")])
    told = cache.statistics()
    stored = Serializer().dumps_typed("x" * 100)[1]
    assert (told.entries, told.bytes) == (1, ENTRY_BYTES + len("gna") + len(stored))
    assert (told.hits, told.misses, told.evictions, told.expirations) == (1, 1, 0, 0)
    assert "1 of 10000 entries" in repr(cache)


async def test_the_least_recently_used_makes_room() -> None:
    cache = InMemoryCache(max_entries=2)
    await cache.aset({key("a"): (1, None), key("b"): (2, None)})
    await cache.aget([key("a")])
    await cache.aset({key("c"): (3, None)})
    assert await cache.aget([key("a"), key("b"), key("c")]) == {key("a"): 1, key("c"): 3}
    told = cache.statistics()
    assert (told.entries, told.peak_entries, told.evictions) == (2, 2, 1)


async def test_bytes_are_bounded_too() -> None:
    cache = InMemoryCache(max_bytes=3 * (ENTRY_BYTES + 1100))
    for name in range(10):
        await cache.aset({key(name): (b"x" * 1000, None)})
    told = cache.statistics()
    assert (told.entries, told.evictions) == (3, 7)
    assert told.bytes <= told.peak_bytes <= told.max_bytes
    await cache.aset({key("huge"): (b"x" * 10_000, None)})
    assert await cache.aget([key("huge")]) == {}
    assert cache.statistics().entries == 3


async def test_a_value_that_grew_too_large_does_not_leave_its_older_form() -> None:
    cache = InMemoryCache(max_bytes=ENTRY_BYTES + 100)
    await cache.aset({key("a"): (1, None)})
    await cache.aset({key("a"): (b"x" * 1000, None)})
    assert await cache.aget([key("a")]) == {}
    assert cache.statistics().bytes == 0


async def test_the_expired_leave_when_they_are_asked_for() -> None:
    now = [0.0]
    cache = InMemoryCache(clock=lambda: now[0])
    await cache.aset({key("a"): (1, 10)})
    now[0] = 10.0
    assert await cache.aget([key("a")]) == {}
    told = cache.statistics()
    assert (told.entries, told.bytes, told.expirations, told.misses) == (0, 0, 1, 1)


@pytest.mark.parametrize("bounds", [{"max_entries": 0}, {"max_bytes": 0}])
def test_a_cache_without_room_is_none(bounds: Any) -> None:
    with pytest.raises(ValueError, match="at least 1 entry"):
        InMemoryCache(**bounds)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2000), st.sampled_from(["set", "get", "clear"])), max_size=30)
)
def test_the_account_is_always_right(steps: list[tuple[int, int, str]]) -> None:
    cache = InMemoryCache(max_entries=3, max_bytes=4000)

    async def run() -> None:
        for name, size, act in steps:
            if act == "set":
                await cache.aset({((f"{name}",), "k"): (b"x" * size, None)})
            elif act == "get":
                await cache.aget([((f"{name}",), "k")])
            else:
                await cache.aclear([(f"{name}",)])
            told = cache.statistics()
            held: Any = cache
            assert told.bytes == sum(entry.size for entry in held._entries.values())
            assert told.entries <= 3
            assert told.bytes <= 4000

    anyio.run(run)


def test_it_serves_several_loops_at_once() -> None:
    cache = InMemoryCache(max_entries=50)
    failures: list[BaseException] = []

    async def run(name: str) -> None:
        for number in range(100):
            await cache.aset({key(f"{name}{number}"): ([number], None), key("shared"): ([name], None)})
            found = await cache.aget([key(f"{name}{number}"), key("shared")])
            assert found.get(key(f"{name}{number}"), [number]) == [number]

    def work(name: str, backend: str) -> None:
        try:
            anyio.run(run, name, backend=backend)
        except BaseException as error:  # noqa: BLE001 - told to the test
            failures.append(error)

    threads = [threading.Thread(target=work, args=(name, backend)) for name in "ab" for backend in ("asyncio", "trio")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert cache.statistics().entries == 50
