"""What every cache promises: the same tests on the one in memory and on the one in a file."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.contracts.cache import BaseCache, FullKey
from persistence.errors import SerializationError, UnsupportedOperationError
from persistence.memory import InMemoryCache
from persistence.mongo import MongoDBCache
from persistence.redis import RedisCache
from persistence.serde import EncryptedSerializer, Serializer
from persistence.sqlite import SqliteCache

pytestmark = pytest.mark.anyio

KEY = (("graph", "node", "code"), "k")


@dataclass
class Point:
    x: int


class Clock:
    """Time that moves when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def serde() -> Serializer:
    return Serializer()


@pytest.fixture(params=["memory", "sqlite", "redis", "mongo"])
async def cache(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, serde: Serializer
) -> AsyncIterator[InMemoryCache | SqliteCache | RedisCache | MongoDBCache]:
    made: InMemoryCache | SqliteCache | RedisCache | MongoDBCache
    if request.param == "memory":
        made = InMemoryCache(serde=serde, clock=clock)
    elif request.param == "redis":
        url, prefix = request.getfixturevalue("redis_server").url, request.getfixturevalue("redis_keys")
        made = RedisCache(url, prefix=prefix, serde=serde, clock=clock)
    elif request.param == "mongo":
        made = MongoDBCache(**request.getfixturevalue("mongo"), serde=serde, clock=clock)
    else:
        made = SqliteCache(tmp_path / "cache.sqlite", serde=serde, clock=clock)
    async with made as opened:
        yield opened


async def test_what_is_kept_comes_back_as_it_was(cache: BaseCache) -> None:
    values: list[Any] = [None, 0, "", b"\x00", [], [("a", {1, 2}), ("b", None)], {"k": (1, 2.5)}]
    pairs: dict[FullKey, Any] = {(("g", "n"), str(place)): (value, None) for place, value in enumerate(values)}
    await cache.aset(pairs)
    found = await cache.aget([*pairs, (("g", "n"), "none")])
    assert found == {key: value for key, (value, _) in pairs.items()}
    assert await cache.aget([]) == {}


async def test_readers_and_writers_share_no_objects(cache: BaseCache) -> None:
    value = {"list": [1]}
    await cache.aset({KEY: (value, None)})
    value["list"].append(2)
    first = (await cache.aget([KEY]))[KEY]
    first["list"].append(3)
    assert (await cache.aget([KEY])) == {KEY: {"list": [1]}}


async def test_a_newer_value_replaces_the_older(cache: BaseCache, clock: Clock) -> None:
    await cache.aset({KEY: (1, 5)})
    await cache.aset({KEY: (2, None)})
    clock.now += 100
    assert await cache.aget([KEY]) == {KEY: 2}


async def test_values_expire_by_the_given_clock(cache: BaseCache, clock: Clock) -> None:
    long, always = (KEY[0], "long"), (KEY[0], "always")
    await cache.aset({KEY: (1, 10), long: (2, 20.5), always: (3, None)})
    clock.now += 9.9
    assert (await cache.aget([KEY, long, always])) == {KEY: 1, long: 2, always: 3}
    clock.now += 0.1
    assert (await cache.aget([KEY, long, always])) == {long: 2, always: 3}
    clock.now += 10.5
    assert (await cache.aget([KEY, long, always])) == {always: 3}


async def test_no_seconds_are_no_time(cache: BaseCache) -> None:
    await cache.aset({KEY: (1, 0)})
    assert await cache.aget([KEY]) == {}


async def test_a_namespace_is_cleared_with_those_that_begin_with_it(cache: BaseCache) -> None:
    names: list[tuple[str, ...]] = [("g", "a", "1"), ("g", "a", "2"), ("g", "ab"), ("g",), ("h", "a"), ("", "")]
    pairs = {(name, "k"): (1, None) for name in names}
    await cache.aset(pairs)
    await cache.aclear([("g", "a")])
    assert set(await cache.aget(list(pairs))) == {(name, "k") for name in names[2:]}
    await cache.aclear([])
    await cache.aclear([("nobody",)])
    assert set(await cache.aget(list(pairs))) == {(name, "k") for name in names[2:]}
    await cache.aclear([("g", "ab"), ("h",)])
    assert set(await cache.aget(list(pairs))) == {(("g",), "k"), (("", ""), "k")}
    await cache.aclear()
    assert await cache.aget(list(pairs)) == {}


@pytest.mark.parametrize("everything", [None, [()]])
async def test_everything_can_be_cleared(cache: BaseCache, everything: Any) -> None:
    await cache.aset({KEY: (1, None), ((), "k"): (2, None)})
    await cache.aclear(everything)
    assert await cache.aget([KEY, ((), "k")]) == {}


async def test_names_and_keys_may_be_any_text(cache: BaseCache) -> None:
    odd = [(("a\x00b", "\ud800"), "\x00"), (("a", "b"), "\udfff'"), (("a", ""), "%"), (("a",), "")]
    await cache.aset({key: (place, None) for place, key in enumerate(odd)})
    assert await cache.aget(odd) == {key: place for place, key in enumerate(odd)}


async def test_what_cannot_be_stored_is_refused_and_nothing_is_kept(cache: BaseCache) -> None:
    other = (KEY[0], "other")
    with pytest.raises(SerializationError, match=r"\('graph', 'node', 'code'\).*object"):
        await cache.aset({other: (1, None), KEY: ([object()], None)})
    assert await cache.aget([other, KEY]) == {}
    with pytest.raises(SerializationError):
        cache.key_of([object()])


async def test_only_registered_types_are_kept_and_rebuilt(
    cache: BaseCache, serde: Serializer, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SerializationError, match="Point"):
        await cache.aset({KEY: (Point(1), None)})
    cache.register_types([Point])
    await cache.aset({KEY: (Point(1), None), (KEY[0], "plain"): (1, None)})
    assert await cache.aget([KEY]) == {KEY: Point(1)}
    forgetful: Any = cache
    forgetful._values.serde = Serializer()
    with caplog.at_level(logging.WARNING, "actorgraph"):
        assert await cache.aget([KEY, (KEY[0], "plain")]) == {(KEY[0], "plain"): 1}
    assert "Point" in caplog.text


async def test_an_encrypted_value_is_bound_to_its_key(
    cache: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    cache._values.serde = EncryptedSerializer(b"k" * 16)
    other = (KEY[0], "other")
    await cache.aset({KEY: ("secret", None), other: ("other", None)})
    assert await cache.aget([KEY, other]) == {KEY: "secret", other: "other"}
    for file in tmp_path.iterdir():
        assert b"secret" not in file.read_bytes()
    cache._values.serde = EncryptedSerializer(b"x" * 16)
    with caplog.at_level(logging.WARNING, "actorgraph"):
        assert await cache.aget([KEY]) == {}
    assert "key that is not at hand" in caplog.text


def test_the_blocking_doors_work_in_plain_code(tmp_path: Path) -> None:
    for cache in (InMemoryCache(), SqliteCache(tmp_path / "c.sqlite")):
        with cache as opened:
            opened.set({KEY: ([1], None)})
            assert opened.get([KEY]) == {KEY: [1]}
            opened.clear([KEY[0]])
            assert opened.get([KEY]) == {}


# Keys


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=8,
)


@given(plain, plain)
def test_equal_values_have_equal_keys_and_others_have_others(one: Any, two: Any) -> None:
    cache = InMemoryCache()
    same = Serializer().dumps_typed(one) == Serializer().dumps_typed(two)
    assert (cache.key_of(one) == cache.key_of(two)) is same


@given(st.sets(st.text() | st.integers()), st.randoms())
def test_the_order_inside_a_set_does_not_count(items: set[Any], random: Any) -> None:
    shuffled = list(items)
    random.shuffle(shuffled)
    cache = InMemoryCache()
    assert cache.key_of([items, {"k": frozenset(items)}]) == cache.key_of([set(shuffled), {"k": frozenset(shuffled)}])
    assert cache.key_of(items) != cache.key_of(frozenset(items))
    assert cache.key_of(items) != cache.key_of([*items])


@pytest.mark.slow
def test_keys_are_the_same_in_every_process() -> None:
    program = (
        "from persistence.memory import InMemoryCache\n"
        "print(InMemoryCache().key_of({'tags': {f't{n}' for n in range(30)}, 'n': (1, frozenset('abc'))}))\n"
    )
    keys = set()
    for seed in ("1", "2"):
        found = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        keys.add(found.stdout)
    assert len(keys) == 1, json.dumps(sorted(keys))


async def test_the_port_alone_offers_nothing() -> None:
    port = BaseCache()
    port.register_types([Point])
    with pytest.raises(UnsupportedOperationError, match="key_of"):
        port.key_of(1)
    for call in (port.aget([]), port.aset({}), port.aclear()):
        with pytest.raises(UnsupportedOperationError, match="BaseCache does not implement a"):
            await call
