"""Error handlers: what runs in a node's place when it has failed for good, also after a crash."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from runtime.errors import NodeError, StoredNodeError
from runtime.graph import START, StateGraph
from runtime.types import Command, RetryPolicy, interrupt
from tests.stories.graphs import CONFIG, Log

pytestmark = pytest.mark.anyio


async def bad(_state: Log) -> dict[str, Any]:
    message = "boom"
    raise ValueError(message)


async def after(_state: Log) -> dict[str, Any]:
    return {"log": ["after"]}


async def other(_state: Log) -> dict[str, Any]:
    return {"log": ["other"]}


def graph(saver: Any, handler: Any, **options: Any) -> Any:
    """``bad -> after``, and ``other`` for a handler to go to."""
    builder = StateGraph(Log)
    builder.add_node("bad", bad, error_handler=handler, **options)
    builder.add_node("after", after)
    builder.add_node("other", other)
    builder.add_edge(START, "bad")
    builder.add_edge("bad", "after")
    return builder.compile(checkpointer=saver)


async def test_a_handler_takes_the_nodes_place_and_its_edges_do_not_fire(saver: Any) -> None:
    told: list[NodeError] = []

    async def handler(_state: Log, error: NodeError) -> dict[str, Any]:
        told.append(error)
        return {"log": [f"{error.node}: {error.error}"]}

    compiled = graph(saver, handler)
    assert (await compiled.ainvoke({}, CONFIG))["log"] == ["bad: boom"]
    assert isinstance(told[0].error, ValueError)
    assert (await compiled.aget_state(CONFIG)).next == ()


async def test_a_handler_can_route(saver: Any) -> None:
    async def handler(_state: Log, error: NodeError) -> Command[Any]:
        return Command(update={"log": [error.node]}, goto="other")

    assert (await graph(saver, handler).ainvoke({}, CONFIG))["log"] == ["bad", "other"]


async def test_it_runs_once_retries_are_used_up_and_is_seen_under_its_own_name(saver: Any) -> None:
    async def handler(_state: Log, error: NodeError) -> dict[str, Any]:
        return {"log": [str(error.error)]}

    policy = RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=ValueError)
    chunks = [chunk async for chunk in graph(saver, handler, retry_policy=policy).astream({}, CONFIG)]
    assert chunks == [{"__error_handler__bad": {"log": ["boom"]}}]


async def test_a_handler_that_fails_fails_the_run(saver: Any) -> None:
    async def handler(_state: Log, error: NodeError) -> None:
        message = f"handling {error.node}"
        raise KeyError(message)

    compiled = graph(saver, handler)
    with pytest.raises(KeyError, match="handling bad") as raised:
        await compiled.ainvoke({}, CONFIG)
    assert (await compiled.aget_state(CONFIG)).next == ("bad",)
    assert repr(raised.value.__context__) == "ValueError('boom')"
    told = "Raised by 'handler', the error handler of node 'bad', which had failed with ValueError('boom')"
    assert raised.value.__notes__[0] == told
    assert raised.value.__notes__[1].startswith("During task with name 'bad' and id ")


async def test_a_handler_that_fails_on_its_answer_tells_of_the_failure_that_was_stored(saver: Any) -> None:
    async def handler(_state: Log, error: NodeError) -> None:
        interrupt(error.node)
        raise KeyError

    compiled = graph(saver, handler)
    await compiled.ainvoke({}, CONFIG)
    with pytest.raises(KeyError) as raised:
        await compiled.ainvoke(Command(resume="go on"), CONFIG)
    assert raised.value.__notes__[0].endswith("of node 'bad', which had failed with ValueError('boom')")
    assert isinstance(raised.value.__context__, StoredNodeError)


async def test_what_a_failing_handler_was_called_for_goes_under_what_it_raised_from() -> None:
    async def handler(_state: Log, error: NodeError) -> None:
        try:
            Path(os.devnull, error.node).read_text()
        except OSError as cause:
            raise KeyError from cause

    with pytest.raises(KeyError) as raised:
        await graph(None, handler).ainvoke({})
    cause = raised.value.__context__
    assert isinstance(cause, OSError)
    assert cause is raised.value.__cause__
    assert repr(cause.__context__) == "ValueError('boom')"


async def test_a_handler_that_raises_what_it_handles_again_or_from_it_keeps_its_links() -> None:
    async def again(_state: Log, error: NodeError) -> None:
        raise error.error

    async def chained(_state: Log, error: NodeError) -> None:
        raise KeyError from error.error

    with pytest.raises(ValueError, match="boom") as raised:
        await graph(None, again).ainvoke({})
    assert raised.value.__context__ is None
    assert len(raised.value.__notes__) == 1
    with pytest.raises(KeyError) as other:
        await graph(None, chained).ainvoke({})
    assert isinstance(other.value.__cause__, ValueError)
    assert other.value.__context__ is None


async def test_a_handler_that_is_no_function_is_named_by_its_class() -> None:
    class Mender:
        async def ainvoke(self, _state: Log) -> None:
            raise KeyError

    with pytest.raises(KeyError) as raised:
        await graph(None, Mender()).ainvoke({})
    assert raised.value.__notes__[0].startswith("Raised by 'Mender', the error handler of node 'bad'")


async def test_a_default_handler_serves_every_node_without_one_of_its_own(saver: Any) -> None:
    async def handler(_state: Log, error: NodeError) -> dict[str, Any]:
        return {"log": [f"default for {error.node}"]}

    builder = StateGraph(Log).set_node_defaults(error_handler=handler)
    builder.add_node("bad", bad).add_edge(START, "bad")
    assert (await builder.compile(checkpointer=saver).ainvoke({}, CONFIG))["log"] == ["default for bad"]


async def test_a_handler_can_ask(saver: Any) -> None:
    async def handler(_state: Log, error: NodeError) -> dict[str, Any]:
        return {"log": [interrupt(f"what about {error.error}?")]}

    compiled = graph(saver, handler)
    (question,) = (await compiled.ainvoke({}, CONFIG))["__interrupt__"]
    assert question.value == "what about boom?"
    assert (await compiled.ainvoke(Command(resume="ignore it"), CONFIG))["log"] == ["ignore it"]


CHILD = """
import os, signal, sys
import anyio
from persistence.sqlite import SqliteSaver
from runtime.errors import NodeError
from runtime.graph import START, StateGraph
from tests.stories.graphs import CONFIG, Log

ledger = open(sys.argv[2], "a")

async def bad(state):
    print("node", file=ledger, flush=True)
    raise ValueError("boom")

async def handler(state, error: NodeError):
    print("handler", file=ledger, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with SqliteSaver(sys.argv[1]) as saver:
        builder = StateGraph(Log).add_node("bad", bad, error_handler=handler).add_edge(START, "bad")
        await builder.compile(checkpointer=saver).ainvoke({}, CONFIG, durability=sys.argv[3])

anyio.run(main)
"""


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_after_a_crash_in_the_handler_the_handler_runs_again_and_not_the_node(
    tmp_path: Path, durability: str
) -> None:
    database, ledger = str(tmp_path / "threads.db"), tmp_path / "ledger"
    child = [sys.executable, "-c", textwrap.dedent(CHILD), database, str(ledger), durability]
    ended = await anyio.run_process(
        child, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, stderr=subprocess.DEVNULL
    )
    assert ended.returncode == -signal.SIGKILL
    assert ledger.read_text().split() == ["node", "handler"]
    ran: list[str] = []

    async def never(_state: Log) -> None:
        ran.append("node")

    async def handler(_state: Log, error: NodeError) -> dict[str, Any]:
        ran.append("handler")
        assert isinstance(error.error, StoredNodeError)
        return {"log": [str(error.error)]}

    async with SqliteSaver(database) as saver:
        builder = StateGraph(Log).add_node("bad", never, error_handler=handler).add_edge(START, "bad")
        result = await builder.compile(checkpointer=saver).ainvoke(None, CONFIG)
    assert result["log"] == ["ValueError('boom')"]
    assert ran == ["handler"]
