"""Conditional edges, Send, Command.goto and the step limit."""

import operator
from typing import Annotated, Any, Literal, TypedDict

import pytest

from runtime.errors import GraphRecursionError, InvalidUpdateError
from runtime.graph import END, START, StateGraph
from runtime.managed import IsLastStep, RemainingSteps
from runtime.types import Command, RunnableConfig, Send
from tests.stories.graphs import CONFIG, Log, chain, note

pytestmark = pytest.mark.anyio


def routed(path: Any, path_map: Any = None, *targets: str, update: Any = ()) -> StateGraph:
    """``src`` with a conditional edge, and targets that note themselves."""
    builder = StateGraph(Log)
    builder.add_node("src", lambda _state: update or {"a": 0})
    for name in targets or ("y", "z"):
        builder.add_node(name, note(name))
    builder.add_edge(START, "src")
    builder.add_conditional_edges("src", path, path_map)
    return builder


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("y", ["y"]), (["y", "z"], ["y", "z"]), (("z",), ["z"]), (END, []), ([], []), ([END, "y"], ["y"])],
)
async def test_a_conditional_edge_leads_where_its_path_says(answer: Any, expected: list[str]) -> None:
    assert (await routed(lambda _state: answer).compile().ainvoke({}))["log"] == expected


async def test_an_async_path_and_its_config() -> None:
    seen: list[Any] = []

    async def path(state: Log, config: RunnableConfig) -> str:
        seen.append((state["a"], config["configurable"]["thread_id"]))
        return "y"

    assert (await routed(path).compile().ainvoke({"a": 1}, CONFIG))["log"] == ["y"]
    assert seen == [(0, "t")]


async def test_a_path_map_translates_answers() -> None:
    graph = routed(lambda _state: "left", {"left": "y", "right": "z", "stop": END}).compile()
    assert (await graph.ainvoke({}))["log"] == ["y"]
    graph = routed(lambda _state: "stop", {"left": "y", "right": "z", "stop": END}).compile()
    assert (await graph.ainvoke({}))["log"] == []
    graph = routed(lambda _state: True, {True: "z", False: "y"}).compile()
    assert (await graph.ainvoke({}))["log"] == ["z"]


async def test_a_literal_return_annotation_is_a_path_map() -> None:
    def path(_state: Log) -> Literal["y", "z"]:
        return "z"

    assert (await routed(path).compile().ainvoke({}))["log"] == ["z"]


async def test_a_path_sees_the_state_after_its_own_node() -> None:
    seen: list[Any] = []

    def path(state: Log) -> str:
        seen.append((state["a"], list(state["log"])))
        return END

    await routed(path, update={"a": 2, "log": ["src"]}).compile().ainvoke({"a": 1, "log": ["in"]})
    assert seen == [(2, ["in", "src"])]


async def test_a_path_sees_keys_that_its_node_returned_beside_the_states() -> None:
    seen: list[dict[str, Any]] = []

    async def n(_state: Log) -> dict[str, Any]:
        return {"log": ["n"], "beside": 1}

    def path(state: Any) -> str:
        seen.append(dict(state))
        return END

    builder = StateGraph(Log).add_node("n", n).add_edge(START, "n").add_conditional_edges("n", path)
    assert await builder.compile().ainvoke({}) == {"log": ["n"]}
    assert seen == [{"log": ["n"], "beside": 1}]


async def test_conditional_edges_from_start() -> None:
    builder = StateGraph(Log)
    builder.add_node("y", note("y"))
    builder.add_node("z", note("z"))
    builder.add_conditional_edges(START, lambda state: "y" if state["a"] else "z")
    graph = builder.compile()
    assert (await graph.ainvoke({"a": 1}))["log"] == ["y"]
    assert (await graph.ainvoke({"a": 0}))["log"] == ["z"]


@pytest.mark.parametrize("answer", [None, START])
async def test_a_path_must_name_a_destination(saver: Any, answer: Any) -> None:
    graph = routed(lambda _state: answer).compile(checkpointer=saver)
    with pytest.raises(ValueError, match=r".+"):
        await graph.ainvoke({}, CONFIG)


async def test_a_send_to_end_is_refused(saver: Any) -> None:
    graph = routed(lambda _state: Send(END, {})).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError):
        await graph.ainvoke({}, CONFIG)


# Send


async def test_each_send_is_a_task_with_its_own_input(saver: Any) -> None:
    seen: list[Any] = []

    def work(item: Any) -> dict[str, Any]:
        seen.append(item)
        return {"log": [f"w{item['n']}"]}

    builder = StateGraph(Log)
    builder.add_node("work", work)
    builder.add_node("red", note("red"))
    builder.add_conditional_edges(START, lambda state: [Send("work", {"n": n}) for n in range(state["a"])], ["work"])
    builder.add_edge("work", "red")
    graph = builder.compile(checkpointer=saver)
    assert (await graph.ainvoke({"a": 3}, CONFIG))["log"] == ["w0", "w1", "w2", "red"]
    assert sorted(item["n"] for item in seen) == [0, 1, 2]
    assert all(set(item) == {"n"} for item in seen)


async def test_no_sends_means_nothing_runs() -> None:
    builder = StateGraph(Log)
    builder.add_node("work", note("work"))
    builder.add_conditional_edges(START, lambda _state: [], ["work"])
    assert await builder.compile().ainvoke({"a": 0}) == {"a": 0, "log": []}


async def test_sends_of_several_nodes_follow_node_order() -> None:
    builder = StateGraph(Log)
    for name in ("zeta", "alpha"):
        builder.add_node(name, lambda _state, name=name: Command(goto=[Send("work", f"{name}{i}") for i in (0, 1)]))
        builder.add_edge(START, name)
    builder.add_node("work", lambda item: {"log": [item]})
    assert (await builder.compile().ainvoke({}))["log"] == ["alpha0", "alpha1", "zeta0", "zeta1"]


async def test_names_and_sends_can_be_mixed() -> None:
    builder = StateGraph(Log)
    builder.add_node("src", note("src"))
    builder.add_node("work", lambda item: {"log": [f"w{item}"]})
    builder.add_node("y", note("y"))
    builder.add_edge(START, "src")
    builder.add_conditional_edges("src", lambda _state: ["y", Send("work", 1)])
    assert (await builder.compile().ainvoke({}))["log"] == ["src", "y", "w1"]


async def test_a_sent_task_can_send_on() -> None:
    def work(n: int) -> Command[Any]:
        return Command(update={"log": [str(n)]}, goto=[Send("work", n - 1)] if n else [])

    builder = StateGraph(Log)
    builder.add_node("work", work)
    builder.add_conditional_edges(START, lambda state: Send("work", state["a"]), ["work"])
    assert (await builder.compile().ainvoke({"a": 3}))["log"] == ["3", "2", "1", "0"]


# Command.goto


async def test_goto_adds_to_static_edges() -> None:
    builder = StateGraph(Log)
    builder.add_node("gt", lambda _state: Command(update={"log": ["gt"]}, goto="z"))
    builder.add_node("y", note("y"))
    builder.add_node("z", note("z"))
    builder.add_edge(START, "gt")
    builder.add_edge("gt", "y")
    assert (await builder.compile().ainvoke({}))["log"] == ["gt", "y", "z"]


@pytest.mark.parametrize(
    ("goto", "expected"), [("z", ["gt", "z"]), (["y", "z"], ["gt", "y", "z"]), (END, ["gt"]), ((), ["gt"])]
)
async def test_goto_takes_one_name_or_several(goto: Any, expected: list[str]) -> None:
    builder = StateGraph(Log)
    builder.add_node("gt", lambda _state: Command(update={"log": ["gt"]}, goto=goto))
    builder.add_node("y", note("y"))
    builder.add_node("z", note("z"))
    builder.add_edge(START, "gt")
    assert (await builder.compile().ainvoke({}))["log"] == expected


async def test_a_goto_annotation_does_not_restrict_routing() -> None:
    def gt(_state: Log) -> Command[Literal["y"]]:
        elsewhere: Any = "z"
        return Command(goto=elsewhere)

    builder = StateGraph(Log)
    builder.add_node("gt", gt)
    builder.add_node("y", note("y"))
    builder.add_node("z", note("z"))
    builder.add_edge(START, "gt")
    assert (await builder.compile().ainvoke({}))["log"] == ["z"]


# The step limit


class Counted(TypedDict, total=False):
    n: int
    seen: Annotated[list[Any], operator.add]
    left: RemainingSteps
    last: IsLastStep


def loop(until: int) -> StateGraph:
    builder = StateGraph(Counted)
    builder.add_node("n", lambda state: {"n": state.get("n", 0) + 1, "seen": [(state["left"], state["last"])]})
    builder.add_edge(START, "n")
    builder.add_conditional_edges("n", lambda state: "n" if state["n"] < until else END)
    return builder


@pytest.mark.parametrize("limit", [1, 3, 5])
async def test_a_limit_of_n_runs_n_supersteps_of_nodes(saver: Any, limit: int) -> None:
    graph = loop(100).compile(checkpointer=saver)
    with pytest.raises(GraphRecursionError, match=str(limit)):
        await graph.ainvoke({}, {**CONFIG, "recursion_limit": limit})
    assert (await graph.aget_state(CONFIG)).values["n"] == limit


@pytest.mark.parametrize("limit", [1, 2, 4])
async def test_the_limit_counts_the_same_when_resumed(saver: Any, limit: int) -> None:
    graph = loop(100).compile(checkpointer=saver)
    for round_ in (1, 2, 3):
        with pytest.raises(GraphRecursionError):
            await graph.ainvoke({} if round_ == 1 else None, {**CONFIG, "recursion_limit": limit})
        assert (await graph.aget_state(CONFIG)).values["n"] == limit * round_


async def test_reaching_the_limit_with_nothing_left_to_do_is_success(saver: Any) -> None:
    graph = loop(4).compile(checkpointer=saver)
    assert (await graph.ainvoke({}, {**CONFIG, "recursion_limit": 4}))["n"] == 4
    assert await chain("x", "y").compile().ainvoke({}, {"recursion_limit": 2}) == {"log": ["x", "y"]}


async def test_the_limit_error_is_a_recursion_error() -> None:
    with pytest.raises(RecursionError, match="(?i)recursion limit of 2"):
        await loop(100).compile().ainvoke({}, {"recursion_limit": 2})


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match="recursion_limit"):
        await chain("n").compile().ainvoke({}, {"recursion_limit": limit})


async def test_managed_values_show_the_steps_left(saver: Any) -> None:
    graph = loop(100).compile(checkpointer=saver)
    with pytest.raises(GraphRecursionError):
        await graph.ainvoke({}, {**CONFIG, "recursion_limit": 3})
    seen = (await graph.aget_state(CONFIG)).values["seen"]
    assert [left for left, _last in seen] == sorted((left for left, _last in seen), reverse=True)
    assert [last for _left, last in seen] == [False, False, True]


async def test_managed_values_are_not_state(saver: Any) -> None:
    graph = loop(2).compile(checkpointer=saver)
    assert set(await graph.ainvoke({}, CONFIG)) == {"n", "seen"}
    assert set((await graph.aget_state(CONFIG)).values) == {"n", "seen"}
