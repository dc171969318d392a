"""The suite that is shipped for authors of savers and stores: our own pass it, and what breaks a promise is found."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from persistence.conformance import SAVER_CHECKS, STORE_CHECKS, Check, check_saver, check_store
from persistence.contracts.saver import BaseCheckpointSaver
from persistence.errors import UnsupportedOperationError
from persistence.memory import InMemorySaver, InMemoryStore
from persistence.postgres import PostgresSaver, PostgresStore
from persistence.redis import RedisSaver, RedisStore
from persistence.serde.encrypted import EncryptedSerializer
from persistence.sqlite import SqliteSaver, SqliteStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping
    from pathlib import Path

KEY = b"0123456789abcdef"


@pytest.fixture(params=["memory", "sqlite", "encrypted sqlite", "postgres", "redis", "encrypted redis"])
async def saver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    serde = EncryptedSerializer(KEY) if request.param.startswith("encrypted") else None
    if request.param == "memory":
        yield InMemorySaver()
    elif request.param == "postgres":
        async with PostgresSaver(request.getfixturevalue("postgres_url")) as opened:
            yield opened
    elif request.param.endswith("redis"):
        url, prefix = request.getfixturevalue("redis_server").url, request.getfixturevalue("redis_keys")
        async with RedisSaver(url, prefix=prefix, serde=serde) as opened:
            yield opened
    else:
        async with SqliteSaver(tmp_path / "threads.db", serde=serde) as opened:
            yield opened


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    if request.param == "memory":
        yield InMemoryStore()
    elif request.param == "postgres":
        async with PostgresStore(request.getfixturevalue("postgres_url")) as opened:
            yield opened
    elif request.param == "redis":
        url, prefix = request.getfixturevalue("redis_server").url, request.getfixturevalue("redis_keys")
        async with RedisStore(url, prefix=prefix) as opened:
            yield opened
    else:
        async with SqliteStore(tmp_path / "items.db") as opened:
            yield opened


@pytest.mark.parametrize("check", SAVER_CHECKS, ids=lambda check: check.title)
async def test_savers(saver: Any, check: Check) -> None:
    if check.needs == "alease" and not isinstance(saver, SqliteSaver | PostgresSaver):
        with pytest.raises(UnsupportedOperationError, match="no leases"):
            await check(saver)
    else:
        await check(saver)


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.title)
async def test_stores(store: Any, check: Check) -> None:
    await check(store)


# ---- one call -------------------------------------------------------------------------------------------------------


def opening(made: Any) -> Callable[[], Any]:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        yield made

    return opened


async def test_one_call_tells_of_every_check() -> None:
    async with SqliteSaver(":memory:") as saver:
        report = await check_saver(opening(saver))
    report.raise_failures()
    assert report.passed == tuple(check.title for check in SAVER_CHECKS)
    assert str(report) == f"{len(SAVER_CHECKS)} passed, 0 failed, 0 not offered"
    stores = await check_store(opening(InMemoryStore()))
    stores.raise_failures()
    assert stores.passed == tuple(check.title for check in STORE_CHECKS)


class Foreign(BaseCheckpointSaver):
    """A saver of a third party: the five methods that it must have."""

    def __init__(self) -> None:
        self.inner = InMemorySaver()

    async def aget_tuple(self, config: Any) -> Any:
        return await self.inner.aget_tuple(config)

    async def alist(self, config: Any, **options: Any) -> Any:
        async for found in self.inner.alist(config, **options):
            yield found

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        return await self.inner.aput(config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        await self.inner.aput_writes(config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.inner.adelete_thread(thread_id)


async def test_what_is_not_offered_is_told_apart_from_what_fails() -> None:
    report = await check_saver(opening(Foreign()))
    report.raise_failures()
    assert report.missing == tuple(check.title for check in SAVER_CHECKS if check.needs)
    nothing = await check_saver(opening(BaseCheckpointSaver()))
    assert not nothing.passed
    assert set(nothing.failed) == {check.title for check in SAVER_CHECKS if not check.needs}


class Forgets(Foreign):
    async def adelete_thread(self, thread_id: str) -> None:
        """Delete nothing."""


class Overwrites(Foreign):
    async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        await super().aput_writes(config, list(writes), f"{task_id}{len(writes)}", task_path)


class OldestFirst(Foreign):
    async def alist(self, config: Any, **options: Any) -> Any:
        found = [one async for one in self.inner.alist(config, **options)]
        for one in reversed(found):
            yield one


class Tuples(Foreign):
    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        values = {
            key: list(value) if type(value) is tuple else value for key, value in checkpoint["channel_values"].items()
        }
        return await super().aput(config, {**checkpoint, "channel_values": values}, metadata, new_versions)


class Unfiltered(Foreign):
    async def alist(self, config: Any, **options: Any) -> Any:
        options.pop("filter", None)
        async for found in self.inner.alist(config, **options):
            yield found


@pytest.mark.parametrize(
    ("broken", "titles"),
    [
        (Forgets, {"deleting", "hostile ids"}),
        (Overwrites, {"writes kept and replaced"}),
        (OldestFirst, {"listing", "forks", "deleting"}),
        (Tuples, {"exact values"}),
        (Unfiltered, {"listing", "all threads", "hostile filters"}),
    ],
)
async def test_a_broken_promise_is_found(broken: type[Foreign], titles: Iterable[str]) -> None:
    report = await check_saver(opening(broken()))
    assert set(titles) <= set(report.failed)
    assert "newest and addressed" in report.passed or broken is Overwrites
    with pytest.raises(ExceptionGroup) as caught:
        report.raise_failures()
    assert len(caught.value.exceptions) == len(report.failed)
    assert all("FAILED" in line for line in str(report).splitlines()[1:])


class Torn(InMemoryStore):
    async def abatch(self, ops: Iterable[Any]) -> Any:
        return [(await super(Torn, self).abatch([op]))[0] for op in ops]


class Prefixes(InMemoryStore):
    async def asearch(self, namespace_prefix: Any, /, **options: Any) -> Any:
        wanted: Mapping[str, Any] = options
        return await super().asearch(namespace_prefix[:1], **wanted)


async def test_a_store_that_breaks_a_promise_is_found() -> None:
    assert "batches" in (await check_store(opening(Torn()))).failed
    assert "namespaces by segment" in (await check_store(opening(Prefixes()))).failed
