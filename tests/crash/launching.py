"""Cases that run in children, one after the other."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.crash.cases import Case, run_case
from tests.crash.tracing import traced
from tests.crash.zygote import Zygote


class Launcher:
    """Runs cases in children of a zygote."""

    def __init__(self, errors: Path) -> None:
        self._zygote = Zygote(errors, ["tests.crash.cases"])

    def __enter__(self) -> Self:
        self._zygote.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._zygote.__exit__(kind, error, trace)

    def run(self, case: Case) -> bool:
        """Run a case; return whether it was killed. Any other end than that or success is an error."""
        return self._zygote.start(run_case, **asdict(case)).was_killed()

    def run_traced(self, case: Case, options: list[str]) -> bool:
        """Run a case under strace with these options; return whether it was killed."""
        gate = Path(case.gate)
        return traced(lambda: self._zygote.start(run_case, **asdict(case)), gate, options).was_killed()
