"""A PostgreSQL database that LangGraph's PostgresSaver, PostgresStore or both have written; only ever read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, Self

import msgspec

from persistence.errors import BackendOpenError
from persistence.migration.records import PLAIN, ForeignCheckpoint, ForeignItem, ForeignThread, ForeignWrite
from persistence.migration.statements import queries
from persistence.postgres.backend import Database
from persistence.postgres.options import Options
from persistence.postgres.saver import checked
from persistence.postgres.sessions import Session
from persistence.writer.limits import DEFAULT_LIMITS

_SQL: Final = queries("postgres.sql")
_COLUMNS: Final = {"thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "checkpoint", "metadata"}
"""Of a checkpoint. LangGraph's saver that keeps no history has fewer."""


class _Versions(msgspec.Struct):
    """The part of a checkpoint that says where its values are."""

    channel_versions: dict[str, str | int | float] = {}


class PostgresSource:
    """Reads the database; versions 2 and 3 of langgraph-checkpoint-postgres."""

    def __init__(self, url: str, **settings: Any) -> None:
        """Read from a database, with the settings of ``PostgresSaver``; nothing is opened yet."""
        self._database = Database(checked(url), Options(**{"pool_size": 2, **settings}), DEFAULT_LIMITS)
        self._tables: dict[str, set[str]] = {}

    async def __aenter__(self) -> Self:
        """Connect. Raises BackendOpenError if it cannot be reached, or holds nothing of LangGraph's."""
        try:
            await self._database.open(self._look)
        except BaseException:
            await self._database.close()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close the connections."""
        await self._database.close()

    async def threads(self) -> Sequence[ForeignThread]:
        """Return every thread, by id."""
        if "checkpoints" not in self._tables:
            return []
        return [ForeignThread(row["thread_id"], row["number"]) for row in await self._fetch("threads")]

    async def heads(self, thread_id: str) -> dict[str, str]:
        """Return the newest checkpoint id of each of a thread's namespaces."""
        return {row["checkpoint_ns"]: row["head"] for row in await self._fetch("heads", thread_id)}

    async def checkpoints(
        self, thread_id: str, checkpoint_ns: str, after: str, limit: int
    ) -> Sequence[ForeignCheckpoint]:
        """Return the checkpoints with ids greater than ``after``, oldest first, at most ``limit``."""
        found = partial(self._page, thread_id=thread_id, checkpoint_ns=checkpoint_ns, after=after, limit=limit)
        return await self._database.read(found)

    async def writes(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> Sequence[ForeignWrite]:
        """Return the writes against one checkpoint."""
        rows = await self._fetch(self._writes_query, thread_id, checkpoint_ns, [checkpoint_id])
        return [_write(row) for row in rows]

    async def item_count(self) -> int:
        """Return how many items the store has; 0 if there is no store."""
        return (await self._fetch("item_count"))[0]["number"] if "store" in self._tables else 0

    async def has_vectors(self) -> bool:
        """Tell whether items are indexed for search by meaning."""
        return "store_vectors" in self._tables and (await self._fetch("vector_count"))[0]["present"]

    async def items(self, start: int, limit: int) -> Sequence[ForeignItem]:
        """Return items in the order of their creation, so many after the first ``start``."""
        query = "items" if "expires_at" in self._tables["store"] else "items_without_expiry"
        return [ForeignItem(*row.values()) for row in await self._fetch(query, start, limit)]

    async def _look(self, session: Session) -> None:
        rows = await session.rows(_SQL["tables"])
        self._tables = {row["table_name"]: set(row["columns"]) for row in rows}
        name = self._database.name
        if "prefix" not in self._tables.get("store", ("prefix",)):
            del self._tables["store"]
        if not self._tables.keys() & {"checkpoints", "store"}:
            msg = f"{name} has no tables of LangGraph's PostgresSaver or PostgresStore."
            raise BackendOpenError(msg)
        if "checkpoints" not in self._tables:
            return
        if not self._tables.keys() >= {"checkpoint_blobs", "checkpoint_writes"} or not (
            self._tables["checkpoints"] >= _COLUMNS
        ):
            msg = f"{name} was not written by LangGraph's PostgresSaver: tables or columns of it are missing."
            raise BackendOpenError(msg)
        if await session.rows(_SQL["our_checkpoint"]):
            msg = f"{name} was written by this project's PostgresSaver: open it as it is."
            raise BackendOpenError(msg)

    async def _page(
        self, session: Session, thread_id: str, checkpoint_ns: str, after: str, limit: int
    ) -> list[ForeignCheckpoint]:
        rows = await session.rows(_SQL["checkpoints"], thread_id, checkpoint_ns, after, limit)
        if not rows:
            return []
        versions = [_versions(row["body"]) for row in rows]
        wanted = sorted({pair for held in versions for pair in held.items()})
        channels, numbers = [channel for channel, _ in wanted], [version for _, version in wanted]
        stored = await session.rows(_SQL["blobs"], thread_id, checkpoint_ns, channels, numbers)
        blobs = {(row["channel"], row["version"]): (row["type"], row["blob"] or b"") for row in stored}
        ids = [row["checkpoint_id"] for row in rows]
        by_checkpoint: dict[str, list[ForeignWrite]] = {}
        for row in await session.rows(_SQL[self._writes_query], thread_id, checkpoint_ns, ids):
            by_checkpoint.setdefault(row["checkpoint_id"], []).append(_write(row))
        return [
            ForeignCheckpoint(
                thread_id,
                checkpoint_ns,
                row["checkpoint_id"],
                row["parent_checkpoint_id"] or None,
                (PLAIN, row["body"].encode()),
                row["metadata"],
                {channel: blobs[channel, version] for channel, version in held.items() if (channel, version) in blobs},
                by_checkpoint.get(row["checkpoint_id"], ()),
            )
            for row, held in zip(rows, versions, strict=True)
        ]

    @property
    def _writes_query(self) -> str:
        return "writes" if "task_path" in self._tables["checkpoint_writes"] else "writes_without_path"

    async def _fetch(self, query: str, *values: object) -> Sequence[Any]:
        async def work(session: Session) -> Sequence[Any]:
            return await session.rows(_SQL[query], *values)

        return await self._database.read(work)


def _versions(body: str) -> dict[str, str]:
    """Return a checkpoint's versions as the rows of values are keyed; none if it is damaged, which is told later."""
    try:
        held = msgspec.json.decode(body, type=_Versions).channel_versions
    except msgspec.MsgspecError:
        return {}
    return {channel: version if isinstance(version, str) else f"{version}" for channel, version in held.items()}


def _write(row: Any) -> ForeignWrite:
    return ForeignWrite(row["task_id"], row["task_path"], row["channel"], (row["type"] or "msgpack", row["blob"]))
