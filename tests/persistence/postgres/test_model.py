"""Any sequence of units, forks, deletions, copies and prunings reads the same from PostgreSQL and a plain model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.postgres import PostgresSaver
from persistence.serde.encrypted import EncryptedSerializer
from tests.persistence.sqlite.test_model import Model, perform, read, steps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.persistence.postgres.server import Server

SEALED = EncryptedSerializer(b"0123456789abcdef")


@pytest.fixture(scope="module")
def urls(postgres: Server) -> Iterator[tuple[str, str]]:
    """Two schemas that every example empties for itself."""
    with postgres.schema() as plain, postgres.schema() as sealed:
        yield plain, sealed


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(sequence=st.lists(steps, max_size=20))
def test_it_reads_like_the_model(urls: tuple[str, str], sequence: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        model = Model()
        async with PostgresSaver(urls[0]) as plain, PostgresSaver(urls[1], serde=SEALED) as sealed:
            for step in sequence:
                await perform(model, [plain, sealed], step)
            expected = model.read()
            for saver in (plain, sealed):
                assert await read(saver) == expected
                await saver.aprune(["a", "b", "c"], strategy="delete")

    anyio.run(run)
