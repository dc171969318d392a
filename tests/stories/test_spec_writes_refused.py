"""Writes that cannot be applied fail the run before they are stored; the thread stays readable and repairable."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import msgspec
import pytest
from pydantic import BaseModel

from runtime.errors import InvalidUpdateError
from runtime.types import Durability, Overwrite
from tests.stories.graphs import CONFIG, chain, fan, history

pytestmark = pytest.mark.anyio

every_mode = pytest.mark.parametrize("durability", ["sync", "async", "exit"])


def picky(old: list[Any], new: list[Any]) -> list[Any]:
    """A reducer that refuses one value."""
    if "bad" in new:
        message = "bad value"
        raise ValueError(message)
    return [*old, *new]


class State(TypedDict, total=False):
    a: int
    log: Annotated[list[Any], picky]


class Pair:
    """Two nodes side by side whose writes do not go together, until one is mended."""

    def __init__(self, *writes: Any) -> None:
        self.writes = list(writes)

    def compile(self, saver: Any) -> Any:
        nodes = [(f"n{i}", self.node(i)) for i in range(len(self.writes))]
        return fan(*nodes, first=None, last=None, schema=State).compile(checkpointer=saver)

    def node(self, index: int) -> Any:
        async def run(_state: Any) -> Any:
            return self.writes[index]

        return run


CONFLICTS: dict[str, list[Any]] = {
    "two values for a plain key": [{"a": 1}, {"a": 2}],
    "a reducer that raises": [{"log": ["ok"]}, {"log": ["bad"]}],
    "two overwrites": [{"log": Overwrite([1])}, {"log": Overwrite([2])}],
}


@pytest.mark.parametrize("conflict", list(CONFLICTS))
@every_mode
async def test_the_thread_stays_readable_and_a_mended_program_continues(
    saver: Any, conflict: str, durability: Durability
) -> None:
    story = Pair(*CONFLICTS[conflict])
    graph = story.compile(saver)
    with pytest.raises((InvalidUpdateError, ValueError)):
        await graph.ainvoke({}, CONFIG, durability=durability)

    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next
    assert set(snapshot.next) <= {"n0", "n1"}
    assert await history(graph)

    story.writes = [{}, {}]
    result = await graph.ainvoke(None, CONFIG, durability=durability)
    assert (await graph.aget_state(CONFIG)).next == ()
    assert "bad" not in result["log"]


@pytest.mark.parametrize("conflict", list(CONFLICTS))
async def test_the_thread_can_be_edited_and_given_new_input(saver: Any, conflict: str) -> None:
    story = Pair(*CONFLICTS[conflict])
    graph = story.compile(saver)
    with pytest.raises((InvalidUpdateError, ValueError)):
        await graph.ainvoke({}, CONFIG)
    await graph.aupdate_state(CONFIG, {"a": 7}, as_node="n0")
    assert (await graph.aget_state(CONFIG)).values["a"] == 7
    story.writes = [{"log": ["x"]}, {"log": ["y"]}]
    assert (await graph.ainvoke({}, CONFIG))["log"][-2:] == ["x", "y"]


async def test_an_input_that_cannot_be_applied_leaves_the_thread_usable(saver: Any) -> None:
    graph = chain(("n", lambda _state: {"a": 1}), schema=State).compile(checkpointer=saver)
    with pytest.raises((InvalidUpdateError, ValueError)):
        await graph.ainvoke({"log": ["bad"]}, CONFIG)
    await graph.aget_state(CONFIG)
    assert await graph.ainvoke({"log": ["fine"]}, CONFIG) == {"a": 1, "log": ["fine"]}


async def test_an_update_that_cannot_be_applied_saves_nothing(saver: Any) -> None:
    graph = chain(("n", lambda _state: {"a": 1}), schema=State).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    before = await history(graph)
    with pytest.raises((InvalidUpdateError, ValueError)):
        await graph.aupdate_state(CONFIG, {"log": ["bad"]})
    assert await history(graph) == before


# Validation on write


class Model(BaseModel):
    x: int = 0
    y: int = 10
    log: Annotated[list[str], operator.add] = []


class Record(msgspec.Struct):
    x: int = 0


@dataclass
class Data:
    x: int = 0


async def test_a_pydantic_value_is_validated_when_it_is_written(saver: Any) -> None:
    outputs: list[Any] = [{"x": "notint"}, {"x": "5"}]
    graph = chain(("n", lambda _state: outputs.pop(0)), schema=Model).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="x") as caught:
        await graph.ainvoke({"x": 1}, CONFIG)
    assert "'n'" in str(caught.value) + "\n".join(getattr(caught.value, "__notes__", ()))
    snapshot = await graph.aget_state(CONFIG)
    assert snapshot.next == ("n",)
    assert snapshot.values["x"] == 1
    assert (await graph.ainvoke(None, CONFIG))["x"] == 5


async def test_what_is_stored_is_what_was_validated(saver: Any) -> None:
    graph = chain(("n", lambda _state: {"y": "7"}), schema=Model).compile(checkpointer=saver)
    assert (await graph.ainvoke({"x": "3"}, CONFIG)).items() >= {"x": 3, "y": 7}.items()
    assert (await graph.aget_state(CONFIG)).values.items() >= {"x": 3, "y": 7}.items()
    assert {s.values.get("x") for s in await history(graph) if s.metadata["step"] >= 0} == {3}


async def test_a_wrong_pydantic_input_is_refused(saver: Any) -> None:
    graph = chain(("n", lambda _state: None), schema=Model).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="x"):
        await graph.ainvoke({"x": "notint"}, CONFIG)
    assert (await graph.ainvoke({"x": 1}, CONFIG))["x"] == 1


async def test_a_struct_value_is_validated_when_it_is_written(saver: Any) -> None:
    outputs: list[Any] = [{"x": "notint"}, {"x": 5}]
    graph = chain(("n", lambda _state: outputs.pop(0)), schema=Record).compile(checkpointer=saver)
    with pytest.raises((ValueError, InvalidUpdateError, msgspec.ValidationError)):
        await graph.ainvoke({"x": 1}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("n",)
    assert (await graph.ainvoke(None, CONFIG))["x"] == 5


@pytest.mark.parametrize("schema", [TypedDict("Plain", {"x": int}), Data])
async def test_typed_dict_and_dataclass_state_is_not_validated(saver: Any, schema: Any) -> None:
    graph = chain(("n", lambda _state: {"x": "text"}), schema=schema).compile(checkpointer=saver)
    assert await graph.ainvoke({"x": 1}, CONFIG) == {"x": "text"}


async def test_returning_a_model_instance_writes_the_fields_that_were_set(saver: Any) -> None:
    graph = chain(("n", lambda _state: Model(x=2)), schema=Model).compile(checkpointer=saver)
    result = await graph.ainvoke({"x": 1, "y": 5, "log": ["in"]}, CONFIG)
    assert result == {"x": 2, "y": 5, "log": ["in"]}


async def test_a_field_set_to_its_default_counts_as_set(saver: Any) -> None:
    graph = chain(("n", lambda _state: Model(x=2, y=10)), schema=Model).compile(checkpointer=saver)
    assert (await graph.ainvoke({"x": 1, "y": 5}, CONFIG)).items() >= {"x": 2, "y": 10}.items()
