"""Any sequence of units, forks, deletions, copies and prunings reads the same from MongoDB and a plain model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.mongo import MongoDBSaver
from persistence.serde.encrypted import EncryptedSerializer
from tests.persistence.sqlite.test_model import Model, perform, read, steps

if TYPE_CHECKING:
    from tests.persistence.mongo.server import MongoServer

SEALED = EncryptedSerializer(b"0123456789abcdef")


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(sequence=st.lists(steps, max_size=25))
def test_it_reads_like_the_model(mongo_server: MongoServer, sequence: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        model = Model()
        async with (
            MongoDBSaver(mongo_server.url, prefix=f"{one}_a", **mongo_server.settings) as plain,
            MongoDBSaver(mongo_server.url, prefix=f"{one}_b", serde=SEALED, **mongo_server.settings) as sealed,
        ):
            for step in sequence:
                await perform(model, [plain, sealed], step)
            expected = model.read()
            for saver in (plain, sealed):
                assert await read(saver) == expected
            for saver in (plain, sealed):
                await saver.aprune(["a", "b", "c"], strategy="delete")

    with mongo_server.prefix() as one:
        anyio.run(run)
        assert mongo_server.kinds(f"{one}_a") == mongo_server.kinds(f"{one}_b") == {}
