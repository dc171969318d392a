"""The SQL that reads foreign databases, from its .sql files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

_FOLDER = files("persistence.migration") / "sql"
_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)


def queries(file: str) -> Mapping[str, str]:
    """Return a file's named queries: ``-- name --``, a sentence, the statement."""
    parts = _NAME.split((_FOLDER / file).read_text("utf-8"))
    named = zip(parts[1::2], parts[2::2], strict=True)
    return MappingProxyType({name: body.strip().removesuffix(";") for name, body in named})
