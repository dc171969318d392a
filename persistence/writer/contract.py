"""The checkpoint contract over rows: what every saver of this project shares, whatever keeps the rows."""

from __future__ import annotations

import random
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal, cast

from persistence.blocking import BlockingSaver
from persistence.contracts.backend import (
    CopyThread,
    DeleteRuns,
    DeleteThread,
    Page,
    Prune,
    Query,
    Request,
)
from persistence.contracts.checkpoint import Checkpoint, CheckpointTuple, TaskWrites, Unit
from persistence.contracts.saver import BaseCheckpointSaver, Config
from persistence.drafting import get_checkpoint_metadata
from persistence.errors import CorruptDataError, StoredDataError
from persistence.serde.serializer import Serializer
from persistence.writer.addressing import address, config_of, name, optional_part
from persistence.writer.decoding import Decoder
from persistence.writer.encoding import Encoder
from persistence.writer.filtering import normal_filter
from persistence.writer.resealing import Resealer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping, Sequence

FIRST_PAGE, LARGEST_PAGE = 16, 256
"""Checkpoints read at once by ``alist``: little for those who stop early, more for those who go on, or said how far."""


class RowSaver(BlockingSaver, BaseCheckpointSaver):
    """A saver that turns the contract's calls into requests and pages of rows."""

    def __init__(self, *, serde: Serializer | None = None) -> None:
        """Make a saver; ``serde`` turns values into bytes, with the safe defaults if it is None."""
        self.serde = Serializer() if serde is None else serde
        self._encoder = Encoder(self.serde)
        self._decoder = Decoder(self.serde)
        self.encode = self._encoder.encode

    @abstractmethod
    async def _submit(self, request: Request) -> None:
        """Make a request durable."""

    @abstractmethod
    async def _load(self, thread_id: str, checkpoint_ns: str, checkpoint_id: str | None) -> Page:
        """Read one checkpoint, after everything sent for its thread."""

    @abstractmethod
    async def _list(self, query: Query) -> Page:
        """Read a page of checkpoints, after everything sent for their threads."""

    def register_types(self, types: Iterable[type]) -> None:
        """Allow values of these types to be rebuilt on load."""
        self.serde.register_types(types)

    async def aget_tuple(self, config: Config) -> CheckpointTuple | None:
        """Return the addressed checkpoint, or the newest of its thread and namespace.

        Raises:
            CorruptDataError: What is stored cannot be read; other checkpoints of the thread still can.
        """
        page = await self._load(*address(config))
        return self._decoder.decode(page.checkpoints[0], page) if page.checkpoints else None

    def alist(
        self,
        config: Config | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 - the contract's public name
        before: Config | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield matching checkpoints, newest id first, read page by page.

        A damaged checkpoint raises CorruptDataError when it is reached; list on with ``before`` set to it.

        Raises:
            ValueError: The limit is negative, or ``before`` has no checkpoint id.
            TypeError: An argument is of another type.
        """
        if limit is not None and not isinstance(limit, int):
            message = f"limit must be a number of checkpoints or None, not {limit!r:.80}."
            raise TypeError(message)
        if limit is not None and limit < 0:
            message = f"limit must not be negative, it is {limit}; use None for no limit."
            raise ValueError(message)
        bound = optional_part(before, "checkpoint_id")
        if before is not None and bound is None:
            message = "before must be the config of a checkpoint, with its checkpoint_id."
            raise ValueError(message)
        query = Query(
            thread_id=optional_part(config, "thread_id"),
            checkpoint_ns=optional_part(config, "checkpoint_ns"),
            checkpoint_id=optional_part(config, "checkpoint_id"),
            before=bound,
            filter=normal_filter(filter),
        )
        return self._pages(query, limit)

    async def _pages(self, query: Query, limit: int | None) -> AsyncIterator[CheckpointTuple]:
        size = FIRST_PAGE if limit is None else LARGEST_PAGE
        remaining = limit
        after = None
        while remaining is None or remaining > 0:
            wanted = size if remaining is None else min(size, remaining)
            page = await self._list(_next_page(query, after, wanted))
            for row in page.checkpoints:
                yield self._decoder.decode(row, page)
            if len(page.checkpoints) < wanted:
                return
            if remaining is not None:
                remaining -= wanted
            after = page.checkpoints[-1][:3]
            size = min(size * 4, LARGEST_PAGE)

    async def aput(
        self,
        config: Config,
        checkpoint: Checkpoint,
        metadata: Mapping[str, Any],
        new_versions: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Store a checkpoint as a child of ``config``'s; durable when this returns.

        Plain values of the config's ``metadata`` and ``configurable`` become metadata. ``new_versions`` names what the
        parent did not have yet; of a checkpoint without a parent that is all.

        Raises:
            ValueError: The checkpoint lacks a part that every one has.
            SerializationError: A value cannot be stored; names the channel. Nothing was saved.
            BackendError: The database refused; nothing was saved.
        """
        where = address(config)
        lacking = [part for part in ("id", "channel_values", "channel_versions") if part not in checkpoint]
        if lacking:
            message = f"The checkpoint lacks {', '.join(map(repr, lacking))}; begin with empty_checkpoint()."
            raise ValueError(message)
        values = checkpoint["channel_values"]
        told = get_checkpoint_metadata(config, {})
        new = new_versions if where.checkpoint_id is not None else checkpoint["channel_versions"]
        unit = Unit(
            where.thread_id,
            where.checkpoint_ns,
            checkpoint=checkpoint,
            parent_id=where.checkpoint_id,
            metadata={**metadata, **{key: each for key, each in told.items() if key not in metadata}},
            changed={channel: values[channel] for channel in new if channel in values},
        )
        await self._submit(self.encode(unit))
        return config_of(where.thread_id, where.checkpoint_ns, checkpoint["id"])

    async def aput_writes(
        self, config: Config, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote against ``config``'s checkpoint; durable when this returns.

        Raises:
            ValueError: The config has no checkpoint id.
            SerializationError: A value cannot be stored; names channel and task. Nothing was saved.
        """
        where = address(config)
        if where.checkpoint_id is None:
            message = "aput_writes needs the checkpoint_id that the writes belong to in its config."
            raise ValueError(message)
        task = TaskWrites(where.checkpoint_id, task_id, task_path, writes)
        await self._submit(self.encode(Unit(where.thread_id, where.checkpoint_ns, [task])))

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete everything of a thread, all namespaces included; units sent before it are deleted too."""
        await self._submit(DeleteThread(name(thread_id, "thread_id")))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy every checkpoint, namespace and pending write of a thread to another.

        What the target already holds stays.
        """
        source, target = name(source_thread_id, "thread_id"), name(target_thread_id, "thread_id")
        reseal = Resealer(self.serde) if self.serde.encrypts else None
        await self._submit(CopyThread(source, target, reseal))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Drop history: all but the newest checkpoint of each namespace, or everything (``delete``).

        Raises:
            ValueError: The strategy is neither of the two.
            CorruptDataError: The newest checkpoint of a thread is damaged, and older ones may not be. Nothing was
                dropped of any thread.
        """
        if strategy not in ("keep_latest", "delete"):
            message = f"Unknown pruning strategy {strategy!r}: use 'keep_latest' or 'delete'."
            raise ValueError(message)
        checked = tuple(name(thread_id, "thread_id") for thread_id in thread_ids)
        if strategy == "keep_latest":
            for thread_id in checked:
                await self._require_whole(thread_id)
        await self._submit(Prune(checked, cast("Literal['keep_latest', 'delete']", strategy)))

    async def adelete_for_runs(self, run_ids: Iterable[str]) -> None:
        """Delete the checkpoints, with their writes, whose metadata carries one of the run ids.

        Their children stay readable: blobs that a remaining checkpoint rests on are kept.
        """
        await self._submit(DeleteRuns(tuple(name(run_id, "run_id") for run_id in run_ids)))

    async def _require_whole(self, thread_id: str) -> None:
        """Refuse to drop what can be read in favour of what cannot; what is only unknown here may well be readable."""
        page = await self._load(thread_id, "", None)
        try:
            for row in page.checkpoints:
                self._decoder.decode(row, page)
        except CorruptDataError as error:
            message = (
                f"Nothing was pruned: the newest checkpoint of thread {thread_id!r} is damaged, and it alone would be "
                f"left. Run the thread on from an older one first, or delete it. {error}"
            )
            refusal = CorruptDataError(message)
            refusal.checkpoint_id = error.checkpoint_id
            raise refusal from error
        except StoredDataError:
            return

    def get_next_version(self, current: Any, channel: None = None) -> str:  # noqa: ARG002 - part of the contract
        """Return a version greater than ``current``, unlike any that another branch makes."""
        count = 0 if current is None else current if isinstance(current, int) else int(str(current).partition(".")[0])
        return f"{count + 1:032}.{random.getrandbits(53):016}"


def _next_page(query: Query, after: tuple[str, str, str] | None, limit: int) -> Query:
    return Query(query.thread_id, query.checkpoint_ns, query.checkpoint_id, query.before, after, query.filter, limit)
