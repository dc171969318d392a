"""Each kind of state cell, as a graph sees it step by step."""

import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest

from runtime.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    Topic,
    UntrackedValue,
)
from runtime.errors import InvalidUpdateError
from runtime.graph import START, StateGraph
from runtime.types import Overwrite
from tests.stories.graphs import CONFIG, chain, fan, history

pytestmark = pytest.mark.anyio


def schema(annotation: Any, **others: Any) -> Any:
    """A state with one key ``k`` of the given kind, and a log."""
    return TypedDict("State", {"k": annotation, "log": Annotated[list[str], operator.add], **others}, total=False)


def write(value: Any) -> Any:
    """A node that writes ``value`` to ``k``."""

    async def node(_state: Any) -> dict[str, Any]:
        return {"k": value}

    return node


def read(seen: list[Any]) -> Any:
    """A node that notes what ``k`` holds, or that it is absent."""

    async def node(state: dict[str, Any]) -> dict[str, Any]:
        seen.append(state.get("k", "absent"))
        return {"log": ["read"]}

    return node


def side_by_side(annotation: Any, *values: Any) -> Any:
    """Nodes w0, w1, ... that write in one superstep."""
    nodes = [(f"w{i}", write(value)) for i, value in enumerate(values)]
    return fan(*nodes, first=None, last=None, schema=schema(annotation))


async def folded(annotation: Any, *values: Any, start: Any = None) -> Any:
    """What ``k`` holds after these writes of one superstep."""
    result = await side_by_side(annotation, *values).compile().ainvoke({"log": []} if start is None else {"k": start})
    return result["k"]


# LastValue


async def test_a_plain_key_keeps_the_last_value(saver: Any) -> None:
    seen: list[Any] = []
    nodes = [("r0", read(seen)), ("w1", write(1)), ("r1", read(seen)), ("w2", write(2)), ("r2", read(seen))]
    graph = chain(*nodes, schema=schema(int)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert seen == ["absent", 1, 2]
    assert [s.values.get("k") for s in await history(graph)] == [2, 2, 1, 1, None, None, None]


async def test_two_writes_of_one_superstep_to_a_plain_key_are_refused() -> None:
    with pytest.raises(InvalidUpdateError, match=r"At key 'k'.*one value per step"):
        await folded(int, 1, 2)


async def test_a_channel_class_and_a_channel_instance_are_both_annotations() -> None:
    assert await folded(Annotated[int, LastValue], 1) == 1
    assert await folded(Annotated[int, LastValue(int)], 1) == 1
    assert await folded(Annotated[list, BinaryOperatorAggregate(list, operator.add)], [1], [2]) == [1, 2]


# AnyValue


async def test_any_value_takes_the_last_of_equal_writes() -> None:
    assert await folded(Annotated[int, AnyValue(int)], 7, 7) == 7


async def test_any_value_is_cleared_by_a_step_without_a_write(saver: Any) -> None:
    seen: list[Any] = []
    nodes = [("w", write(7)), ("r1", read(seen)), ("r2", read(seen))]
    graph = chain(*nodes, schema=schema(Annotated[int, AnyValue(int)])).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert seen == [7, "absent"]


# EphemeralValue


async def test_an_ephemeral_value_lives_for_one_step(saver: Any) -> None:
    seen: list[Any] = []
    nodes = [("w", write(7)), ("r1", read(seen)), ("r2", read(seen))]
    graph = chain(*nodes, schema=schema(Annotated[int, EphemeralValue(int)])).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    assert seen == [7, "absent"]
    assert [s.values.get("k") for s in await history(graph)] == [None, None, 7, None, None]


async def test_a_guarded_ephemeral_value_takes_one_write_per_step() -> None:
    with pytest.raises(InvalidUpdateError, match="k"):
        await folded(Annotated[int, EphemeralValue(int)], 1, 2)


async def test_an_unguarded_ephemeral_value_takes_the_last_of_many() -> None:
    assert await folded(Annotated[int, EphemeralValue(int, guard=False)], 1, 2) == 2


# UntrackedValue


async def test_an_untracked_value_is_seen_but_never_stored(saver: Any) -> None:
    seen: list[Any] = []
    nodes = [("w", write(7)), ("r1", read(seen)), ("r2", read(seen))]
    untracked = schema(Annotated[int, UntrackedValue(int)])
    graph = chain(*nodes, schema=untracked).compile(checkpointer=saver, interrupt_before=["r2"])
    await graph.ainvoke({}, CONFIG)
    assert seen == [7]
    assert all("k" not in s.values for s in await history(graph))
    await graph.ainvoke(None, CONFIG)
    assert seen == [7, "absent"]


async def test_an_untracked_value_is_kept_between_steps_of_one_run() -> None:
    seen: list[Any] = []
    nodes = [("w", write(7)), ("r1", read(seen)), ("r2", read(seen))]
    await chain(*nodes, schema=schema(Annotated[int, UntrackedValue(int)])).compile().ainvoke({})
    assert seen == [7, 7]


# Reducers


@pytest.mark.parametrize(
    ("annotation", "writes", "expected"),
    [
        (Annotated[list, operator.add], ([1], [2], [3]), [1, 2, 3]),
        (Annotated[int, operator.add], (1, 2, 3), 6),
        (Annotated[str, operator.add], ("x", "y"), "xy"),
        (Annotated[dict, operator.or_], ({"x": 1}, {"x": 2, "y": 3}), {"x": 2, "y": 3}),
        (Annotated[set, operator.or_], ({1}, {2}), {1, 2}),
        (Annotated[Sequence[int], operator.add], ([1], [2]), [1, 2]),
        (Annotated[list | None, operator.add], ([1], [2]), [1, 2]),
    ],
)
async def test_a_reducer_folds_writes_in_task_order(annotation: Any, writes: tuple[Any, ...], expected: Any) -> None:
    assert await folded(annotation, *writes) == expected


async def test_a_reducer_starts_from_the_empty_value_of_its_type(saver: Any) -> None:
    graph = chain("n", schema=schema(Annotated[int, operator.add])).compile(checkpointer=saver)
    assert (await graph.ainvoke({}, CONFIG))["k"] == 0


async def test_without_an_empty_value_the_first_write_becomes_the_value() -> None:
    calls: list[tuple[Any, Any]] = []

    def reducer(left: Any, right: Any) -> Any:
        calls.append((left, right))
        return left + right

    assert await folded(Annotated[list | None, reducer], [1]) == [1]
    assert calls == []


async def test_a_reducer_sees_the_old_value_first() -> None:
    assert await folded(Annotated[str, lambda old, new: f"({old}|{new})"], "x", "y", start="in") == "(((|in)|x)|y)"


async def test_overwrite_replaces_and_drops_the_other_writes_of_its_step() -> None:
    assert await folded(Annotated[list, operator.add], [1], Overwrite([9]), [2], start=[0]) == [9]


@pytest.mark.parametrize("form", [{"__overwrite__": [9]}, {"type": "__overwrite__", "value": [9]}])
async def test_overwrite_has_plain_forms(form: Any) -> None:
    assert await folded(Annotated[list, operator.add], [1], form, start=[0]) == [9]


async def test_two_overwrites_in_one_step_are_refused() -> None:
    with pytest.raises(InvalidUpdateError):
        await folded(Annotated[list, operator.add], Overwrite([1]), Overwrite([2]), start=[0])


async def test_later_steps_add_to_an_overwritten_value() -> None:
    nodes = [("w1", write([1])), ("o", write(Overwrite([9]))), ("w2", write([2]))]
    graph = chain(*nodes, schema=schema(Annotated[list, operator.add])).compile()
    assert (await graph.ainvoke({"k": [0]}))["k"] == [9, 2]


def test_a_reducer_must_take_two_arguments() -> None:
    with pytest.raises(ValueError, match="Invalid reducer"):
        StateGraph(schema(Annotated[list, lambda one: one]))


# Topic


async def test_a_topic_holds_the_writes_of_the_last_step(saver: Any) -> None:
    seen: list[Any] = []
    nodes = [("w1", write("x")), ("r1", read(seen)), ("w2", write(["y", "z"])), ("r2", read(seen)), ("r3", read(seen))]
    topic = schema(Annotated[list[str], Topic(str)])
    await chain(*nodes, schema=topic).compile(checkpointer=saver).ainvoke({}, CONFIG)
    assert seen == [["x"], ["y", "z"], "absent"]


async def test_an_accumulating_topic_grows_and_keeps_duplicates(saver: Any) -> None:
    seen: list[Any] = []
    nodes = [("w1", write("x")), ("w2", write(["x", "y"])), ("r1", read(seen)), ("r2", read(seen))]
    topic = schema(Annotated[list[str], Topic(str, accumulate=True)])
    await chain(*nodes, schema=topic).compile(checkpointer=saver).ainvoke({}, CONFIG)
    assert seen == [["x", "x", "y"]] * 2


async def test_a_topic_flattens_lists_one_level() -> None:
    assert await folded(Annotated[list, Topic(str)], "a", ["b", ["c"]]) == ["a", "b", ["c"]]


# DeltaChannel


def extend(state: list[Any] | None, writes: Sequence[list[Any]]) -> list[Any]:
    """Append all writes; the same whether they come at once or one by one."""
    return [*(state or []), *(item for one in writes for item in one)]


async def test_a_delta_channel_reads_like_a_reducer_at_every_checkpoint(saver: Any) -> None:
    class State(TypedDict, total=False):
        full: Annotated[list[int], operator.add]
        delta: Annotated[list[int], DeltaChannel(extend)]

    def both(value: int) -> Any:
        return lambda _state: {"full": [value], "delta": [value]}

    graph = chain(*[(f"n{i}", both(i)) for i in range(5)], schema=State).compile(checkpointer=saver)
    result = await graph.ainvoke({"full": [-1], "delta": [-1]}, CONFIG)
    assert result["delta"] == result["full"] == [-1, 0, 1, 2, 3, 4]
    for snapshot in await history(graph):
        assert snapshot.values.get("delta", []) == snapshot.values.get("full", [])


async def test_a_delta_channel_calls_its_reducer_once_for_all_writes_of_a_step() -> None:
    calls: list[Sequence[Any]] = []

    def reducer(state: list[Any] | None, writes: Sequence[list[Any]]) -> list[Any]:
        calls.append(list(writes))
        return extend(state, writes)

    assert await folded(Annotated[list, DeltaChannel(reducer)], [1], [2]) == [1, 2]
    assert [[1], [2]] in calls


# Joins


async def test_a_join_holds_the_names_that_have_arrived(saver: Any) -> None:
    builder = StateGraph(schema(int))
    for name in ("a", "b", "b2", "j"):
        builder.add_node(name, write(0) if name == "j" else lambda _state: None)
    builder.add_edge(START, "a")
    builder.add_edge(START, "b")
    builder.add_edge("b", "b2")
    builder.add_edge(["a", "b2"], "j")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, CONFIG)
    stored = [one async for one in saver.alist(CONFIG)]
    joins = [one.checkpoint["channel_values"].get("join:a+b2:j") for one in reversed(stored)]
    assert [sorted(one or ()) for one in joins] == [[], [], ["a"], ["a", "b2"], []]
