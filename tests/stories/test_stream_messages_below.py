"""The mode ``messages`` with subgraphs, among other modes, and with readers who leave or are slow."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage

from runtime.errors import StreamOverflowError
from runtime.graph import START, MessagesState, StateGraph, push_message
from runtime.streaming.hub import OVERFLOW
from runtime.types import RunnableConfig, TimeoutPolicy
from tests.stories.graphs import CONFIG, chain, collect
from tests.stories.talking import THERE, model, speaker, told, whole

WORDS = [("chunk", "well"), ("chunk", " "), ("chunk", "met")]


def talk(*nodes: str | tuple[str, Any]) -> Any:
    """Return a compiled conversation of nodes in a row."""
    return chain(*nodes, schema=MessagesState).compile()


# ---- subgraphs -------------------------------------------------------------------------------------------------------


async def test_a_subgraphs_tokens_come_only_to_those_who_follow_subgraphs() -> None:
    """The others hear what its node returns, whole."""
    graph = talk(("sub", talk(("inner", speaker()))))
    assert told(await collect(graph.astream(THERE, stream_mode="messages"))) == [("whole", "well met")]
    chunks = await collect(graph.astream(THERE, stream_mode="messages", subgraphs=True))
    assert told([chunk for _, chunk in chunks]) == WORDS
    [ns], metadata = chunks[0][0], chunks[0][1][1]
    assert ns.startswith("sub:")
    assert metadata["checkpoint_ns"] == ns
    assert metadata["langgraph_checkpoint_ns"].startswith(f"{ns}|inner:")
    assert metadata["langgraph_node"] == "inner"


@pytest.mark.parametrize("passed_on", [False, True])
async def test_a_graph_called_in_a_node_tells_each_token_once(passed_on: bool) -> None:
    child = talk(("inner", speaker()))

    async def node(state: Any, config: RunnableConfig) -> Any:
        return await (child.ainvoke(state, config) if passed_on else child.ainvoke(state))

    graph = talk(("outer", node))
    assert told(
        [chunk for _, chunk in await collect(graph.astream(THERE, stream_mode="messages", subgraphs=True))]
    ) == (WORDS)
    assert told(await collect(graph.astream(THERE, stream_mode="messages"))) == [("whole", "well met")]


async def test_a_node_that_streams_a_graph_hears_it() -> None:
    child, inner = talk(("inner", speaker())), list[Any]()

    async def node(state: Any) -> None:
        inner.extend(await collect(child.astream(state, stream_mode="messages")))

    assert await collect(talk(("outer", node)).astream(THERE, stream_mode="messages")) == []
    assert told(inner) == WORDS


async def test_two_readers_of_one_subgraph_each_hear_it_once() -> None:
    child, inner = talk(("inner", speaker())), list[Any]()

    async def node(state: Any) -> dict[str, Any]:
        inner.extend(await collect(child.astream(state, stream_mode=["messages", "updates"])))
        return {"messages": whole("done", identity="d")}

    chunks = await collect(talk(("outer", node)).astream(THERE, stream_mode="messages", subgraphs=True))
    assert told([chunk for mode, chunk in inner if mode == "messages"]) == WORDS
    assert told([chunk for _, chunk in chunks]) == [*WORDS, ("whole", "done")]


# ---- several modes ---------------------------------------------------------------------------------------------------


async def test_tokens_come_before_the_update_that_they_make() -> None:
    graph = talk(("speak", speaker()))
    modes = [mode for mode, _ in await collect(graph.astream(THERE, stream_mode=["updates", "messages", "values"]))]
    assert modes == ["values", "messages", "messages", "messages", "updates", "values"]


async def test_all_of_it_as_parts() -> None:
    graph = talk(("sub", talk(("inner", speaker()))))
    parts = await collect(graph.astream(THERE, stream_mode=["messages", "updates"], subgraphs=True, version="v2"))
    assert [(part["type"], len(part["ns"])) for part in parts] == [
        *[("messages", 1)] * 3,
        ("updates", 1),
        ("updates", 0),
    ]
    assert told([part["data"] for part in parts[:3]]) == WORDS


def test_the_blocking_door_streams_messages() -> None:
    assert told(list(talk(("speak", speaker())).stream(THERE, stream_mode="messages"))) == WORDS
    assert told(talk(("speak", speaker())).invoke(THERE, stream_mode="messages")) == WORDS


# ---- readers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [False, True])
async def test_a_reader_who_leaves_in_the_middle_ends_the_run(saver: Any, sync: bool) -> None:
    graph = chain(("speak", spoken_at_length if sync else spoken_at_leisure), "after", schema=MessagesState).compile(
        saver
    )
    with anyio.fail_after(10):
        async with graph.astream(THERE, CONFIG, stream_mode="messages") as stream:
            async for said, _ in stream:
                assert said.content == "word"
                break
    assert graph.statistics() == ()  # nothing runs any more
    assert (await graph.aget_state(CONFIG)).values["messages"][0].content == "hello?"


def spoken_at_length(_state: Any) -> None:
    """Say much more than a stream holds."""
    for _ in range(1000):
        push_message(AIMessageChunk(content="word", id="m"), state_key=None)


async def spoken_at_leisure(_state: Any) -> None:
    """Speak without end, and wait between words."""
    while True:
        push_message(AIMessageChunk(content="word", id="m"), state_key=None)
        await anyio.lowlevel.checkpoint()


async def test_a_slow_reader_slows_the_speaker_and_loses_nothing() -> None:
    with anyio.fail_after(10):
        async with talk(("speak", spoken_at_length)).astream(THERE, stream_mode="messages") as stream:
            assert len([chunk async for chunk in stream]) == 1000
            assert stream.statistics().peak <= stream.statistics().capacity + 1


async def test_many_messages_at_once_wait_for_room_too() -> None:
    many = [HumanMessage(str(number), id=str(number)) for number in range(600)]
    with anyio.fail_after(10):
        async with talk(("speak", lambda _state: {"messages": many})).astream(THERE, stream_mode="messages") as stream:
            assert [said.id async for said, _ in stream] == [message.id for message in many]
            assert stream.statistics().peak <= stream.statistics().capacity + 1


async def test_a_model_that_never_waits_is_stopped_before_it_fills_the_memory() -> None:
    """An async node that asks a blocking model: nothing else could slow it."""

    async def node(_state: Any) -> dict[str, Any]:
        return {"messages": [model("word " * OVERFLOW).invoke("q")]}

    with anyio.fail_after(10), pytest.raises(StreamOverflowError, match="without ever waiting"):
        await collect(talk(("speak", node)).astream(THERE, stream_mode="messages"))


async def test_a_token_restarts_the_idle_timeout() -> None:
    """What is observable counts as a sign of life, as items of the writer do."""

    async def node(_state: Any) -> dict[str, Any]:
        for number in range(6):
            push_message(AIMessage(str(number), id=str(number)), state_key=None)
            await anyio.sleep(0.05)
        return {"messages": [model().invoke("q")]}

    builder = StateGraph(MessagesState).add_node("speak", node, timeout=TimeoutPolicy(idle_timeout=0.2))
    graph = builder.add_edge(START, "speak").compile()
    assert len(await collect(graph.astream(THERE, stream_mode="messages"))) == 6 + len(WORDS)
