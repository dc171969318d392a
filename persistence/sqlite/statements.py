"""The SQL of this backend, read from its .sql files."""

from __future__ import annotations

import re
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_FOLDER = files("persistence.sqlite") / "sql"
_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)
_MIGRATION = re.compile(r"^migration_(\d{4})\.sql$")


def _queries() -> dict[str, str]:
    """Return the named queries: ``-- name --``, a sentence, the statement."""
    parts = _NAME.split((_FOLDER / "queries.sql").read_text("utf-8"))
    return {name: body.strip().removesuffix(";") for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _migrations() -> dict[int, tuple[str, ...]]:
    """Return the statements of each migration by its number, in order."""
    found: dict[int, tuple[str, ...]] = {}
    for file in sorted(_FOLDER.iterdir(), key=lambda entry: entry.name):
        match = _MIGRATION.match(file.name)
        if match is not None:
            # One statement at a time: executescript() would commit the transaction that migrations run in.
            statements = file.read_text("utf-8").split(";\n")
            found[int(match[1])] = tuple(statement for statement in statements if statement.strip())
    return found


QUERIES: Final = MappingProxyType(_queries())
MIGRATIONS: Final = MappingProxyType(_migrations())
