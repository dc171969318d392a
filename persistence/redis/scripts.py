"""The Lua of this backend, read from its .lua files: texts that never change, whatever they are given."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Final, NamedTuple

_FOLDER = files("persistence.redis") / "lua"


class Script(NamedTuple):
    """A script, and what the server calls it."""

    text: bytes
    digest: str


def script(*names: str) -> Script:
    """Return one script made of some files, in order."""
    text = b"\n".join((_FOLDER / f"{name}.lua").read_bytes() for name in names)
    return Script(text, hashlib.sha1(text, usedforsecurity=False).hexdigest())


STORE: Final = script("keys", "threads", "store")
DELETE: Final = script("keys", "threads", "delete")
TRIM: Final = script("keys", "threads", "trim")
PAGE: Final = script("keys", "threads", "page")
NEWEST_THREADS: Final = script("keys", "threads", "newest_threads")
LIST_THREADS: Final = script("keys", "threads", "list_threads")
SUM_UP: Final = script("keys", "threads", "sum_up")
DUMP: Final = script("keys", "threads", "dump")

FIND_ITEMS: Final = script("keys", "items", "find_items")
READ_ITEMS: Final = script("keys", "items", "read_items")
WRITE_ITEMS: Final = script("keys", "items", "write_items")
SWEEP_ITEMS: Final = script("keys", "items", "sweep_items")

READ_CACHE: Final = script("keys", "cache", "read_cache")
WRITE_CACHE: Final = script("keys", "cache", "write_cache")
CLEAR_CACHE: Final = script("keys", "cache", "clear_cache")
