"""What strace wrote down, line by line, as system calls with when they began and ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

TRACED = "openat,close,write,pwrite64,fsync,fdatasync,ftruncate,unlink,rename,fallocate"
"""The calls with which SQLite and a ledger change files. A change by another one is refused by the reader."""

_CALL = re.compile(r"\d+ +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|\?).*")
_BEGUN = re.compile(r"(?P<thread>\d+) +(?P<name>\w+)\((?P<arguments>.*?) <unfinished \.\.\.>")
_ENDED = re.compile(r"(?P<thread>\d+) +<\.\.\. \w+ resumed>(?P<arguments>.*)\) += (?P<result>-?\d+|\?).*")
_TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


class Call(NamedTuple):
    """One call of one thread."""

    name: str
    arguments: str
    result: int
    begun: int
    """Line at which it was made."""
    ended: int
    """Line at which it returned."""

    @property
    def text(self) -> bytes:
        """The first text among the arguments: a path, or what is written."""
        found = _TEXT.search(self.arguments)
        assert found is not None, f"{self.name} without text: {self.arguments:.80}"
        return bytes.fromhex(found[1].replace("\\x", ""))

    @property
    def numbers(self) -> list[int]:
        """All plain numbers among the arguments, in order; a descriptor comes first."""
        return [int(part) for part in _TEXT.sub("", self.arguments).replace(" ", "").split(",") if part.isdigit()]


def read(lines: Iterable[str]) -> list[Call]:
    """Return the calls that succeeded, in the order in which they were made."""
    return sorted((call for call in _calls(lines) if call.result >= 0), key=lambda call: call.begun)


def _calls(lines: Iterable[str]) -> Iterator[Call]:
    waiting: dict[str, tuple[str, str, int]] = {}
    for number, line in enumerate(lines):
        if whole := _CALL.fullmatch(line):
            if whole["result"] != "?":
                yield Call(whole["name"], whole["arguments"], int(whole["result"]), number, number)
        elif begun := _BEGUN.fullmatch(line):
            waiting[begun["thread"]] = begun["name"], begun["arguments"], number
        elif (ended := _ENDED.fullmatch(line)) and ended["result"] != "?":
            name, arguments, start = waiting.pop(ended["thread"])
            yield Call(name, arguments + ended["arguments"], int(ended["result"]), start, number)
