"""Counting work instead of time: what is looked at in a mapping, and how many calls something takes."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, KeysView, Mapping
from contextlib import contextmanager
from typing import Any


class Watched(dict[str, Any]):
    """A dict that remembers which of its keys were asked for; whoever goes through it has asked for all."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        super().__init__(content)
        self.seen: set[str] = set()

    def _all(self) -> None:
        self.seen.update(dict.keys(self))

    def __getitem__(self, key: str) -> Any:
        self.seen.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.seen.add(str(key))
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Look a key up."""
        self.seen.add(key)
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        self._all()
        return super().__iter__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        """Go through all."""
        self._all()
        return super().keys()

    def values(self) -> Any:
        """Go through all."""
        self._all()
        return super().values()

    def items(self) -> Any:
        """Go through all."""
        self._all()
        return super().items()

    def copy(self) -> dict[str, Any]:
        """Go through all."""
        self._all()
        return super().copy()


@contextmanager
def calls() -> Iterator[Callable[[], int]]:
    """Count calls of this thread, of Python functions and of C ones; resuming a coroutine is one as well."""
    counted = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()  # what a collection calls is nobody's work
    sys.setprofile(count)
    try:
        yield lambda: counted
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
