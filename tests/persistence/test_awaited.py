"""The async names that programs know: their ``setup`` and upkeep are awaited, on every database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import AsyncSqliteSaver, AsyncSqliteStore, SqliteSaver, SqliteStore

if TYPE_CHECKING:
    from pathlib import Path


async def test_setup_is_awaited_where_the_saver_is_open(tmp_path: Path) -> None:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        await saver.setup()
        assert await saver.aget_tuple({"configurable": {"thread_id": "1"}}) is None
    assert isinstance(saver, SqliteSaver)


async def test_setup_is_awaited_before_the_saver_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "threads.db"
    await AsyncSqliteSaver(path).setup()
    assert path.stat().st_size > 0


async def test_the_upkeep_of_a_store_is_awaited(tmp_path: Path) -> None:
    now = [0.0]
    async with AsyncSqliteStore(tmp_path / "items.db", clock=lambda: now[0]) as store:
        await store.setup()
        await store.aput(("a",), "k", {"v": 1}, ttl=1)
        await store.start_ttl_sweeper(60)
        assert await store.stop_ttl_sweeper() is True
        now[0] = 3600.0
        assert await store.sweep_ttl() == 1
    assert isinstance(store, SqliteStore)


def test_the_plain_names_block(tmp_path: Path) -> None:
    SqliteSaver(tmp_path / "threads.db").setup()
    SqliteStore(tmp_path / "items.db").setup()


async def test_a_checkpoint_alone() -> None:
    saver = InMemorySaver()
    config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
    assert await saver.aget(config) is None
    checkpoint: Any = {"v": 4, "id": "1", "ts": "", "channel_values": {"a": 1}, "channel_versions": {"a": 1}}
    checkpoint |= {"versions_seen": {}, "updated_channels": None}
    await saver.aput(config, checkpoint, {"source": "input", "step": -1}, {"a": 1})
    found = await saver.aget(config)
    assert found is not None
    assert found["channel_values"] == {"a": 1}


@pytest.mark.parametrize("backend", ["postgres", "redis"])
def test_the_async_names_of_servers_are_awaited_too(backend: str) -> None:
    module = pytest.importorskip(f"persistence.{backend}")
    kinds = [getattr(module, name) for name in module.__all__ if name.startswith("Async")]
    assert len(kinds) == 2
    assert all(kind.setup.__code__.co_flags & 0x80 for kind in kinds)
