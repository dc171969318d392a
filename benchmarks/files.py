"""Databases that do not exist yet."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_FILES = itertools.count()


def fresh_path(directory: Path) -> str:
    """Return the path of a database that does not exist yet."""
    return str(directory / f"{next(_FILES)}.db")
