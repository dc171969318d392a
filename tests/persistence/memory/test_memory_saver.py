"""InMemorySaver: no opening, any loop, nothing shared with its callers, cheap to write to."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from persistence.contracts.backend import DeleteThread, Query
from persistence.errors import CheckpointConflictError
from persistence.memory import InMemorySaver
from persistence.memory.tables import Tables
from tests.persistence.writer.samples import checkpoint, config, put, unit

pytestmark = pytest.mark.anyio


async def test_an_in_memory_saver_needs_no_opening() -> None:
    saver = InMemorySaver()
    receipt = await saver.send(saver.encode(unit("t", "1")))
    assert receipt.done
    await receipt.wait()
    async with saver:
        await put(saver, "2", {"a": 1})
    assert "1 threads" in repr(saver)
    assert (saver.home_token, saver.home_thread, saver.inline) == (None, None, True)
    await saver.asetup()


def test_an_in_memory_saver_serves_several_loops_at_once() -> None:
    saver = InMemorySaver()

    async def run(name: str) -> None:
        for number in range(50):
            await put(saver, f"{number:02}", {"a": number}, thread_id=name)
            await put(saver, f"{number:02}", {"a": number}, thread_id="shared", ns=name)

    threads = [
        threading.Thread(target=anyio.run, args=(run, f"{number}"), kwargs={"backend": backend})
        for number, backend in enumerate(["asyncio", "trio"] * 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def count() -> int:
        return len([stored async for stored in saver.alist(config("shared", ns="3"))])

    assert anyio.run(count) == 50


async def test_checkpoint_values_are_copied() -> None:
    saver = InMemorySaver()
    values: dict[str, Any] = {"a": [1]}
    made = checkpoint("1", values)
    await saver.aput(config(), made, {"step": 1}, {"a": "1"})
    values["a"].append(2)
    made["channel_versions"]["b"] = "9"
    for _ in range(2):
        stored = await saver.aget_tuple(config())
        assert stored is not None
        assert stored.checkpoint["channel_values"] == {"a": [1]}
        assert stored.checkpoint["channel_versions"] == {"a": "1"}
        stored.checkpoint["channel_values"]["a"].append(3)


async def test_what_fails_at_once_is_in_the_receipt() -> None:
    saver = InMemorySaver()
    one = unit("t", "1")
    one.expected_head = "0"
    receipt = saver.send_nowait(saver.encode(one))
    assert receipt.done
    assert isinstance(receipt.error, CheckpointConflictError)
    with pytest.raises(CheckpointConflictError):
        await receipt.wait()
    assert await saver.aget_tuple(config()) is None


def test_deleting_leaves_nothing_in_the_tables() -> None:
    tables, encode = Tables(), InMemorySaver().encode
    for ns in ("", "child"):
        tables.apply(encode(unit("t", "1", writes_to="1", value=[1], ns=ns)))
    tables.apply(DeleteThread("t"))
    assert not tables.threads
    assert not tables.page(Query(limit=9)).checkpoints


def test_ids_stay_sorted_whatever_order_they_come_in() -> None:
    tables, encode = Tables(), InMemorySaver().encode
    for number in (5, 1, 9, 3, 7, 3):
        tables.apply(encode(unit("t", f"{number}")))
    assert tables.threads["t"][""].ids == ["1", "3", "5", "7", "9"]
    assert tables.head("t", "") == "9"
    assert tables.head("t", "child") is None
