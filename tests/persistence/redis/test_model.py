"""Any sequence of units, forks, deletions, copies and prunings reads the same from Redis and a plain model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.redis import RedisSaver
from persistence.serde.encrypted import EncryptedSerializer
from tests.persistence.sqlite.test_model import Model, perform, read, steps

if TYPE_CHECKING:
    from tests.persistence.redis.server import RedisServer

SEALED = EncryptedSerializer(b"0123456789abcdef")


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(sequence=st.lists(steps, max_size=25))
def test_it_reads_like_the_model(redis_server: RedisServer, sequence: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        model = Model()
        ttl: Any = {"default_ttl": 60}
        async with (
            RedisSaver(redis_server.url, prefix=f"{one}:plain", ttl=ttl) as plain,
            RedisSaver(redis_server.url, prefix=f"{one}:sealed", serde=SEALED) as sealed,
        ):
            for step in sequence:
                await perform(model, [plain, sealed], step)
            expected = model.read()
            for saver in (plain, sealed):
                assert await read(saver) == expected
            for saver in (plain, sealed):
                await saver.aprune(["a", "b", "c"], strategy="delete")

    with redis_server.prefix() as one:
        anyio.run(run)
        assert redis_server.keys(one) == []
