"""An append-only file of what a process did, on disk line by line: what a killed process leaves behind."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


class Ledger:
    """The writing end. A line that ``note`` returned from survives whatever happens next."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, *words: object) -> None:
        os.write(self._descriptor, (" ".join(map(str, words)) + "\n").encode())
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass(frozen=True)
class Account:
    """What a ledger says."""

    lines: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, path: Path) -> Account:
        text = path.read_text() if path.exists() else ""
        return cls(tuple(tuple(line.split(" ")) for line in text.splitlines()))

    def all(self, kind: str) -> list[tuple[str, ...]]:
        """Return the lines of a kind, without the kind."""
        return [line[1:] for line in self.lines if line[0] == kind]

    def names(self, kind: str) -> list[str]:
        """Return the first word after the kind, of every line of the kind."""
        return [line[0] for line in self.all(kind)]
