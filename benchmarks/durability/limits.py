"""The least that a durable superstep can cost: the same bytes, without an engine, on the same database.

``raw fsync`` appends them to a file and waits for the disk. ``raw commit`` puts them into one row of a table in a
transaction of its own, through the plain driver. ``raw round trip`` only sends them to the server and hears back.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from benchmarks.files import fresh_path
from benchmarks.harness import MICRO, Stopwatch
from benchmarks.results import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.durability.places import Place

FSYNC, COMMIT, ROUND_TRIP = "raw fsync", "raw commit", "raw round trip"
TIMES = 100
"""Writes in a sample, fewer if they take longer than ``ENOUGH`` seconds."""
ENOUGH = 0.25


def contenders(place: Place, directory: Path, count: int) -> Mapping[str, Callable[[], Sample]]:
    """Return what measures the limits of a place for this many bytes at once."""
    payload = os.urandom(count)
    if place.backend == "sqlite":
        return {FSYNC: partial(fsync, directory, payload), COMMIT: partial(sqlite_commit, directory, payload)}
    if place.backend == "postgres":
        return {
            ROUND_TRIP: lambda: anyio.run(_on_postgres, place.address, TRIP_SQL, payload),
            COMMIT: lambda: anyio.run(_on_postgres, place.address, INSERT_SQL, payload),
        }
    if place.backend == "valkey":
        return {
            ROUND_TRIP: partial(valkey, place, ("ECHO",), payload),
            COMMIT: partial(valkey, place, ("SET", f"{place.prefix}:raw"), payload),
        }
    return {}


def fsync(directory: Path, payload: bytes) -> Sample:
    """Time appending to a file and waiting for the disk."""
    path = fresh_path(directory)
    handle = os.open(path, os.O_CREAT | os.O_WRONLY)
    sync = getattr(os, "fdatasync", os.fsync)

    def write() -> None:
        os.write(handle, payload)
        sync(handle)

    try:
        return repeated(write)
    finally:
        os.close(handle)
        os.unlink(path)  # noqa: PTH108 - beside its other calls


def sqlite_commit(directory: Path, payload: bytes, rows: int = 1) -> Sample:
    """Time transactions of some rows in a file with a write-ahead log that is synchronous; per row."""
    with closing(sqlite3.connect(fresh_path(directory), isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE raw (number INTEGER PRIMARY KEY, payload BLOB)")
        batch = [(payload,)] * rows

        def commit() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO raw (payload) VALUES (?)", batch)
            connection.execute("COMMIT")

        return repeated(commit).per(rows)


TRIP_SQL = "SELECT length($1::bytea)"
INSERT_SQL = "INSERT INTO raw (payload) VALUES ($1::bytea)"


async def _on_postgres(url: str, sql: str, payload: bytes) -> Sample:
    import asyncpg  # noqa: PLC0415 - may be missing

    connection: Any = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS raw (number bigserial PRIMARY KEY, payload bytea)")
        statement = await connection.prepare(sql)
        await statement.fetchval(payload)
        latencies: list[float] = []
        enough = time.perf_counter() + ENOUGH
        with Stopwatch() as watch:
            while len(latencies) < TIMES and time.perf_counter() < enough:
                begun = time.perf_counter()
                await statement.fetchval(payload)
                latencies.append((time.perf_counter() - begun) * MICRO)
        return watch.micros.per(len(latencies)).having(latencies)
    finally:
        await connection.close()


def valkey(place: Place, command: tuple[str, ...], payload: bytes) -> Sample:
    """Time one command with the payload."""
    import redis  # noqa: PLC0415 - may be missing

    with redis.Redis.from_url(place.address) as client:
        client.ping()
        return repeated(lambda: client.execute_command(*command, payload))


def repeated(act: Callable[[], object]) -> Sample:
    """Time something a number of times, each by itself; microseconds."""
    act()
    latencies: list[float] = []
    enough = time.perf_counter() + ENOUGH
    with Stopwatch() as watch:
        while len(latencies) < TIMES and time.perf_counter() < enough:
            begun = time.perf_counter()
            act()
            latencies.append((time.perf_counter() - begun) * MICRO)
    return watch.micros.per(len(latencies)).having(latencies)
