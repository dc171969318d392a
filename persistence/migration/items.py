"""Carrying a store's items over, with the times that they were created, changed and will expire at."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final

from persistence.contracts.store import BaseStore, GetOp, Item, PutOp
from persistence.errors import PersistenceError
from persistence.migration.moving import Tally
from persistence.migration.records import ForeignItem, Problem, Source
from persistence.stores.namespaces import checked_for_writing, checked_key, from_column

PAGE: Final = 256
"""Items read at once."""


class Clock:
    """What a store that items are carried to goes by: the time that an item was written at, not now."""

    def __init__(self) -> None:
        """Begin at a time at which nothing has expired."""
        self.now = 0.0

    def __call__(self) -> float:
        """Tell the time in seconds."""
        return self.now


class ItemMover:
    """Carries the items of one source; what the target has of the same age or newer stays."""

    def __init__(
        self,
        source: Source,
        store: BaseStore | None,
        clock: Clock,
        tally: Tally,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Carry to a store that goes by ``clock``; without a store, only look."""
        self._source = source
        self._store = store
        self._clock = clock
        self._tally = tally
        self._now = now

    async def move(self, told: Callable[[], None]) -> None:
        """Carry every item over, telling of each."""
        start = 0
        while page := await self._source.items(start, PAGE):
            start += len(page)
            await self._carry([item for item in page if self._may_pass(item)])
            for _ in page:
                told()

    def _may_pass(self, item: ForeignItem) -> bool:
        """Note what is wrong with an item; tell whether it can be carried. One that has expired is gone."""
        if item.expires_at is not None and item.expires_at <= self._now():
            return False
        try:
            checked_for_writing(from_column(item.namespace))
            checked_key(item.key)
            if isinstance(json.loads(item.value), dict):
                return True
            reason = "its value is no dict"
        except (PersistenceError, ValueError) as error:
            reason = str(error)
        self._tally.problems.append(Problem(None, item.namespace, "", f"item {item.key!r}", reason))
        return False

    async def _carry(self, items: list[ForeignItem]) -> None:
        store = self._store
        if store is None or not items:
            self._tally.items += len(items)
            return
        self._clock.now = 0.0
        there = await store.abatch([GetOp(from_column(item.namespace), item.key, False) for item in items])
        missing = [item for item, held in zip(items, there, strict=True) if not _is_newer(held, item)]
        self._tally.present += len(items) - len(missing)
        for moment, group in groupby(missing, lambda item: item.created_at):
            await self._write(store, moment, list(group))
        self._tally.items += len(missing)

    async def _write(self, store: BaseStore, created_at: float, items: Sequence[ForeignItem]) -> None:
        """Store items that were created at one time: at that time, then at that of their last change."""
        self._clock.now = created_at
        await store.abatch([_put(item, item.ttl if item.updated_at == created_at else None) for item in items])
        changed = [item for item in items if item.updated_at != created_at]
        for moment, group in groupby(sorted(changed, key=lambda item: item.updated_at), lambda item: item.updated_at):
            self._clock.now = moment
            await store.abatch([_put(item, item.ttl) for item in group])
        for item in items:
            if item.ttl is not None and item.expires_at is not None:
                self._clock.now = item.expires_at - item.ttl * 60
                await store.aget(from_column(item.namespace), item.key, refresh_ttl=True)


def _put(item: ForeignItem, ttl: float | None) -> PutOp:
    value: dict[str, Any] = json.loads(item.value)
    return PutOp(from_column(item.namespace), item.key, value, False, ttl)


def _is_newer(held: object, item: ForeignItem) -> bool:
    return isinstance(held, Item) and held.updated_at.timestamp() >= item.updated_at
