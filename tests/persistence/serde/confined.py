"""Reading stored bytes in a process of its own, which is watched and may use little time and memory.

The parent learns of each value how reading it ended. A process that was killed because it took too long, or that died,
is started again behind the value that it was at.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from traceback import walk_stack
from types import CodeType, FrameType
from typing import Any, Final

import msgspec

from persistence.errors import StoredDataError
from persistence.serde.serializer import Typed
from tests.persistence.serde.samples import SAMPLES, registered_serializer

ROOT = Path(__file__).parents[3]
SECONDS: Final = 5
"""Of processor time, for one value of a few kilobytes."""
ROOM: Final = 256 * 2**20
"""Bytes on top of what the process takes before it reads anything."""
GRAVE: Final = frozenset(
    {
        "import", "exec", "compile", "open", "os.system", "os.exec", "os.posix_spawn", "os.fork", "subprocess.Popen",
        "socket.connect", "pickle.find_class", "marshal.loads", "ctypes.dlopen", "code.__new__", "function.__new__",
    }
)  # fmt: skip
"""Events of the interpreter that no stored value may cause. Looking up a time zone opens its file: told apart."""

_STDLIB = sysconfig.get_path("stdlib")
_LIBRARIES: Final = (
    "_collections_abc", "_py_abc", "_weakrefset", "abc", "codecs", "collections", "copy", "dataclasses", "datetime",
    "encodings", "enum", "fractions", "functools", "genericpath", "ipaddress", "ntpath", "numbers", "pathlib",
    "posixpath", "re", "types", "typing", "uuid", "warnings", "weakref", "zoneinfo",
)  # fmt: skip
_CALLABLE: Final = (
    str(ROOT / "persistence"),
    *(f"{_STDLIB}/{name}" for name in _LIBRARIES),
    f"{sysconfig.get_path('purelib')}/numpy",
    f"{sysconfig.get_path('purelib')}/pydantic",
    "<frozen",
)
"""Where Python functions may be called. Instances of registered classes are made without asking the classes."""
_ASKED: Final = frozenset({"__hash__", "__eq__"})
"""Methods of registered classes that a dict or set asks of its keys."""


def outcomes(values: Sequence[Typed] | Sequence[int], child: Sequence[str] = (__name__,)) -> list[str]:
    """Read each value apart; return for each ``value``, ``error NAME``, or a sentence that begins with ``broken``."""
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        given, told = Path(folder, "given"), Path(folder, "told")
        given.write_bytes(msgspec.msgpack.encode(values))
        while len(found) < len(values):
            told.write_bytes(b"")
            ended = subprocess.run(
                [sys.executable, "-m", *child, str(given), str(told), str(len(found))],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                capture_output=True,
                text=True,
                check=False,
            )
            found += told.read_text().splitlines()
            if ended.returncode and len(found) < len(values):
                found.append(f"broken: reading it ended the process ({ended.returncode}) {ended.stderr[-500:]!r}")
    return found


class Watch:
    """What the interpreter and the profiler report while something is watched."""

    def __init__(self) -> None:
        """Begin to listen; an audit hook cannot be taken away, so it is idle unless watching."""
        self.seen: list[str] = []
        self.watching = False
        self._known: dict[CodeType, bool] = {}
        sys.addaudithook(self._audit)

    @contextmanager
    def limited(self) -> Iterator[None]:
        """Listen to the interpreter for a while, and end the process if it takes too much time."""
        self.seen.clear()
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        self.watching = True
        try:
            yield
        finally:
            self.watching = False
            signal.setitimer(signal.ITIMER_PROF, 0)

    def over(self, act: Callable[[], object]) -> str:
        """Do something under watch; return how it ended."""
        outcome = "value"
        try:
            with self.limited():
                sys.setprofile(self._called)
                try:
                    act()
                finally:
                    sys.setprofile(None)
        except StoredDataError as error:
            memory = "MemoryError" in str(error) or isinstance(error.__cause__, MemoryError)
            outcome = f"broken: memory ran out: {error}" if memory else f"error {type(error).__name__}"
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is no typed error
            outcome = f"broken: {type(error).__name__}: {error}"
        return f"broken: it caused {self.seen[:3]}" if self.seen else outcome.replace("\n", " ")[:400]

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if self.watching and event in GRAVE and not _is_zone(event, args):
            self.seen.append(f"{event} {args[:1]!r:.80} from {_callers()}")

    def _called(self, frame: FrameType, event: str, _arg: object) -> None:
        if event != "call":
            return
        code = frame.f_code
        known = self._known.get(code)
        if known is None:
            known = self._known[code] = code.co_filename.startswith(_CALLABLE) or code.co_name in _ASKED or _own(code)
        if not known:
            self.seen.append(f"a call of {code.co_filename}:{code.co_qualname}")


def _callers() -> str:
    """Return who called, innermost first, leaving out this module."""
    # Not with the traceback module: it opens sources, which is such an event itself.
    frames = islice(walk_stack(sys._getframe(2)), 12)
    return " < ".join(f"{frame.f_code.co_filename.rpartition('/')[2]}:{number}" for frame, number in frames)


def _own(code: CodeType) -> bool:
    return code.co_filename == __file__


def _is_zone(event: str, args: tuple[Any, ...]) -> bool:
    return event == "open" and "zoneinfo" in str(args[0])


def confine() -> None:
    """Let this process have little more memory than it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        limit = pages * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def each(arguments: list[str]) -> Iterator[tuple[Any, Callable[[str], None]]]:
    """Yield every value that is left, with what takes down how it ended."""
    given, told, start = arguments
    values = msgspec.msgpack.decode(Path(given).read_bytes())[int(start) :]
    with Path(told).open("a", buffering=1, encoding="utf-8", errors="backslashreplace") as notes:
        for value in values:
            yield value, lambda outcome: print(outcome, file=notes)


def main() -> None:
    """Read the values of a file."""
    serializer = registered_serializer()
    for sample in SAMPLES.values():  # so that what is loaded when first used is loaded
        serializer.loads_typed(serializer.dumps_typed(sample))
    watch = Watch()
    confine()
    for (kind, data), note in each(sys.argv[1:]):
        note(watch.over(lambda kind=kind, data=data: serializer.loads_typed((kind, data))))  # type: ignore[misc]


if __name__ == "__main__":
    main()
