"""The SQL of this backend, read from its .sql files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType
from typing import Final

_FOLDER = files("persistence.postgres") / "sql"
_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)


def queries(file: str) -> Mapping[str, str]:
    """Return a file's named queries: ``-- name --``, a sentence, the statement."""
    parts = _NAME.split((_FOLDER / file).read_text("utf-8"))
    named = zip(parts[1::2], parts[2::2], strict=True)
    return MappingProxyType({name: _statement(body) for name, body in named})


def migrations(prefix: str) -> Mapping[int, str]:
    """Return the script of each migration ``<prefix>_<four digits>.sql`` by its number, in order."""
    numbered = re.compile(rf"^{prefix}_(\d{{4}})\.sql$")
    found: dict[int, str] = {}
    for file in sorted(_FOLDER.iterdir(), key=lambda entry: entry.name):
        match = numbered.match(file.name)
        if match is not None:
            found[int(match[1])] = file.read_text("utf-8")
    return MappingProxyType(found)


def _statement(body: str) -> str:
    """Leave the leading comment out: it would travel with every call that is not prepared."""
    lines = body.strip().splitlines()
    while lines and lines[0].startswith("--"):
        del lines[0]
    return "\n".join(lines).removesuffix(";")


QUERIES: Final = queries("queries.sql")
MIGRATIONS: Final = migrations("migration")
