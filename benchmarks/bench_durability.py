"""What each durability costs on each database, under many loads, beside the same graph without a checkpointer."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from benchmarks import peers
from benchmarks.durability import limits
from benchmarks.durability.grid import FULL, SHORT, Cell, Grid
from benchmarks.durability.stepping import measure, stored_bytes
from benchmarks.harness import Session, question
from benchmarks.results import BARE, STEP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.durability.places import Place
    from benchmarks.results import Sample

SMALL = 100
"""Bytes."""
MANY = 1_000
REPEATS = 2
CLOSELY = 5
"""Repeats of a cell with small states, nodes that do nothing and few runs: what other cells are compared with."""


@question("durability", "latency and throughput of a superstep, by mode and database", short=True)
def durability(session: Session) -> None:
    """Ask it over a short or the full grid."""
    over(session, session.pick(full=FULL, quick=SHORT))


def over(session: Session, grid: Grid, sides: Sequence[peers.Side] | None = None) -> None:
    """Measure every mode in every cell of a grid, and what the same bytes cost without an engine."""
    here = {backend: session.places.missing(backend) for backend in grid.backends}
    for absence in filter(None, here.values()):
        session.note(absence)
    cells = [cell for cell in grid.cells() if here[cell.backend] is None]
    session.expect(len(cells))
    for cell in cells:
        with ExitStack() as stack:
            found: dict[str, Callable[[], Sample]] = {}
            for one in sides or [peers.actorgraph()]:
                # A place each: two engines do not share tables.
                found |= contenders(one, cell, stack.enter_context(session.places.fresh(cell.backend)), grid.modes)
            if (cell.node_ms, cell.runs) == (0, 1):
                empty = stack.enter_context(session.places.fresh(cell.backend))
                found |= limits.contenders(empty, session.directory, stored_bytes(cell))
            session.compare(
                cell.name, STEP, found, repeats=repeats(cell), warmups=warmups(cell), at=cell.at
            ).baseline = None
    if grid.left_out():
        session.note(f"left out, as one superstep would write too much: {told(grid.left_out())}")


def contenders(
    side: peers.Side, cell: Cell, place: Place, modes: Sequence[str]
) -> Iterator[tuple[str, Callable[[], Sample]]]:
    """Yield what a side does in a cell: without a checkpointer, then in each mode that it can keep there."""
    whose = "" if side.label == peers.OURS else f"{side.label}: "
    yield f"{whose}{BARE}", partial(side.run, measure, side, cell)
    for mode in modes if place.opens(side) else ():
        yield f"{whose}{mode}", partial(side.run, saving, side, cell, place, mode)


async def saving(side: peers.Side, cell: Cell, place: Place, mode: str) -> Sample:
    """Measure a cell in one mode; opening and closing the saver are not in the timing."""
    async with place.saver(side) as saver:
        return await measure(side, cell, saver, mode)


def repeats(cell: Cell) -> int:
    """Return how often a cell is measured."""
    return CLOSELY if plain(cell) else REPEATS


def warmups(cell: Cell) -> int:
    """Return how often it is run for warmth; each sample has a run that is not timed besides."""
    return int(plain(cell))


def plain(cell: Cell) -> bool:
    """Tell whether a cell is one that others are compared with."""
    return cell.state_bytes <= SMALL and not cell.node_ms and cell.runs < MANY


def told(cells: list[Cell]) -> str:
    """Name cells that differ in database and node time once."""
    return "; ".join(dict.fromkeys(cell.load for cell in cells))
