"""A folder on a disk that keeps its word and nothing more: what was not synced when the power went may be there or not.

Every write since the last sync of its file is kept, dropped, or torn at sectors of 512 bytes, each by itself and in any
order; so is a change of a file's length. A name is created or removed for sure only once its folder was synced. What a
file never held reads as zeros or as rubbish. A sector that was not written keeps what it held.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from tests.torture.power.calls import FOREIGN, MODELLED, REFUSED, Call

SECTOR: Final = 512
NEVER: Final = 2**62


class Change(NamedTuple):
    """A change of a file: bytes at a place, or a length."""

    begun: int
    ended: int
    offset: int
    data: bytes | None
    """None: the file is cut, or filled up, to ``offset`` bytes."""


@dataclass
class File:
    """One file, whatever its names."""

    original: bytes = b""
    changes: list[Change] = field(default_factory=list)
    syncs: list[tuple[int, int]] = field(default_factory=list)
    """When each sync began and ended."""

    def safe_at(self, change: Change) -> int:
        """Return when a change can no longer be lost: a sync that began after it has ended."""
        return min((ended for begun, ended in self.syncs if begun > change.ended), default=NEVER)


class Naming(NamedTuple):
    """A name that begins or ceases to stand for a file."""

    begun: int
    ended: int
    path: str
    file: File | None


class Disk:
    """What happened to the files below a folder, read off the calls of a run."""

    def __init__(self, folder: Path, calls: Iterable[Call]) -> None:
        """Start from what is in the folder now."""
        self.folder = str(folder)
        self.before = {str(path): File(path.read_bytes()) for path in folder.iterdir() if path.is_file()}
        self.namings: list[Naming] = []
        self.folder_syncs: list[tuple[int, int]] = []
        self.moments: list[int] = []
        """When something of the files was begun or ended: the moments at which a loss makes a difference."""
        self._names = dict(self.before)
        self._open: dict[int, File | str] = {}
        self._modes: dict[int, str] = {}
        """How each was opened: path and flags."""
        for call in calls:
            if call.name in MODELLED:
                getattr(self, f"_{call.name}")(call)
            else:
                self._refuse(call)

    def ledger(self, path: Path, moment: int) -> bytes:
        """Return what was appended to a file whose writer waits for each line."""
        file = self._names.get(str(path), File())
        return b"".join(change.data or b"" for change in file.changes if change.begun <= moment)

    def lose(self, moment: int, chance: random.Random, into: Path) -> None:
        """Write what a power loss at a moment leaves to another folder."""
        keeps = chance.choice([0.0, 0.1, 0.5, 0.9, 1.0])
        for path in dict.fromkeys([*self.before, *(naming.path for naming in self.namings)]):
            file = self._named(path, moment, chance)
            if file is not None:
                Path(into, Path(path).name).write_bytes(_left(file, moment, chance, keeps))

    def _named(self, path: str, moment: int, chance: random.Random) -> File | None:
        """Return the file that a name stands for after the loss."""
        states = [self.before.get(path)]
        least = 0
        for naming in self.namings:
            if naming.path == path and naming.begun <= moment:
                states.append(naming.file)
                if any(begun > naming.ended and ended <= moment for begun, ended in self.folder_syncs):
                    least = len(states) - 1
        return states[chance.randint(least, len(states) - 1)]

    def _refuse(self, call: Call) -> None:
        """Fail at a call of which nobody has said what it does to a disk, if it is of a file here."""
        if call.name in FOREIGN:
            assert "CLONE_THREAD" in call.arguments, f"what {call.name} begins is not looked at"
            return
        known = call.name == "fcntl" and "F_DUPFD" not in call.arguments
        known |= call.name == "mmap" and ("MAP_SHARED" not in call.arguments or self._is_index(call))
        ours = any(number in self._open for number in call.descriptors(REFUSED[call.name]))
        ours |= any(self._is_here(text) for text in call.texts)
        assert known or not ours, f"what {call.name} does to a disk is not known: {call.arguments:.200}"

    def _is_index(self, call: Call) -> bool:
        """Whether a file is the index of a log, which SQLite writes to as memory, and makes anew after a loss."""
        return all(self._modes.get(each, "").partition(" ")[0].endswith("-shm") for each in call.descriptors((4,)))

    def _is_here(self, text: bytes) -> bool:
        return text.startswith(self.folder.encode())

    def _openat(self, call: Call) -> None:
        path = call.text.decode(errors="surrogateescape")
        assert not any(number in self._open for number in call.descriptors((0,))), "nobody opens files by their folder"
        if path != self.folder and not path.startswith(self.folder + "/"):
            return
        assert "O_TRUNC" not in call.arguments, "nobody empties a file by opening it"
        assert "O_TMPFILE" not in call.arguments, "nobody opens files without a name"
        self._modes[call.result] = f"{path} {call.arguments}"
        if path == self.folder:
            self._open[call.result] = path
            return
        if path not in self._names:
            self._name(call, path, File())
        self._open[call.result] = self._names[path]

    def _close(self, call: Call) -> None:
        self._open.pop(call.numbers[0], None)
        self._modes.pop(call.numbers[0], None)

    def _pwrite64(self, call: Call) -> None:
        self._change(call, call.numbers[-1], _written(call))

    def _write(self, call: Call) -> None:
        if call.numbers[0] in self._open:
            assert "O_APPEND" in self._modes[call.numbers[0]], "nobody writes where the last write ended"
            self._change(call, NEVER, _written(call))

    def _ftruncate(self, call: Call) -> None:
        self._change(call, call.numbers[1], None)

    def _fsync(self, call: Call) -> None:
        file = self._open.get(call.numbers[0])
        if isinstance(file, File):
            file.syncs.append((call.begun, call.ended))
        elif file is not None:
            self.folder_syncs.append((call.begun, call.ended))
        if file is not None:
            self.moments += [call.begun, call.ended]

    _fdatasync = _fsync

    def _unlink(self, call: Call) -> None:
        path = call.text.decode(errors="surrogateescape")
        if path.startswith(self.folder + "/"):
            self._name(call, path, None)

    def _name(self, call: Call, path: str, file: File | None) -> None:
        self.namings.append(Naming(call.begun, call.ended, path, file))
        self.moments += [call.begun, call.ended]
        if file is None:
            del self._names[path]
        else:
            self._names[path] = file

    def _change(self, call: Call, offset: int, data: bytes | None) -> None:
        file = self._open.get(call.numbers[0])
        if isinstance(file, File):
            file.changes.append(Change(call.begun, call.ended, offset, data))
            self.moments += [call.begun, call.ended]


def _written(call: Call) -> bytes:
    assert len(call.text) >= call.result, "strace cut what was written"
    return call.text[: call.result]


def _left(file: File, moment: int, chance: random.Random, keeps: float) -> bytes:
    content = bytearray(file.original)
    rubbish = chance.random() < 0.3
    for change in file.changes[: bisect_right(file.changes, moment, key=lambda change: change.begun)]:
        whole = file.safe_at(change) <= moment
        if not whole and chance.random() >= keeps:
            continue
        if change.data is None:
            _resize(content, change.offset, chance, rubbish=False)
            continue
        offset = len(content) if change.offset == NEVER else change.offset
        if offset > len(content):
            _resize(content, offset, chance, rubbish=rubbish)
        if whole or chance.random() < 0.5:
            content[offset : offset + len(change.data)] = change.data
        else:
            _tear(content, offset, change.data, chance, rubbish=rubbish)
    return bytes(content)


def _tear(content: bytearray, offset: int, data: bytes, chance: random.Random, *, rubbish: bool) -> None:
    """Write some sectors of the data: the first few, or any."""
    first = chance.randrange(len(data) // SECTOR + 2) * SECTOR if chance.random() < 0.5 else None
    start = 0
    while start < len(data):
        end = min(len(data), start + SECTOR - (offset + start) % SECTOR)
        if start < first if first is not None else chance.random() < 0.5:
            if offset + start > len(content):
                _resize(content, offset + start, chance, rubbish=rubbish)
            content[offset + start : offset + end] = data[start:end]
        start = end


def _resize(content: bytearray, length: int, chance: random.Random, *, rubbish: bool) -> None:
    missing = length - len(content)
    if missing < 0:
        del content[length:]
    else:
        content += chance.randbytes(missing) if rubbish else bytes(missing)
