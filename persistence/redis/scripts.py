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


STORE: Final = script("threads", "store")
DELETE: Final = script("threads", "delete")
TRIM: Final = script("threads", "trim")
PAGE: Final = script("threads", "page")
DUMP: Final = script("threads", "dump")
