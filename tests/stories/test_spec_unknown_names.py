"""Names that nothing answers to: a typed error that lists the known ones, before anything is saved."""

import uuid
from typing import Any

import pytest

from runtime.errors import (
    CheckpointNotFoundError,
    ConfigError,
    GraphDefinitionError,
    InvalidUpdateError,
    OrphanedTaskError,
    UnknownInterruptError,
    UnknownNodeError,
    UnknownStreamModeError,
)
from runtime.graph import START, StateGraph
from runtime.types import Command, Send, interrupt
from tests.stories.graphs import CONFIG, Log, chain, history, note, thread

pytestmark = pytest.mark.anyio


class Astray:
    """``src`` leads somewhere unknown until it is mended."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.target = "nope"

    def compile(self, saver: Any) -> Any:
        builder = StateGraph(Log)
        builder.add_node("src", self.src)
        builder.add_node("known", note("known"))
        builder.add_edge(START, "src")
        if self.kind == "branch":
            builder.add_conditional_edges("src", lambda _state: self.target)
        elif self.kind == "branch to a Send":
            builder.add_conditional_edges("src", lambda _state: [Send(self.target, {})])
        return builder.compile(checkpointer=saver)

    async def src(self, _state: Log) -> Any:
        if self.kind == "goto":
            return Command(update={"log": ["src"]}, goto=self.target)
        if self.kind == "goto in a list":
            return Command(update={"log": ["src"]}, goto=["known", self.target])
        if self.kind == "Send":
            return Command(update={"log": ["src"]}, goto=Send(self.target, {}))
        return {"log": ["src"]}


KINDS = ["goto", "goto in a list", "Send", "branch", "branch to a Send"]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_route_to_an_unknown_node_fails_the_run(saver: Any, kind: str) -> None:
    graph = Astray(kind).compile(saver)
    with pytest.raises(UnknownNodeError, match="nope") as caught:
        await graph.ainvoke({}, CONFIG)
    assert "known" in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_of_it_is_saved_and_the_node_runs_again_once_mended(saver: Any, kind: str) -> None:
    story = Astray(kind)
    graph = story.compile(saver)
    with pytest.raises(UnknownNodeError):
        await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    assert (snapshot.next, snapshot.values["log"]) == (("src",), [])
    assert "__pregel_tasks" not in [channel for _t, channel, _v in (await saver.aget_tuple(CONFIG)).pending_writes]
    story.target = "known"
    result = await graph.ainvoke(None, CONFIG)
    assert result["log"] == ["src", "known"]


async def test_a_command_as_input_with_an_unknown_goto(saver: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    before = await history(graph)
    with pytest.raises(UnknownNodeError, match="nope"):
        await graph.ainvoke(Command(update={"a": 1}, goto="nope"), CONFIG)
    assert await history(graph) == before


@pytest.mark.parametrize("option", ["interrupt_before", "interrupt_after"])
async def test_a_breakpoint_at_an_unknown_node(saver: Any, option: str) -> None:
    graph: Any = chain("x").compile(checkpointer=saver)
    with pytest.raises(UnknownNodeError, match="nope"):
        await graph.ainvoke({}, CONFIG, **{option: ["nope"]})
    assert await history(graph) == []


async def test_an_update_as_an_unknown_node(saver: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    with pytest.raises(UnknownNodeError, match="nope") as caught:
        await graph.aupdate_state(CONFIG, {"a": 1}, as_node="nope")
    assert "x" in str(caught.value)
    assert await history(graph) == []


# Questions


def asking(saver: Any) -> Any:
    async def ask(_state: Log) -> dict[str, Any]:
        return {"log": [interrupt("q")]}

    return chain(("ask", ask)).compile(checkpointer=saver)


@pytest.mark.parametrize("with_known", [False, True])
async def test_an_answer_to_an_unknown_question(saver: Any, with_known: bool) -> None:
    graph = asking(saver)
    (question,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    answers = {uuid.uuid4().hex: "yes", **({question.id: "known"} if with_known else {})}
    before = await history(graph)
    with pytest.raises(UnknownInterruptError, match=question.id):
        await graph.ainvoke(Command(resume=answers), CONFIG)
    assert await history(graph) == before
    assert (await graph.aget_state(CONFIG)).interrupts == (question,)
    assert (await graph.ainvoke(Command(resume={question.id: "yes"}), CONFIG))["log"] == ["yes"]


# Checkpoints


def missing() -> dict[str, Any]:
    return {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": str(uuid.uuid4())}}


@pytest.mark.parametrize("thread_exists", [True, False])
async def test_a_checkpoint_that_does_not_exist(saver: Any, thread_exists: bool) -> None:
    graph = chain("x").compile(checkpointer=saver)
    if thread_exists:
        await graph.ainvoke({}, CONFIG)
    before = await history(graph)
    with pytest.raises(CheckpointNotFoundError):
        await graph.aget_state(missing())
    values: list[Any] = [None, {"a": 1}, Command(update={"a": 1})]
    for value in values:
        with pytest.raises(CheckpointNotFoundError):
            await graph.ainvoke(value, missing())
    with pytest.raises(CheckpointNotFoundError):
        await graph.aupdate_state(missing(), {"a": 1}, as_node="x")
    assert await history(graph) == before


async def test_a_checkpoint_of_another_thread_does_not_exist_on_this_one(saver: Any) -> None:
    graph = chain("x").compile(checkpointer=saver)
    await graph.ainvoke({}, {"configurable": {"thread_id": "other"}})
    other = (await graph.aget_state({"configurable": {"thread_id": "other"}})).config["configurable"]["checkpoint_id"]
    with pytest.raises(CheckpointNotFoundError, match=other):
        await graph.aget_state({"configurable": {"thread_id": "t", "checkpoint_id": other}})


# Pending work of a node that is gone


async def test_pending_work_of_a_removed_node_is_an_error(saver: Any) -> None:
    await chain("x", "old").compile(checkpointer=saver, interrupt_before=["old"]).ainvoke({}, CONFIG)
    renamed = chain("x", "new").compile(checkpointer=saver)
    assert (await renamed.aget_state(CONFIG)).next == ("old",)
    with pytest.raises(OrphanedTaskError, match="old"):
        await renamed.ainvoke(None, CONFIG)
    back = chain("x", "old").compile(checkpointer=saver)
    assert (await back.ainvoke(None, CONFIG))["log"] == ["x", "old"]


async def test_pending_sends_to_a_removed_node_are_an_error(saver: Any) -> None:
    def build(name: str, **options: Any) -> Any:
        builder = StateGraph(Log)
        builder.add_node("x", note("x"))
        builder.add_node(name, lambda item: {"log": [f"w{item}"]})
        builder.add_edge(START, "x")
        builder.add_conditional_edges("x", lambda _state: [Send(name, 1)], [name])
        return builder.compile(checkpointer=saver, **options)

    await build("old", interrupt_before=["old"]).ainvoke({}, CONFIG)
    assert (await build("new").aget_state(CONFIG)).next == ("old",)
    with pytest.raises(OrphanedTaskError, match="old"):
        await build("new").ainvoke(None, CONFIG)


async def test_an_alias_leads_old_names_to_new_nodes(saver: Any) -> None:
    await chain("x", "old").compile(checkpointer=saver, interrupt_before=["old"]).ainvoke({}, CONFIG)
    renamed = chain("x", "new").compile(checkpointer=saver, node_aliases={"old": "new"})
    assert (await renamed.aget_state(CONFIG)).next == ("new",)
    assert (await renamed.ainvoke(None, CONFIG))["log"] == ["x", "new"]


@pytest.mark.parametrize("names", ["src", ["src"], ("src",), {"src"}])
@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
async def test_one_breakpoint_needs_no_list(saver: Any, when: str, names: Any) -> None:
    builder = chain("src", "b")
    graph = builder.compile(checkpointer=saver)
    await graph.ainvoke({"log": []}, CONFIG, **{when: names})
    stops = (await graph.aget_state(CONFIG)).next
    assert stops == (("src",) if when == "interrupt_before" else ("b",))
    compiled = builder.compile(checkpointer=saver, **{when: names})
    await compiled.ainvoke({"log": []}, thread("compiled"))
    assert (await compiled.aget_state(thread("compiled"))).next == stops


@pytest.mark.parametrize("names", [5, [5], ["src", None]])
@pytest.mark.parametrize("when", ["interrupt_before", "interrupt_after"])
async def test_a_breakpoint_that_is_no_name(names: Any, when: Any) -> None:
    builder = chain("src")
    with pytest.raises(ConfigError, match=f"{when} must be"):
        builder.compile(**{when: names})
    with pytest.raises(ConfigError, match=f"{when} must be"):
        await builder.compile().ainvoke({}, **{when: names})


@pytest.mark.parametrize("goto", [5, None, {5}, [["src"]]])
async def test_a_goto_that_is_no_name(saver: Any, goto: Any) -> None:
    graph = chain(("src", lambda _state: Command(goto=goto))).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="expected a node name or Send, got"):
        await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("src",)


@pytest.mark.parametrize(
    ("goto", "meant"),
    [("END", "from runtime.graph import END"), ("scr", "Did you mean 'src'?"), ("far away", "Known nodes: src.")],
)
async def test_a_goto_by_a_name_that_is_nearly_right(goto: str, meant: str) -> None:
    graph = chain(("src", lambda _state: Command(goto=goto))).compile()
    with pytest.raises(UnknownNodeError) as raised:
        await graph.ainvoke({})
    assert str(raised.value).endswith(meant if meant.endswith((".", "?")) else f"{meant}.")


@pytest.mark.parametrize("name", [5, ["src"], ("src",)])
async def test_an_update_as_what_is_no_name(saver: Any, name: Any) -> None:
    graph = chain("src").compile(checkpointer=saver)
    with pytest.raises(UnknownNodeError, match="does not exist. Known nodes"):
        await graph.aupdate_state(CONFIG, {"log": []}, as_node=name)


@pytest.mark.parametrize("mode", [5, [5], [["values"]]])
async def test_a_stream_mode_that_is_no_name(mode: Any) -> None:
    with pytest.raises(UnknownStreamModeError, match="Known modes"):
        await chain("src").compile().ainvoke({}, stream_mode=mode)


@pytest.mark.parametrize("tags", ["x", 5])
async def test_tags_that_are_no_list(tags: Any) -> None:
    with pytest.raises(ConfigError, match="a list of strings"):
        await chain("src").compile().ainvoke({}, {"tags": tags})


@pytest.mark.parametrize("name", ["", "a|b", "a:b", "a\0", "\ud800"])
def test_a_name_that_no_database_can_key_on(name: str) -> None:
    with pytest.raises(GraphDefinitionError, match="no valid node name"):
        StateGraph(Log).add_node(name, note("n"))
