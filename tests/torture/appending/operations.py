"""What clients did and heard: a log that survives its process, and the operations that are read back from it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tests.crash.ledger import Ledger

Kind = Literal["invoke", "ask", "resume", "go_on", "update", "fork", "cancel", "prune", "delete"]
Outcome = Literal["acknowledged", "refused", "unknown"]


@dataclass(frozen=True)
class Operation:
    """One call on a thread, from the moment before it was made to the moment after it was answered."""

    kind: Kind
    thread: str
    items: tuple[int, ...] = ()
    """What it appends, in order; all of it if it is acknowledged, else a beginning of it or nothing."""
    base: str | None = None
    """The checkpoint that a fork starts from."""
    invoked: int = 0
    """On a clock that all processes of the machine share and nobody can set."""
    ended: int | None = None
    """None if its process died, or was not heard of again."""
    outcome: Outcome = "unknown"
    error: str = ""

    @property
    def acknowledged(self) -> bool:
        return self.outcome == "acknowledged"

    @property
    def refused(self) -> bool:
        """Whether the caller was told that nothing happened."""
        return self.outcome == "refused"

    def over_before(self, moment: int) -> bool:
        return self.ended is not None and self.ended < moment


class Log:
    """Writes operations down, on disk before they begin and once they have ended."""

    def __init__(self, path: Path) -> None:
        self._ledger = Ledger(path)
        self._number = 0

    def invoked(self, operation: Operation) -> int:
        """Note that an operation is about to begin; return its number."""
        self._number += 1
        told = {
            "number": self._number,
            "kind": operation.kind,
            "thread": operation.thread,
            "items": operation.items,
            "base": operation.base,
            "at": time.monotonic_ns(),
        }
        self._ledger.note(json.dumps(told))
        return self._number

    def ended(self, number: int, outcome: Outcome, error: str = "") -> None:
        """Note how it ended."""
        told = {"number": number, "outcome": outcome, "error": error, "at": time.monotonic_ns()}
        self._ledger.note(json.dumps(told))

    def told(self, **facts: Any) -> None:
        """Note something else that the parent wants to know."""
        self._ledger.note(json.dumps({"facts": facts}))

    def close(self) -> None:
        self._ledger.close()


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    whole, _, _cut_off = path.read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def operations(paths: Iterable[Path]) -> list[Operation]:
    """Return the operations of several logs, in the order in which they began."""
    found: list[Operation] = []
    for path in paths:
        begun: dict[int, Operation] = {}
        for line in _lines(path):
            if "kind" in line:
                begun[line["number"]] = Operation(
                    line["kind"], line["thread"], tuple(line["items"]), line["base"], line["at"]
                )
            elif "outcome" in line:
                number = line["number"]
                begun[number] = replace(begun[number], ended=line["at"], outcome=line["outcome"], error=line["error"])
        found += begun.values()
    return sorted(found, key=lambda each: each.invoked)


def buried(history: Iterable[Operation], moment: int) -> list[Operation]:
    """Return the operations of a process that was dead by some moment: what it never heard of is over."""
    return [replace(each, ended=moment) if each.ended is None else each for each in history]


def facts(path: Path) -> dict[str, Any]:
    """Return what else a log says."""
    return {key: value for line in _lines(path) for key, value in line.get("facts", {}).items()}
