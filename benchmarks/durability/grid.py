"""What is varied, in which values, and how much work a sample of each combination does."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MODES = ("exit", "async", "sync")
BACKENDS = ("memory", "sqlite", "postgres", "valkey")
MEGABYTE = 1_000_000
LARGEST_WAVE = 64 * MEGABYTE
"""Bytes that all runs of a cell may write in one superstep: beyond it a cell measures the machine's memory."""
LARGEST_SAMPLE = 96 * MEGABYTE
MOST_STEPS = 20
"""Supersteps of a run, as in the other questions; fewer where there are many runs or large states."""
FEWEST_STEPS = 3
LONGEST_RUN = 100.0
"""Milliseconds that the nodes of a run take together."""
STEPS_TOGETHER = 3_000
"""Supersteps of all concurrent runs in one sample: half a second's work."""


@dataclass(frozen=True)
class Cell:
    """One combination; every mode is measured in it, in turns."""

    backend: str
    state_bytes: int
    node_ms: float
    runs: int

    @property
    def name(self) -> str:
        """The cell in words."""
        return f"{self.backend}, {self.load}, {self.node_ms:g} ms"

    @property
    def load(self) -> str:
        """How much is written by how many."""
        return f"{size(self.state_bytes)}, {many(self.runs)}"

    @property
    def steps(self) -> int:
        """Supersteps of each run."""
        fitting = LARGEST_SAMPLE // (self.state_bytes * self.runs) if self.state_bytes else MOST_STEPS
        short = int(LONGEST_RUN / self.node_ms) if self.node_ms else MOST_STEPS
        return max(FEWEST_STEPS, min(MOST_STEPS, STEPS_TOGETHER // self.runs, fitting, short))

    @property
    def fits(self) -> bool:
        """Whether the cell measures what it means to."""
        return self.state_bytes * self.runs <= LARGEST_WAVE

    @property
    def at(self) -> dict[str, str | float]:
        """The cell as a case's place on the axes of a plot."""
        return {"backend": self.backend, "state": self.state_bytes, "node": self.node_ms, "runs": self.runs}


@dataclass(frozen=True)
class Grid:
    """The values of each axis."""

    backends: tuple[str, ...] = BACKENDS
    modes: tuple[str, ...] = MODES
    state_bytes: tuple[int, ...] = (100,)
    node_ms: tuple[float, ...] = (0.0,)
    runs: tuple[int, ...] = (1, 32)
    sparse: bool = False
    """Whether states vary only where nodes do nothing, nodes only where states are small and runs not at their most."""

    def cells(self) -> Iterator[Cell]:
        """Yield the combinations that fit, one database after the other."""
        return (cell for cell in self._all() if cell.fits)

    def left_out(self) -> list[Cell]:
        """Return the combinations that do not."""
        return [cell for cell in self._all() if not cell.fits]

    def _all(self) -> Iterator[Cell]:
        cells = (Cell(*values) for values in product(self.backends, self.state_bytes, self.node_ms, self.runs))
        return (cell for cell in cells if not self.sparse or self._telling(cell))

    def _telling(self, cell: Cell) -> bool:
        if cell.node_ms == min(self.node_ms):
            return True
        return cell.state_bytes == min(self.state_bytes) and cell.runs < max(self.runs)


SHORT = Grid()
FULL = Grid(state_bytes=(100, 10_000, MEGABYTE), node_ms=(0.0, 1.0, 20.0), runs=(1, 32, 1_000), sparse=True)


def size(count: int) -> str:
    """Return a number of bytes as it is said."""
    for unit, factor in (("MB", MEGABYTE), ("KB", 1_000)):
        if count >= factor:
            return f"{count / factor:g} {unit}"
    return f"{count} B"


def parse_size(text: str) -> int:
    """Read a number of bytes such as ``100``, ``10KB`` or ``1 MB``. Raises ValueError if it is none."""
    words = text.strip().upper().removesuffix("B").strip()
    factor = {"K": 1_000, "M": MEGABYTE}.get(words[-1:], 1)
    number = float(words.rstrip("KM").strip() or "nothing") * factor
    if number < 0 or number != int(number):
        message = f"a state has a whole number of bytes, not {text!r}"
        raise ValueError(message)
    return int(number)


def many(runs: int) -> str:
    """Return how many runs there are at once."""
    return "1 run" if runs == 1 else f"{runs:,} runs"
