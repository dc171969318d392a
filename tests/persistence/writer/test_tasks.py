"""A saver or store that one task opens and another closes: everything is saved, and the error tells the rule."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from persistence.errors import SaverLoopError
from persistence.sqlite import SqliteSaver, SqliteStore
from tests.persistence.writer.samples import config, put

only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""Trio ends a program that leaves a nursery in another task than the one that entered it."""


async def in_a_task(act: Any) -> None:
    await asyncio.create_task(act())


async def leave(subject: Any) -> None:
    with pytest.raises(SaverLoopError, match="must begin and end in one task"):
        await subject.__aexit__(None, None, None)


@only_asyncio
async def test_a_saver(tmp_path: Path) -> None:
    saver = SqliteSaver(tmp_path / "threads.db")
    await in_a_task(saver.__aenter__)
    await put(saver, "1", {"a": 1})
    await in_a_task(lambda: leave(saver))
    async with saver:
        stored = await saver.aget_tuple(config())
    assert stored is not None
    assert stored.checkpoint["channel_values"] == {"a": 1}


@only_asyncio
async def test_a_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "items.db")
    await in_a_task(store.__aenter__)
    await store.aput(("a",), "k", {"n": 1})
    await in_a_task(lambda: leave(store))
    async with store:
        item = await store.aget(("a",), "k")
    assert item is not None
    assert item.value == {"n": 1}
