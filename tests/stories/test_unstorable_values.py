"""Values that cannot be stored: the error names who wrote them, nothing else is lost, and the thread goes on."""

import operator
from typing import Annotated, Any, TypedDict

import pytest

from persistence.errors import SerializationError
from runtime.types import Command, Durability, interrupt
from tests.stories.graphs import CONFIG, chain, fan, history

every_mode = pytest.mark.parametrize("durability", ["sync", "async", "exit"])


class Everything(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    thing: Any


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside others"])
@every_mode
async def test_a_value_that_cannot_be_stored_is_its_nodes_failure(
    saver: Any, durability: Durability, beside: bool
) -> None:
    """The error names the node, the node's task holds it, and what had finished is kept."""
    given: list[Any] = [object(), 5]

    async def bad(_state: Any) -> Any:
        return {"log": ["bad"], "thing": given.pop(0)}

    async def good(_state: Any) -> Any:
        return {"log": ["good"]}

    shape = fan if beside else chain
    nodes = (("bad", bad), ("good", good)) if beside else (("good", good), ("bad", bad))
    options = {"first": None, "last": None} if beside else {}
    graph = shape(*nodes, schema=Everything, **options).compile(checkpointer=saver)
    with pytest.raises(SerializationError, match="^Node 'bad': The value of channel 'thing'.*cannot be stored"):
        await graph.ainvoke({"log": []}, CONFIG, durability=durability)
    state = await graph.aget_state(CONFIG)
    assert "bad" in state.next
    assert {task.name: "Node 'bad': The value of" in str(task.error) for task in state.tasks}["bad"]
    result = await graph.ainvoke(None, CONFIG, durability=durability)
    assert (sorted(result["log"]), result["thing"]) == (["bad", "good"], 5)


@every_mode
async def test_a_question_that_cannot_be_stored(saver: Any, durability: Durability) -> None:
    given: list[Any] = [lambda: 1, "q"]

    async def good(_state: Any) -> Any:
        return {"log": ["good"]}

    async def ask(_state: Any) -> Any:
        return {"log": [interrupt(given.pop(0) if len(given) == 2 else given[0])]}

    graph = chain(("good", good), ("ask", ask), schema=Everything).compile(checkpointer=saver)
    with pytest.raises(SerializationError, match="^Node 'ask': .*cannot be stored"):
        await graph.ainvoke({"log": []}, CONFIG, durability=durability)
    state = await graph.aget_state(CONFIG)
    assert (state.values, state.next) == ({"log": ["good"]}, ("ask",))
    paused = await graph.ainvoke(None, CONFIG, durability=durability)
    assert [question.value for question in paused["__interrupt__"]] == ["q"]
    with pytest.raises(SerializationError, match="^Node 'ask': .*cannot be stored"):
        await graph.ainvoke(Command(resume=lambda: 1), CONFIG, durability=durability)
    assert [question.value for question in (await graph.aget_state(CONFIG)).interrupts] == ["q"]
    assert await graph.ainvoke(Command(resume="a"), CONFIG, durability=durability) == {"log": ["good", "a"]}


async def test_an_update_that_cannot_be_stored(saver: Any) -> None:
    async def node(_state: Any) -> Any:
        return {"log": ["node"]}

    graph = chain(("node", node), schema=Everything).compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, CONFIG)
    before = await history(graph)
    with pytest.raises(SerializationError, match="^Node 'node': .*cannot be stored"):
        await graph.aupdate_state(CONFIG, {"log": [object()]}, as_node="node")
    assert await history(graph) == before
