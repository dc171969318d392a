"""Databases that the installed LangGraph writes: what it stores, and where."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple as PeerTuple
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver as PeerPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver as PeerSqliteSaver
from langgraph.store.postgres import PostgresStore as PeerPostgresStore
from langgraph.store.sqlite import SqliteStore as PeerSqliteStore

from persistence.migration.postgres import PostgresSource
from persistence.migration.sqlite import SqliteSource


@dataclass
class Peer:
    """One database of LangGraph's, and how it is written and read."""

    kind: str
    url: str
    saver: Callable[[], AbstractContextManager[Any]]
    store: Callable[[], AbstractContextManager[Any]]
    source: Callable[[], Any]


@contextmanager
def _sqlite_saver(path: str) -> Iterator[PeerSqliteSaver]:
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        yield PeerSqliteSaver(connection, serde=JsonPlusSerializer(pickle_fallback=True))
    finally:
        connection.close()


@contextmanager
def _sqlite_store(path: str) -> Iterator[PeerSqliteStore]:
    with PeerSqliteStore.from_conn_string(path) as store:
        store.setup()
        yield store


@contextmanager
def _postgres_saver(url: str) -> Iterator[PeerPostgresSaver]:
    with PeerPostgresSaver.from_conn_string(url) as saver:
        saver.serde = JsonPlusSerializer(pickle_fallback=True)
        saver.setup()
        yield saver


@contextmanager
def _postgres_store(url: str) -> Iterator[PeerPostgresStore]:
    with PeerPostgresStore.from_conn_string(url) as store:
        store.setup()
        yield store


def sqlite_peer(folder: Path) -> Peer:
    """Return a file of LangGraph's."""
    path = str(folder / "peer.db")
    return Peer(
        "langgraph-sqlite",
        path,
        lambda: _sqlite_saver(path),
        lambda: _sqlite_store(path),
        lambda: SqliteSource(path),
    )


def driver_url(url: str) -> str:
    """Return a URL as LangGraph's driver takes it."""
    return url.replace("search_path=", "options=-csearch_path%3D")


def postgres_peer(url: str) -> Peer:
    """Return a schema of LangGraph's."""
    told = driver_url(url)
    return Peer(
        "langgraph-postgres",
        url,
        lambda: _postgres_saver(told),
        lambda: _postgres_store(told),
        lambda: PostgresSource(url),
    )


def put(saver: Any, thread_id: str, values: Mapping[str, Any], ns: str = "", **more: Any) -> str:
    """Store a checkpoint with these values through LangGraph's saver and return its id."""
    checkpoint: dict[str, Any] = {**empty_checkpoint(), **more}
    checkpoint["channel_values"] = dict(values)
    checkpoint["channel_versions"] = dict.fromkeys(values, f"{1:032}.0")
    config = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ns}}
    metadata = {"source": "loop", "step": 0, "parents": {}}
    saver.put(config, checkpoint, metadata, checkpoint["channel_versions"])
    return str(checkpoint["id"])


def everything(saver: Any) -> dict[tuple[str, str, str], PeerTuple]:
    """Return all that LangGraph's saver has, by its place."""
    found = {}
    for each in saver.list(None):
        where = each.config["configurable"]
        found[where["thread_id"], where["checkpoint_ns"], where["checkpoint_id"]] = each
    return found
