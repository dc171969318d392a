"""Looking into a store's file, and meddling with it, as another program might."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any


def ask(path: Path, sql: str, *values: Any) -> list[Any]:
    """Return the rows of a query."""
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute(sql, values).fetchall()


def change(path: Path, *statements: str) -> None:
    """Carry out statements."""
    with closing(sqlite3.connect(path)) as raw, raw:
        for statement in statements:
            raw.execute(statement)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock for writing."""
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        yield
        raw.execute("ROLLBACK")
