"""Places of the write path where a process can be made to die, passed in the order in which they are reached.

They are put around what exists by replacing it in the process to be killed: nothing of the library knows of them.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterable
from typing import Any

from persistence.contracts.backend import Rows
from persistence.writer.actor import PersistenceActor
from persistence.writer.receipts import Receipt

CHANGING = ("BEGIN", "COMMIT", "CREATE", "DELETE", "INSERT", "PRAGMA JOURNAL_MODE", "ROLLBACK", "UPDATE")


class Failpoints:
    """Counts the places a process passes, and kills it at one of them."""

    def __init__(self, fatal: int, by: signal.Signals = signal.SIGKILL) -> None:
        """Die at the ``fatal``-th place after arming; 0: never. With SIGSTOP it freezes there, and may go on."""
        self.fatal = fatal
        self.by = by
        self.passed = 0
        self.armed = False
        self._lock = threading.Lock()

    def at(self, _place: str) -> None:
        """Pass a place. Nodes, the event loop and the database's thread all do."""
        with self._lock:
            if not self.armed:
                return
            self.passed += 1
            if self.passed == self.fatal:
                # Not an exit: no handler, no finally, no buffer is flushed. The kernel ends the process here.
                os.kill(os.getpid(), self.by)


def watch_statements(points: Failpoints) -> None:
    """Pass a place after every statement that changes something, BEGIN and COMMIT included."""

    class Watched(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:
            return after(sql, super().execute(sql, *parameters))

        def executemany(self, sql: str, rows: Iterable[Any]) -> sqlite3.Cursor:
            return after(sql, super().executemany(sql, rows))

    def after(sql: str, cursor: sqlite3.Cursor) -> sqlite3.Cursor:
        words = sql.lstrip().upper()
        while words.startswith("--"):
            words = words.partition("\n")[2].lstrip()
        if words.startswith(CHANGING):
            points.at(f"after {words}")
        return cursor

    connect = sqlite3.connect

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, **options, factory=Watched)

    sqlite3.connect = connected  # type: ignore[assignment]


def watch_units(points: Failpoints, acknowledged: Callable[[Rows], None]) -> None:
    """Pass a place when a unit is accepted, when its commit has returned, and when its sender has been told."""
    accept, settle = PersistenceActor._accepted, Receipt.settle

    def accepted(actor: PersistenceActor, receipt: Receipt) -> Receipt:
        points.at("unit accepted")
        return accept(actor, receipt)

    def settled(receipt: Receipt, error: BaseException | None = None) -> None:
        request = receipt.request
        points.at("committed, not yet acknowledged")
        settle(receipt, error)
        if error is None and isinstance(request, Rows):
            acknowledged(request)
        points.at("acknowledged")

    setattr(PersistenceActor, "_accepted", accepted)  # noqa: B010 - replaced on purpose
    setattr(Receipt, "settle", settled)  # noqa: B010 - likewise
