"""SqliteSaver: checkpoints in one file on this machine, shared by any number of runs and processes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from persistence.sqlite.backend import SqliteBackend
from persistence.sqlite.opening import path_of
from persistence.writer.limits import DEFAULT_LIMITS, Limits
from persistence.writer.saver import GroupCommitSaver

if TYPE_CHECKING:
    from persistence.serde.serializer import Serializer
    from persistence.sqlite.opening import Synchronous


class SqliteSaver(GroupCommitSaver):
    """Keeps checkpoints in an SQLite file in write-ahead mode.

    With ``synchronous="FULL"``, the default, what was acknowledged survives the loss of power. ``"NORMAL"`` survives a
    crash of the process only and saves an fsync per commit. Opening creates or migrates the tables.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        serde: Serializer | None = None,
        limits: Limits = DEFAULT_LIMITS,
        synchronous: Synchronous = "FULL",
        busy_timeout: float = 5.0,
    ) -> None:
        """Describe a saver; open it with ``async with``.

        ``path`` is a file, ``:memory:`` or a ``file:`` URI. ``busy_timeout`` is how many seconds a commit waits for
        another process that holds the file's lock before it counts as a passing fault.
        """
        if synchronous not in ("NORMAL", "FULL", "EXTRA"):
            message = f"synchronous must be 'NORMAL', 'FULL' or 'EXTRA', not {synchronous!r}."
            raise ValueError(message)
        backend = SqliteBackend(path_of(path), synchronous=synchronous, busy_timeout=busy_timeout)
        super().__init__(backend, serde=serde, limits=limits)

    @classmethod
    def from_conn_string(cls, conn_string: str) -> Self:
        """Return a saver for a path; open it with ``async with``."""
        return cls(conn_string)
