"""Servers that are killed and come back, wrong users of transactions, faults of the wire: tried again or told."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    ConfigurationError,
    DocumentTooLarge,
    OperationFailure,
    ServerSelectionTimeoutError,
    WTimeoutError,
)

from persistence.errors import BackendError, CheckpointConflictError, PersistenceClosedError, TransientBackendError
from persistence.mongo import MongoDBSaver, MongoDBStore
from persistence.mongo.faults import described, passes, read_fault, write_fault
from persistence.writer.limits import Limits
from tests.persistence.mongo.server import StartedMongo
from tests.persistence.writer.samples import config, put

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio

LEAVES_SOCKETS = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
"""The driver does not close a socket if it is stopped while it looks for a server that is gone."""


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[StartedMongo]:
    """A server of this test alone, which may be killed."""
    with tempfile.TemporaryDirectory(prefix="mongo") as folder:
        server = StartedMongo(Path(folder))
        try:
            yield server
        finally:
            server.client.close()
            server.kill()
            gc.collect()  # here, where it may complain


@LEAVES_SOCKETS
@pytest.mark.slow
@pytest.mark.services
async def test_a_server_that_was_killed_is_found_again(started: StartedMongo) -> None:
    given: Any = {"connect_timeout": 0.3, **started.settings}
    async with (
        MongoDBSaver(started.url, limits=Limits(attempts=100, longest_delay=0.2), **given) as saver,
        MongoDBStore(started.url, **given) as store,
    ):
        await put(saver, "1", {"a": [1]})
        await store.aput(("a",), "k", {"n": 1})
        await anyio.to_thread.run_sync(started.kill)
        async with anyio.create_task_group() as nursery:
            nursery.start_soon(put, saver, "2", {"a": [2]})
            nursery.start_soon(saver.aget_tuple, config())
            await anyio.lowlevel.checkpoint()
            await anyio.to_thread.run_sync(started.start)
        assert [one.checkpoint["id"] async for one in saver.alist(config())] == ["2", "1"]
        await store.aput(("a",), "k", {"n": 2})
        item = await store.aget(("a",), "k")
        assert item is not None
        assert item.value == {"n": 2}
        assert saver.statistics().failures == 0


@LEAVES_SOCKETS
@pytest.mark.slow
@pytest.mark.services
async def test_a_server_that_stays_away_is_told_of(started: StartedMongo) -> None:
    given: Any = {"connect_timeout": 0.05, **started.settings}
    async with MongoDBSaver(started.url, limits=Limits(attempts=2, first_delay=0.001), **given) as saver:
        await put(saver, "1", {"a": [1]})
        started.kill()
        with pytest.raises(TransientBackendError, match="could not answer, the outcome may be unknown"):
            await put(saver, "2", {"a": [2]})
        with pytest.raises(TransientBackendError, match="cannot be read"):
            await saver.aget_tuple(config())
    with pytest.raises(PersistenceClosedError):
        await saver.aget_tuple(config())


async def test_two_transactions_on_one_document_are_tried_again(mongo: dict[str, Any]) -> None:
    async with MongoDBSaver(**mongo) as first, MongoDBSaver(**mongo) as second:
        where = await put(first, "1", {"a": [1]})

        async def write(saver: MongoDBSaver, number: int) -> None:
            await saver.aput_writes(where, [("a", number), ("__resume__", number)], "task")

        async with anyio.create_task_group() as nursery:
            for number in range(10):
                nursery.start_soon(write, first, number)
                nursery.start_soon(write, second, number + 10)
        stored = await first.aget_tuple(config())
        assert stored is not None
        assert sorted(channel for _, channel, _ in stored.pending_writes or ()) == ["__resume__", "a"]


def bulk(**fault: Any) -> BulkWriteError:
    return BulkWriteError({"writeErrors": [{"errmsg": "told", **fault}]})


def labelled(label: str) -> OperationFailure:
    error = OperationFailure("told", 1)
    error._add_error_label(label)
    return error


PASSING = (
    AutoReconnect("gone"),
    ServerSelectionTimeoutError("none"),
    WTimeoutError("slow", 64),
    OperationFailure("told", 112),
    OperationFailure("told", 11600),
    bulk(code=112),
    bulk(code=11000, keyPattern={"_id": 1}),
    labelled("TransientTransactionError"),
    labelled("UnknownTransactionCommitResult"),
    TimeoutError("slow"),
    BrokenPipeError(),
)
LASTING = (
    OperationFailure("told", 13),
    OperationFailure("told", 18),
    bulk(code=17419),
    BulkWriteError({"writeErrors": []}),
    DocumentTooLarge("told"),
    ConfigurationError("told"),
)


@pytest.mark.parametrize("error", PASSING, ids=repr)
def test_what_may_pass_is_tried_again(error: Exception) -> None:
    assert passes(error)
    assert type(write_fault(error, "db")) is type(read_fault(error, "db")) is TransientBackendError


@pytest.mark.parametrize("error", LASTING, ids=repr)
def test_what_stays_is_told_with_advice(error: Exception) -> None:
    assert not passes(error)
    assert type(write_fault(error, "db")) is type(read_fault(error, "db")) is BackendError


def test_advice_and_conflicts() -> None:
    assert "grant the user the role readWrite" in described(OperationFailure("told", 13))
    assert "set transactions=False" in described(OperationFailure("told", 20))
    for fault in ({"keyPattern": {"thread_id": 1, "follows": 1}}, {"errmsg": "E11000 dup key, index: follows dup key"}):
        error = bulk(code=11000, **fault)
        assert not passes(error)
        assert type(write_fault(error, "db")) is CheckpointConflictError
