"""Which error a caller gets, what it says, and what it belongs to."""

from typing import Any

import anyio
import pytest
from langchain_core.messages import RemoveMessage
from pydantic import BaseModel, ValidationError

from runtime import errors
from runtime.errors import (
    CheckpointNotFoundError,
    ConfigError,
    EmptyInputError,
    GraphBubbleUp,
    GraphDrained,
    GraphInterrupt,
    GraphRecursionError,
    InvalidUpdateError,
    NodeTimeoutError,
    OrphanedTaskError,
    StreamOverflowError,
    UnknownInterruptError,
    UnknownNodeError,
    UnknownStreamModeError,
)
from runtime.graph import END, START, MessagesState, StateGraph
from runtime.runtime import RunControl
from runtime.types import Command, StreamWriter, interrupt
from tests.stories.graphs import CONFIG, Gate, Log, chain, fan, history, note, thread

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (GraphRecursionError, RecursionError),
        (InvalidUpdateError, Exception),
        (UnknownNodeError, InvalidUpdateError),
        (UnknownStreamModeError, ValueError),
        (CheckpointNotFoundError, LookupError),
        (ConfigError, ValueError),
        (NodeTimeoutError, Exception),
        (OrphanedTaskError, Exception),
        (EmptyInputError, Exception),
        (UnknownInterruptError, Exception),
        (GraphInterrupt, GraphBubbleUp),
    ],
)
def test_errors_belong_to_the_builtin_kinds_that_programs_catch(error: type, base: type) -> None:
    assert issubclass(error, base)


def test_a_pause_is_no_exception_that_except_exception_catches() -> None:
    assert not issubclass(GraphBubbleUp, Exception)


async def test_except_exception_does_not_swallow_a_pause(saver: Any) -> None:
    async def ask(_state: Log) -> dict[str, Any]:
        try:
            answer = interrupt("q")
        except Exception:  # noqa: BLE001 - that is the point
            answer = "swallowed"
        return {"log": [answer]}

    graph = chain(("ask", ask)).compile(checkpointer=saver)
    result = await graph.ainvoke({}, CONFIG)
    assert [one.value for one in result["__interrupt__"]] == ["q"]
    assert result["log"] == []


async def test_a_nodes_own_exception_arrives_unchanged_with_a_note(saver: Any) -> None:
    class MyError(Exception):
        pass

    error = MyError("mine")

    async def bad(_state: Any) -> None:
        raise error

    graph = chain("x", ("bad", bad)).compile(checkpointer=saver)
    with pytest.raises(MyError) as caught:
        await graph.ainvoke({}, CONFIG)
    assert caught.value is error
    (task,) = (await graph.aget_state(CONFIG)).tasks
    notes = "\n".join(error.__notes__)
    assert "'bad'" in notes
    assert task.id in notes


async def test_the_note_names_step_and_attempt(saver: Any) -> None:
    gate = Gate()
    gate.open.set()
    graph = chain("x", ("bad", gate.fail)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom") as caught:
        await graph.ainvoke({}, CONFIG)
    notes = "\n".join(caught.value.__notes__).lower()
    assert "step 2" in notes
    assert "attempt 1" in notes


async def test_an_error_raised_twice_by_resuming_is_noted_for_each_task_only_once(saver: Any) -> None:
    gate = Gate()
    gate.open.set()
    graph = chain(("bad", gate.fail)).compile(checkpointer=saver)
    inputs: list[Any] = [{}, None]
    for value in inputs:
        gate.error = ValueError("boom")
        with pytest.raises(ValueError, match="boom") as caught:
            await graph.ainvoke(value, CONFIG)
        assert len([one for one in caught.value.__notes__ if "'bad'" in one]) == 1


async def test_empty_input(saver: Any) -> None:
    class In(Log):
        pass

    graph = chain("n").compile(checkpointer=saver)
    with pytest.raises(EmptyInputError):
        await graph.ainvoke(None, CONFIG)
    assert await history(graph) == []


@pytest.mark.parametrize("wrong", [3, "text", ["x"]])
async def test_input_that_is_no_mapping_is_refused(saver: Any, wrong: Any) -> None:
    graph = chain("n").compile(checkpointer=saver)
    with pytest.raises((TypeError, InvalidUpdateError)):
        await graph.ainvoke(wrong, CONFIG)


async def test_the_recursion_error_names_its_limit(saver: Any) -> None:
    builder = StateGraph(Log)
    builder.add_node("n", note("n"))
    builder.add_edge(START, "n")
    builder.add_edge("n", "n")
    graph = builder.compile(checkpointer=saver)
    with pytest.raises(GraphRecursionError, match="3"):
        await graph.ainvoke({}, {**CONFIG, "recursion_limit": 3})


async def test_a_concurrent_update_names_its_key_and_its_code(saver: Any) -> None:
    graph = fan(("x", lambda _s: {"a": 1}), ("y", lambda _s: {"a": 2})).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="INVALID_CONCURRENT_GRAPH_UPDATE"):
        await graph.ainvoke({}, CONFIG)


async def test_a_bad_return_value_names_its_code(saver: Any) -> None:
    graph = chain(("n", lambda _s: 3)).compile(checkpointer=saver)
    with pytest.raises(InvalidUpdateError, match="INVALID_GRAPH_NODE_RETURN_VALUE"):
        await graph.ainvoke({}, CONFIG)


def test_every_error_of_the_library_has_a_root() -> None:
    root = errors.RuntimeLibraryError
    own = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, Exception)]
    assert len(own) > 10
    assert [one for one in own if not issubclass(one, root)] == []


async def test_a_failed_run_leaves_the_thread_readable_editable_and_runnable(saver: Any) -> None:
    gate = Gate()
    gate.open.set()
    graph = chain("x", ("bad", gate.fail), "y").compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({}, CONFIG)
    assert (await graph.aget_state(CONFIG)).next == ("bad",)
    await graph.aupdate_state(CONFIG, {"log": ["edit"]}, as_node="bad")
    assert (await graph.ainvoke(None, CONFIG))["log"] == ["x", "edit", "y"]
    gate.mended = True
    assert (await graph.ainvoke({"log": ["again"]}, CONFIG))["log"] == ["x", "edit", "y", "again", "x", "bad", "y"]


async def test_a_failure_on_one_thread_is_none_of_anothers_business(saver: Any) -> None:
    gate = Gate()
    gate.open.set()
    graph = chain(("bad", gate.fail)).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="boom"):
        await graph.ainvoke({}, CONFIG)
    gate.mended = True
    assert (await graph.ainvoke({}, thread("other")))["log"] == ["bad"]


async def test_a_branch_that_raises_says_which_node_it_belongs_to(saver: Any) -> None:
    def route(_state: Log) -> str:
        message = "lost"
        raise ZeroDivisionError(message)

    builder = chain("x")
    builder.add_conditional_edges("x", route, {END: END})
    with pytest.raises(ZeroDivisionError, match="lost") as caught:
        await builder.compile(checkpointer=saver).ainvoke({}, CONFIG)
    assert "'x'" in "\n".join(caught.value.__notes__)


class UnspeakableError(Exception):
    """Has no words, and takes none."""

    def __repr__(self) -> str:
        msg = "no repr"
        raise RuntimeError(msg)

    def add_note(self, _note: str) -> None:
        msg = "no notes"
        raise RuntimeError(msg)


def failing(error: BaseException, *, in_thread: bool) -> Any:
    def sync_node(_state: Any) -> None:
        raise error

    async def node(_state: Any) -> None:
        raise error

    return sync_node if in_thread else node


@pytest.mark.parametrize("in_thread", [False, True])
async def test_an_error_that_cannot_be_told_is_still_the_one_that_is_raised(saver: Any, in_thread: bool) -> None:
    builder = fan(
        ("one", failing(UnspeakableError(), in_thread=in_thread)), ("two", failing(UnspeakableError(), in_thread=False))
    )
    graph = builder.compile(saver)
    with pytest.raises(UnspeakableError):
        await graph.ainvoke({}, CONFIG)
    assert "<UnspeakableError, whose repr() raises>" in [task.error for task in (await graph.aget_state(CONFIG)).tasks]


@pytest.mark.parametrize("in_thread", [False, True])
@pytest.mark.parametrize("waits", [False, True])
async def test_a_generator_exit_of_a_node_is_a_failure_and_closes_nothing(
    saver: Any, in_thread: bool, waits: bool
) -> None:
    async def late(_state: Any) -> None:
        await anyio.lowlevel.checkpoint()
        raise GeneratorExit("x")

    node = late if waits and not in_thread else failing(GeneratorExit("x"), in_thread=in_thread)
    graph = chain(("node", node)).compile(saver)
    with pytest.raises(RuntimeError, match=r"A node raised GeneratorExit\('x'\)") as caught:
        await graph.ainvoke({}, CONFIG)
    assert isinstance(caught.value.__cause__, GeneratorExit)
    assert (await graph.aget_state(CONFIG)).next == ("node",)


# What the texts say: where it happened, and what to do


async def test_an_empty_command_says_how_none_is_answered(saver: Any) -> None:
    graph = chain(("ask", _asking)).compile(checkpointer=saver)
    (question,) = (await graph.ainvoke({}, CONFIG))["__interrupt__"]
    with pytest.raises(EmptyInputError, match=r"Command\(resume=\{id: None\}\)"):
        await graph.ainvoke(Command(resume=None), CONFIG)
    assert await graph.ainvoke(Command(resume={question.id: None}), CONFIG) == {"log": [None]}


async def test_an_unknown_question_names_thread_and_way_out(saver: Any) -> None:
    graph = chain(("ask", _asking)).compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    with pytest.raises(
        UnknownInterruptError, match=r"^Thread 't': No pending .* aget_state\(config\).interrupts"
    ) as refused:
        await graph.ainvoke(Command(resume={"0" * 32: 1}), CONFIG)
    assert (refused.value.reason, refused.value.interrupt_ids) == ("not_pending", ("0" * 32,))


async def test_an_answer_to_an_empty_thread_names_it(saver: Any) -> None:
    graph = chain(("ask", _asking)).compile(checkpointer=saver)
    with pytest.raises(EmptyInputError, match="thread 'new' has nothing to resume"):
        await graph.ainvoke(Command(resume=1), thread("new"))


async def test_a_drain_names_the_thread(saver: Any) -> None:
    control = RunControl()
    control.request_drain("deploy")
    with pytest.raises(GraphDrained, match="The run of thread 't' was drained: deploy. Resume it with None"):
        await chain("a").compile(checkpointer=saver).ainvoke({}, CONFIG, control=control)
    with pytest.raises(GraphDrained, match="The run was drained"):
        await chain("a").compile().ainvoke({}, control=control)


async def test_an_unknown_subgraph_names_the_known_ones(saver: Any) -> None:
    graph = chain(("p", chain("s").compile()), "q").compile(checkpointer=saver)
    await graph.ainvoke({}, CONFIG)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "zzz"}}
    with pytest.raises(ValueError, match=r"'zzz' not found .* Nodes that run subgraphs: p\. .*subgraphs=True"):
        await graph.aupdate_state(config, {"log": ["x"]})


async def test_a_flooded_stream_names_the_node() -> None:
    async def flood(_state: Log, writer: StreamWriter) -> None:
        while True:
            writer("x")

    graph = chain(("flood", flood)).compile()
    with pytest.raises(StreamOverflowError, match="Node 'flood': .*without ever waiting"):
        async for _ in graph.astream({}, stream_mode="custom"):
            await anyio.lowlevel.checkpoint()


async def test_the_removal_of_an_unknown_message_names_key_and_way_out(saver: Any) -> None:
    async def forget(_state: MessagesState) -> dict[str, Any]:
        return {"messages": [RemoveMessage(id="9")]}

    graph = chain(("forget", forget), schema=MessagesState).compile(checkpointer=saver)
    with pytest.raises(ValueError, match=r"'9'.*REMOVE_ALL_MESSAGES") as refused:
        await graph.ainvoke({"messages": [("user", "hi")]}, CONFIG)
    assert "'messages'" in " ".join(refused.value.__notes__)


async def _asking(_state: Log) -> dict[str, Any]:
    return {"log": [interrupt("q")]}


async def test_an_input_that_the_schema_does_not_allow_is_told_as_the_input() -> None:
    class State(BaseModel):
        count: int = 0

    graph = StateGraph(State).add_node("n", lambda _state: None).add_edge(START, "n").compile()
    with pytest.raises(ValidationError) as raised:
        await graph.ainvoke({"count": "many"})
    assert raised.value.__notes__[0].startswith("The input has a value that state key 'count' does not allow")
