"""LangGraph's public conformance suite, run on this project's savers through an adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate

from persistence.memory import InMemorySaver
from persistence.mongo import MongoDBSaver
from persistence.postgres import PostgresSaver
from persistence.redis import RedisSaver
from persistence.serde.encrypted import EncryptedSerializer
from persistence.sqlite import SqliteSaver
from tests.persistence.conformance_adapter.adapter import Adapter
from tests.persistence.mongo.server import MongoServer
from tests.persistence.postgres.server import Server
from tests.persistence.redis.server import RedisServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio
CAPABILITIES = {
    "put",
    "put_writes",
    "get_tuple",
    "list",
    "delete_thread",
    "delete_for_runs",
    "copy_thread",
    "prune",
}
KEY = b"0123456789abcdef"


@pytest.mark.parametrize("seal", ["", "encrypted "])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgres", "redis", "mongo"])
async def test_every_capability_conforms(kind: str, seal: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    serde = EncryptedSerializer(KEY) if seal else None
    made = iter(range(100))

    @checkpointer_test(name=seal + kind)
    async def savers() -> AsyncIterator[Any]:
        if kind == "memory":
            yield Adapter(InMemorySaver(serde=serde))
        elif kind == "mongo":
            documents: MongoServer = request.getfixturevalue("mongo_server")
            with documents.prefix() as prefix:
                async with MongoDBSaver(
                    documents.url, prefix=prefix, serde=serde, **documents.settings
                ) as shared_documents:
                    yield Adapter(shared_documents)
        elif kind == "redis":
            keys: RedisServer = request.getfixturevalue("redis_server")
            with keys.prefix() as prefix:
                async with RedisSaver(keys.url, prefix=prefix, serde=serde) as shared_keys:
                    yield Adapter(shared_keys)
        elif kind == "postgres":
            server: Server = request.getfixturevalue("postgres")
            with server.schema() as url:
                async with PostgresSaver(url, serde=serde) as shared:
                    yield Adapter(shared)
        else:
            async with SqliteSaver(tmp_path / f"{next(made)}.sqlite", serde=serde, synchronous="NORMAL") as saver:
                yield Adapter(saver)

    report = await validate(savers)
    assert set(report.results) >= CAPABILITIES
    for capability, result in report.results.items():
        assert result.detected, f"{capability} is not offered"
        assert result.passed, f"{capability}: {result.failures}"
        assert result.tests_passed > 0
        assert result.tests_skipped == 0
