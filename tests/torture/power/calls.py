"""What strace wrote down, line by line, as system calls with when they began and ended."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

MODELLED: Final = ("openat", "close", "write", "pwrite64", "fsync", "fdatasync", "ftruncate", "unlink")
"""The calls with which SQLite and a ledger change files: the disk knows what each does."""

REFUSED: Final[dict[str, tuple[int, ...]]] = {
    **dict.fromkeys(("open", "creat", "openat2", "truncate", "rename", "link", "symlink", "rmdir"), ()),
    **dict.fromkeys(("unlinkat", "renameat", "renameat2", "linkat", "symlinkat"), (0, 1, 2)),
    **dict.fromkeys(
        ("writev", "pwritev", "pwritev2", "fallocate", "sendfile", "vmsplice", "dup", "dup2", "dup3"), (0,)
    ),
    "ioctl": (0,),  # FICLONE and its kin
    "copy_file_range": (0, 2),
    "splice": (0, 2),
    "fcntl": (0,),  # F_DUPFD
    "mmap": (4,),
}
"""Other calls that change files, or give them a second descriptor, with where among the arguments descriptors stand.

The disk does not know what they do, and fails if one of them is made of a file of its folder.
"""

FOREIGN: Final = ("execve", "execveat", "fork", "vfork", "clone", "clone3", "io_uring_setup")
"""Calls after which files are changed by what is not looked at, but for a clone that is a thread."""

TRACED: Final = ",".join((*MODELLED, *(f"?{name}" for name in (*REFUSED, *FOREIGN))))
"""All of them; strace passes over those with a question mark that the machine's kernel has not."""

_CALL = re.compile(r"\d+ +(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>-?\d+|\?).*")
_BEGUN = re.compile(r"(?P<thread>\d+) +(?P<name>\w+)\((?P<arguments>.*?) <unfinished \.\.\.>")
_ENDED = re.compile(r"(?P<thread>\d+) +<\.\.\. \w+ resumed>(?P<arguments>.*)\) += (?P<result>-?\d+|\?).*")
_LEFT = re.compile(r"\d+ +(?:\+\+\+ .* \+\+\+|--- .* ---)")
"""A thread's end, or a signal."""
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
        assert self.texts, f"{self.name} without text: {self.arguments:.80}"
        return self.texts[0]

    @property
    def texts(self) -> list[bytes]:
        """All texts among the arguments."""
        return [bytes.fromhex(found.replace("\\x", "")) for found in _TEXT.findall(self.arguments)]

    @property
    def numbers(self) -> list[int]:
        """All plain numbers among the arguments, in order; a descriptor comes first."""
        return [int(part) for part in _TEXT.sub("", self.arguments).replace(" ", "").split(",") if part.isdigit()]

    def descriptors(self, places: Iterable[int]) -> list[int]:
        """Return the descriptors at these places of the arguments."""
        parts = _TEXT.sub("", self.arguments).replace(" ", "").split(",")
        return [int(parts[place]) for place in places if place < len(parts) and parts[place].isdigit()]

    @property
    def at(self) -> int:
        """When it counts: a descriptor is there once ``openat`` has returned, and gone once ``close`` has begun."""
        return self.ended if self.name == "openat" else self.begun


def read(lines: Iterable[str]) -> list[Call]:
    """Return the calls that succeeded, in the order in which they count."""
    return sorted((call for call in _calls(lines) if call.result >= 0), key=lambda call: call.at)


def _calls(lines: Iterable[str]) -> Iterator[Call]:
    waiting: dict[str, tuple[str, str, int]] = {}
    for number, line in enumerate(lines):
        if whole := _CALL.fullmatch(line):
            if whole["result"] != "?":
                yield Call(whole["name"], whole["arguments"], int(whole["result"]), number, number)
        elif begun := _BEGUN.fullmatch(line):
            waiting[begun["thread"]] = begun["name"], begun["arguments"], number
        elif ended := _ENDED.fullmatch(line):
            name, arguments, start = waiting.pop(ended["thread"])
            if ended["result"] != "?":
                yield Call(name, arguments + ended["arguments"], int(ended["result"]), start, number)
        else:
            assert _LEFT.fullmatch(line), f"strace wrote what is not understood: {line:.200}"
    unended = {name for name, _, _ in waiting.values()}
    assert not unended, f"strace did not write how calls ended: {unended}"
