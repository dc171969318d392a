"""Comparing vectors inside SQLite, with the extension sqlite-vec where it is installed and can be loaded.

Many a Python is built without the means to load extensions; the vectors then come out, and numpy or Python compares
them (``stores.ranking``). The answers are the same.
"""

from __future__ import annotations

import logging
import sqlite3
from typing import Any, Final

LOG: Final = logging.getLogger("actorgraph")


def load(connection: sqlite3.Connection) -> bool:
    """Load the extension into a connection, if that can be; return whether it is there. Runs in its thread."""
    allow: Any = getattr(connection, "enable_load_extension", None)
    if allow is None:
        return False
    try:
        import sqlite_vec  # noqa: PLC0415 - optional
    except ImportError:
        return False
    try:
        allow(True)
        try:
            connection.load_extension(sqlite_vec.loadable_path())
        finally:
            allow(False)
        connection.execute("SELECT vec_distance_cosine(x'0000803f', x'0000803f')").fetchone()
    except (sqlite3.Error, OSError) as error:
        LOG.warning("sqlite-vec is installed, but cannot be used: %s. Vectors are compared outside SQLite.", error)
        return False
    return True
