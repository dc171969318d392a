"""The SQL of this backend, read from its .sql files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_FOLDER = files("persistence.sqlite") / "sql"
_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)


def queries(file: str) -> Mapping[str, str]:
    """Return a file's named queries: ``-- name --``, a sentence, the statement."""
    parts = _NAME.split((_FOLDER / file).read_text("utf-8"))
    named = zip(parts[1::2], parts[2::2], strict=True)
    return MappingProxyType({name: body.strip().removesuffix(";") for name, body in named})


def migrations(prefix: str) -> Mapping[int, tuple[str, ...]]:
    """Return the statements of each migration ``<prefix>_<four digits>.sql`` by its number, in order."""
    numbered = re.compile(rf"^{prefix}_(\d{{4}})\.sql$")
    found: dict[int, tuple[str, ...]] = {}
    for file in sorted(_FOLDER.iterdir(), key=lambda entry: entry.name):
        match = numbered.match(file.name)
        if match is not None:
            # One statement at a time: executescript() would commit the transaction that migrations run in.
            statements = file.read_text("utf-8").split(";\n")
            found[int(match[1])] = tuple(statement for statement in statements if statement.strip())
    return MappingProxyType(found)


QUERIES: Final = queries("queries.sql")
MIGRATIONS: Final = migrations("migration")
