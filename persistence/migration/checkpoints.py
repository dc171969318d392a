"""One foreign checkpoint as a unit, with everything that cannot be carried told at once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import msgspec

from persistence.contracts.checkpoint import Checkpoint, TaskWrites, Unit
from persistence.migration.decoding import ForeignDecoder, Part
from persistence.migration.records import (
    PLAIN,
    DecodedWrite,
    ForeignCheckpoint,
    ForeignWrite,
    Problem,
    Uncarried,
)


class _Facts(msgspec.Struct):
    """What a checkpoint says beside its values."""

    v: int
    ts: str
    updated_channels: list[str] | None
    channel_versions: dict[str, str | int | float] = {}
    versions_seen: dict[str, dict[str, str | int | float]] = {}


class Reading:
    """Decodes one checkpoint and collects what is wrong with it."""

    def __init__(self, decoder: ForeignDecoder, foreign: ForeignCheckpoint) -> None:
        """Look at one checkpoint."""
        self._decoder = decoder
        self._foreign = foreign
        self.problems: list[Problem] = []

    @contextmanager
    def about(self, where: str) -> Iterator[None]:
        """Note what is found inside as a problem there."""
        try:
            yield
        except Uncarried as finding:
            found = self._foreign
            self.problems += [
                Problem(found.thread_id, found.checkpoint_ns, found.checkpoint_id, where, reason)
                for reason in finding.reasons
            ]

    def unit(self) -> Unit | None:
        """Return the checkpoint and the writes against it; None if there are problems."""
        found = self._foreign
        body, values = self._body()
        metadata = self._metadata()
        by_task: dict[tuple[str, str], list[tuple[str, Any]]] = {}
        for write in found.writes:
            with self.about(f"a write to channel {write.channel!r}"):
                value = self._decoder.value(write.typed)
                by_task.setdefault((write.task_id, write.task_path), []).append((write.channel, value))
        if self.problems:
            return None
        checkpoint = cast("Checkpoint", {**body, "id": found.checkpoint_id, "channel_values": values})
        writes = [
            TaskWrites(found.checkpoint_id, task_id, path, written) for (task_id, path), written in by_task.items()
        ]
        return Unit(found.thread_id, found.checkpoint_ns, writes, checkpoint, found.parent_id, metadata)

    def _body(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the checkpoint without its values, and the values."""
        body: dict[str, Any] = {}
        values: dict[str, Any] = {}
        with self.about("the checkpoint"):
            parts = self._parts()
            for channel, typed in {**self._inside(parts), **self._foreign.blobs}.items():
                with self.about(f"channel {channel!r}"):
                    if typed[0] != "empty":
                        values[channel] = self._decoder.value(typed)
            body = {key: self._decoder.value(typed) for key, typed in parts.items()}
            _complete(body, values, self._foreign.checkpoint_id)
        return body, values

    def _parts(self) -> dict[str, Part]:
        kind, data = self._foreign.body
        if kind != PLAIN:
            return self._decoder.parts(self._foreign.body)
        try:
            return {key: ("ready", value) for key, value in json.loads(data).items()}
        except (ValueError, AttributeError) as error:
            msg = f"it is damaged: {error}"
            raise Uncarried(msg) from error

    def _inside(self, parts: dict[str, Part]) -> dict[str, Part]:
        held = parts.pop("channel_values", None)
        return {} if held is None else self._decoder.parts(held)

    def _metadata(self) -> dict[str, Any]:
        with self.about("the metadata"):
            try:
                found = json.loads(self._foreign.metadata or "{}")
            except ValueError as error:
                msg = f"it is damaged: {error}"
                raise Uncarried(msg) from error
            if isinstance(found, dict):
                return found
            msg = "it is no dict"
            raise Uncarried(msg)
        return {}


def decoded(decoder: ForeignDecoder, writes: Sequence[ForeignWrite]) -> list[DecodedWrite]:
    """Return writes with their values; those that cannot be rebuilt are left out, as they are told elsewhere."""
    found = []
    for write in writes:
        try:
            value = decoder.value(write.typed)
        except Uncarried:
            continue
        found.append(DecodedWrite(write.task_id, write.task_path, write.channel, value))
    return found


def _complete(body: dict[str, Any], values: dict[str, Any], checkpoint_id: str) -> None:
    """Add what older versions did not store. Raises Uncarried if it is no checkpoint."""
    body["v"] = body.get("v", 1)
    body["ts"] = body.get("ts", "")
    body["updated_channels"] = body.get("updated_channels")
    try:
        facts = msgspec.convert(body, _Facts)
    except msgspec.ValidationError as error:
        msg = f"it is no checkpoint: {error}"
        raise Uncarried(msg) from error
    body |= msgspec.structs.asdict(facts)
    for channel in values:  # a value without a version would not be found again
        body["channel_versions"].setdefault(channel, f"{0:08d}.{checkpoint_id}")
