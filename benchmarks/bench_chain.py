"""What a superstep costs when nothing is kept."""

from __future__ import annotations

from functools import partial

from benchmarks.chains import Load, timed_chain
from benchmarks.harness import Session, question
from benchmarks.results import STEP

NODES = 20


@question("chain", "a chain of 20 trivial async nodes, no checkpointer")
def chain(session: Session) -> None:
    """Ask it of every side, trio included."""
    measure(session, Load(NODES, session.pick(full=20, quick=10)))


def measure(session: Session, load: Load) -> None:
    """Compare the sides on a chain."""
    contenders = {side.label: partial(side.run, timed_chain, side, load) for side in session.sides}
    session.compare(f"{load.nodes} nodes", STEP, contenders, repeats=9, warmups=2)
