"""The watch over epochs is watched: a writer that has lost its thread, and is let through, is found."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from persistence.contracts.checkpoint import Unit
from persistence.contracts.lease import Lease
from persistence.sqlite import writing
from runtime.graph import START, StateGraph
from tests.torture.appending.epochs import NONE, Epochs
from tests.torture.appending.finding import judged
from tests.torture.appending.graphs import State
from tests.torture.appending.places import SHARED, Kind, Place, places

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def _graph(saver: Any) -> Any:
    async def one(_state: State) -> State:
        return {"items": [1]}

    builder = StateGraph(State)
    builder.add_node("one", one)
    builder.add_edge(START, "one")
    return builder.compile(checkpointer=saver)


async def _twice(place: Place) -> list[Any]:
    """Run a thread twice; return its checkpoints, the newest first."""
    async with place.opened() as saver:
        for first in (10, 20):
            await _graph(saver).ainvoke({"items": [first]}, CONFIG)
        return [one async for one in saver.alist(CONFIG)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHARED)
def test_every_row_is_told_of_by_its_writer_and_by_the_database(kind: Kind) -> None:
    """Runs its own event loop, as the parts do."""
    with places() as made, made.watched(kind) as place:
        stored = anyio.run(_twice, place)
        epochs = made.epochs(place)
    ids = [one.config["configurable"]["checkpoint_id"] for one in reversed(stored)]
    assert [epochs.of("t", own) for own in ids] == [1, 1, 1, 2, 2, 2]
    assert len(epochs) > len(ids)
    assert epochs.troubles("t") == []


def test_a_stale_writer_that_is_let_through_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison is taken out, and a unit shows the epoch before the last."""

    async def write(place: Place, last: Any) -> None:
        own = last.checkpoint["id"]
        later: Any = {**last.checkpoint, "id": f"{own[:-1]}{'f' if own[-1] != 'f' else 'g'}"}
        lease = Lease(1, "somebody", "g")
        unit = Unit("t", "", checkpoint=later, parent_id=own, metadata=last.metadata, expected_head=own, lease=lease)
        async with place.opened() as saver:
            await saver._submit(saver.encode(unit))

    async def said(place: Place, epochs: Epochs) -> list[str]:
        async with place.opened() as saver:
            return await judged(_graph(saver), ["t"], [], epochs)

    with places() as made, made.watched("sqlite") as place:
        last = anyio.run(_twice, place)[0]
        monkeypatch.setattr(writing, "settled", lambda *_: [])
        anyio.run(write, place, last)
        found = anyio.run(said, place, made.epochs(place))
    assert any("was stored under epoch [1] while 2 was in force" in each for each in found), found
    assert any("the epoch falls from 2 to 1" in each for each in found), found


def test_nothing_is_said_where_there_are_no_epochs() -> None:
    assert len(NONE) == 0
    assert NONE.of("t", "1") is None
    assert Epochs({("t", "", "1", "", -1): {1}}, {}).troubles("t") == []
