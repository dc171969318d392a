"""What subgraphs keep, on branches of a thread on every backend, begun and gone on with by different savers."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest

from runtime.graph import START, StateGraph
from runtime.types import Command, interrupt
from tests.persistence.backends.graphs import thread

if TYPE_CHECKING:
    from tests.persistence.backends.places import Place

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CONFIG = thread("t")


class State(TypedDict, total=False):
    """What the nodes say."""

    log: Annotated[list[str], operator.add]


class Kept(TypedDict, total=False):
    """What is kept."""

    said: str
    seen: Annotated[list[str], operator.add]


def program(saver: Any) -> Any:
    """Return a graph with a question beside what one subgraph keeps, and another before what a second one does."""

    async def look(state: Kept) -> Kept:
        return {"seen": [state["said"]]}

    builder = StateGraph(Kept).add_node("look", look).add_edge(START, "look")

    def keeper(name: str) -> Any:
        kept = builder.compile(checkpointer=True)

        async def node(state: State) -> State:
            said = {"said": state["log"][-1], "seen": []}
            return {"log": [f"{name}:{'+'.join((await kept.ainvoke(said))['seen'])}"]}

        return node

    def asker(name: str) -> Any:
        async def node(_state: State) -> State:
            return {"log": [f"{name}={interrupt(name)}"]}

        return node

    graph = StateGraph(State).add_node("who", asker("who")).add_node("beside", keeper("beside"))
    graph.add_node("sure", asker("sure")).add_node("then", keeper("then"))
    graph.add_edge(START, "who").add_edge(START, "beside").add_edge(["who", "beside"], "sure").add_edge("sure", "then")
    return graph.compile(checkpointer=saver)


@pytest.mark.parametrize("durability", ["sync", "exit"])
async def test_a_branch_sees_what_was_kept_on_the_way_to_it(place: Place, durability: Any) -> None:
    async def turn(given: Any, config: Any, who: str) -> list[str]:
        for answer in (who, who, None):
            async with place.saver() as saver:
                result = await program(saver).ainvoke(given, config, durability=durability)
            given, config = Command(resume=answer), CONFIG
        said: list[str] = result["log"]
        return said

    asked: list[Any] = []
    for number in range(3):
        async with place.saver() as saver:
            await program(saver).ainvoke({"log": [str(number)]}, CONFIG, durability=durability)
            asked.append(await program(saver).aget_state(CONFIG))
        await turn(Command(resume="A"), CONFIG, "A")
    at = asked[1]
    for who in ("B", "C"):
        (question,) = at.interrupts
        said = await turn(Command(resume={question.id: who}), at.config, who)
        assert said[-4:] == ["beside:0+1", f"who={who}", f"sure={who}", f"then:sure=A+sure={who}"]
