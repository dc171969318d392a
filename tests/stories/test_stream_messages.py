"""The mode ``messages``: tokens of models that nodes call, and messages that nodes return, each told once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import anyio
import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableLambda

from runtime.errors import InvalidUpdateError
from runtime.func import entrypoint, task
from runtime.graph import START, MessagesState, StateGraph, add_messages, push_message
from runtime.types import Command, RetryPolicy, RunnableConfig
from tests.stories.graphs import CONFIG, chain, collect
from tests.stories.talking import THERE, model, speaker, told, whole

WORDS = [("chunk", "well"), ("chunk", " "), ("chunk", "met")]


def talk(*nodes: str | tuple[str, Any]) -> Any:
    """Return a compiled conversation of nodes in a row."""
    return chain(*nodes, schema=MessagesState).compile()


async def heard(graph: Any, given: Any = THERE, config: Any = None, **options: Any) -> list[Any]:
    """Return what the stream of messages tells."""
    return await collect(graph.astream(given, config, stream_mode="messages", **options))


# ---- models ----------------------------------------------------------------------------------------------------------


async def test_tokens_come_as_the_model_says_them_and_the_message_once() -> None:
    """The node returns what the model said; that is no news any more."""
    chunks = await heard(talk(("speak", speaker())))
    assert told(chunks) == WORDS
    assert {said.id for said, _ in chunks} == {"m1"}


async def test_metadata_say_where_the_token_comes_from(saver: Any) -> None:
    config = {"configurable": {"thread_id": "7"}, "tags": ["loud"], "metadata": {"team": "red"}}
    graph = chain(("speak", speaker(tags=["mine"])), schema=MessagesState).compile(saver)
    chunks = await heard(graph, config=config)
    metadata = chunks[0][1]
    ns = metadata["langgraph_checkpoint_ns"]
    assert ns.startswith("speak:")
    assert metadata["checkpoint_ns"] == ns
    assert metadata["ls_model_type"] == "chat"
    assert sorted(metadata["tags"]) == ["loud", "mine"]
    assert {key: value for key, value in metadata.items() if not key.startswith(("ls_", "lc_", "checkpoint"))} == {
        "langgraph_step": 1,
        "langgraph_node": "speak",
        "langgraph_triggers": ("branch:to:speak",),
        "langgraph_path": ("__pregel_pull", "speak"),
        "langgraph_checkpoint_ns": ns,
        "thread_id": "7",
        "team": "red",
        "tags": metadata["tags"],
    }


async def test_what_a_model_is_called_with_does_not_hide_the_node() -> None:
    def node(state: Any) -> dict[str, Any]:
        said = model().invoke(state["messages"], {"metadata": {"own": 1}, "tags": ["here"]})
        return {"messages": [said]}

    chunks = await heard(talk(("speak", node)), config={"tags": ["everywhere"]})
    assert told(chunks) == WORDS
    assert chunks[0][1]["own"] == 1
    assert chunks[0][1]["langgraph_node"] == "speak"
    assert sorted(chunks[0][1]["tags"]) == ["everywhere", "here"]


async def test_the_config_may_be_passed_on_by_hand() -> None:
    def node(state: Any, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [model().invoke(state["messages"], config)]}

    assert told(await heard(talk(("speak", node)))) == WORDS


async def test_an_async_node_may_ask_a_model_that_blocks() -> None:
    async def node(state: Any) -> dict[str, Any]:
        return {"messages": [model().invoke(state["messages"])]}

    assert told(await heard(talk(("speak", node)))) == WORDS


async def test_a_model_that_is_streamed_by_the_node_itself_is_heard_as_well() -> None:
    def node(state: Any) -> dict[str, Any]:
        said = [chunk.content for chunk in model().stream(state["messages"])]
        return {"messages": whole("".join(map(str, said)), identity="m1")}

    assert told(await heard(talk(("speak", node)))) == WORDS


async def test_a_model_in_a_sequence_is_heard() -> None:
    def node(state: Any) -> dict[str, Any]:
        asking = RunnableLambda(lambda given: given["messages"]) | model() | RunnableLambda(lambda said: said)
        return {"messages": list(asking.stream(state))[-1:]}

    assert told(await heard(talk(("speak", node))))[:3] == WORDS


@pytest.mark.parametrize("anyio_backend", [pytest.param(("asyncio", {}), id="asyncio")])
async def test_async_models_are_heard(anyio_backend: Any) -> None:
    """On asyncio alone, which is all that LangChain's async side knows."""

    async def node(state: Any) -> dict[str, Any]:
        return {"messages": [await model().ainvoke(state["messages"])]}

    assert told(await heard(talk(("speak", node)))) == WORDS


async def test_the_tag_nostream_keeps_tokens_out() -> None:
    """As there, what the node returns is told all the same."""
    chunks = await heard(talk(("quiet", speaker(tags=["nostream"])), ("loud", speaker(identity="m2"))))
    assert told(chunks) == [("whole", "well met"), *WORDS]


async def test_a_model_asked_beside_the_answer_is_heard() -> None:
    """Where messages lead to in the state is another matter."""

    def node(state: Any) -> None:
        model("aside").invoke(state["messages"])

    assert told(await heard(talk(("think", node)))) == [("chunk", "aside")]


async def test_a_model_that_fails_is_forgotten() -> None:
    def node(_state: Any) -> dict[str, Any]:
        with pytest.raises(RuntimeError, match="StopIteration"):
            model_without_words().invoke("hello")
        return {"messages": whole("sorry", identity="s")}

    def model_without_words() -> Any:
        silent = model()
        silent.messages = iter(())
        return silent

    assert told(await heard(talk(("speak", node)))) == [("whole", "sorry")]


async def test_nodes_at_once_are_told_apart() -> None:
    builder = StateGraph(MessagesState)
    for name in ("left", "right"):
        builder.add_node(name, speaker(name, name)).add_edge(START, name)
    chunks = await heard(builder.compile())
    assert {(said.content, metadata["langgraph_node"]) for said, metadata in chunks} == {
        ("left", "left"),
        ("right", "right"),
    }


# ---- messages that nodes return --------------------------------------------------------------------------------------


async def test_messages_that_a_node_returns_are_told_with_the_id_that_the_state_gives_them(saver: Any) -> None:
    graph = chain(("speak", lambda _state: {"messages": whole("one", "two")}), schema=MessagesState).compile(saver)
    chunks = await heard(graph, config=CONFIG)
    assert told(chunks) == [("whole", "one"), ("whole", "two")]
    kept = (await graph.aget_state(CONFIG)).values["messages"]
    assert [message.id for message in kept[1:]] == [said.id for said, _ in chunks]


async def test_what_a_node_was_given_is_no_news() -> None:
    def node(state: Any) -> dict[str, Any]:
        return {"messages": [*state["messages"], *whole("new", identity="n")]}

    assert told(await heard(talk(("first", node), ("second", node)), {"messages": [HumanMessage("q", id="q")]})) == [
        ("whole", "new")
    ]


async def test_messages_are_found_in_commands_in_lists_and_in_any_key() -> None:
    @dataclass
    class State:
        messages: Annotated[list[Any], add_messages] = field(default_factory=list)
        last: Any = None

    def commands(_state: State) -> Any:
        return [Command(update={"messages": whole("a", identity="a")}), {"last": AIMessage("b", id="b")}]

    def instance(_state: State) -> Any:
        return State(last=AIMessage("c", id="c"))

    def command(_state: State) -> Any:
        return Command(update={"last": AIMessage("d", id="d")})

    graph = chain(("x", commands), ("y", instance), ("z", command), schema=State).compile()
    assert [text for _, text in told(await heard(graph, {}))] == ["a", "b", "c", "d"]


async def test_plain_values_are_no_messages() -> None:
    said: dict[str, Any] = {"messages": {"role": "assistant", "content": "a dict becomes one later"}}
    assert await heard(talk(("speak", lambda _state: said))) == []


async def test_a_failed_attempt_leaves_its_tokens_and_returns_nothing() -> None:
    attempts: list[int] = []

    def node(_state: Any) -> dict[str, Any]:
        attempts.append(1)
        said = model(f"try{len(attempts)}", f"m{len(attempts)}").invoke("q")
        if len(attempts) == 1:
            msg = "once"
            raise ConnectionError(msg)
        return {"messages": [said, *whole("more", identity="more")]}

    builder = StateGraph(MessagesState)
    builder.add_node("speak", node, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    graph = builder.add_edge(START, "speak").compile()
    assert [text for _, text in told(await heard(graph))] == ["try1", "try2", "more"]


async def test_a_node_that_fails_ends_the_stream_after_its_tokens() -> None:
    def node(_state: Any) -> None:
        model().invoke("q")
        msg = "boom"
        raise ValueError(msg)

    chunks: list[Any] = []
    with pytest.raises(ValueError, match="boom"):
        async for chunk in talk(("speak", node)).astream(THERE, stream_mode="messages"):
            chunks.append(chunk)
    assert told(chunks) == WORDS


# ---- a node's own tokens ---------------------------------------------------------------------------------------------


async def test_a_node_pushes_tokens_of_its_own_making() -> None:
    async def node(_state: Any) -> dict[str, Any]:
        for text in ("to", "ken"):
            push_message(AIMessageChunk(content=text, id="own"), state_key=None)
            await anyio.lowlevel.checkpoint()
        return {"messages": whole("token", identity="own")}

    graph = talk(("speak", node))
    chunks = await heard(graph)
    assert told(chunks) == [("chunk", "to"), ("chunk", "ken")]
    assert chunks[0][1]["langgraph_node"] == "speak"
    assert [message.content for message in (await graph.ainvoke(THERE))["messages"]] == ["hello?", "token"]


async def test_a_pushed_message_is_written_to_the_state() -> None:
    def node(_state: Any) -> dict[str, Any]:
        assert push_message(AIMessage("pushed", id="p")).content == "pushed"
        return {"messages": whole("returned", identity="r")}

    graph = talk(("speak", node))
    assert [text for _, text in told(await heard(graph))] == ["pushed", "returned"]
    assert [message.content for message in (await graph.ainvoke(THERE))["messages"]] == ["hello?", "pushed", "returned"]
    [update] = await collect(graph.astream(THERE))
    assert [list(one) for one in update["speak"]] == [["messages"], ["messages"]]


@pytest.mark.parametrize(
    ("message", "options", "expected", "says"),
    [
        (AIMessage("x"), {}, ValueError, "needs a message with an id"),
        ("plain text", {}, ValueError, "needs a message with an id"),
        (AIMessage("x", id="x"), {"state_key": "talk"}, InvalidUpdateError, "Known keys: messages"),
    ],
)
async def test_what_cannot_be_pushed(message: Any, options: Any, expected: type[Exception], says: str) -> None:
    with pytest.raises(expected, match=says):
        await heard(talk(("speak", lambda _state: push_message(message, **options))))


def test_pushing_needs_a_node() -> None:
    with pytest.raises(RuntimeError, match="push_message"):
        push_message(AIMessage("x", id="x"))


async def test_pushing_where_nobody_listens_only_writes() -> None:
    graph = talk(("speak", lambda _state: {} if push_message(AIMessage("pushed", id="p")) else None))
    assert [message.content for message in (await graph.ainvoke(THERE))["messages"]] == ["hello?", "pushed"]


async def test_a_failed_attempt_does_not_write_what_it_pushed() -> None:
    attempts: list[int] = []

    def node(_state: Any) -> None:
        attempts.append(1)
        push_message(AIMessage(f"try{len(attempts)}", id=f"p{len(attempts)}"))
        if len(attempts) == 1:
            msg = "once"
            raise ConnectionError(msg)

    builder = StateGraph(MessagesState)
    builder.add_node("speak", node, retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
    graph = builder.add_edge(START, "speak").compile()
    assert [message.content for message in (await graph.ainvoke(THERE))["messages"]] == ["hello?", "try2"]


# ---- workflows -------------------------------------------------------------------------------------------------------


async def test_workflows_and_their_tasks_are_heard() -> None:
    @task
    def ask(text: str) -> Any:
        return model(text, text).invoke("q")

    @task
    def plain() -> Any:
        return AIMessage("plain", id="plain")

    @entrypoint()
    async def flow(text: str) -> list[Any]:
        push_message(AIMessage("pushed", id="p"), state_key=None)
        return [await ask(text), await plain(), AIMessage("end", id="end")]

    chunks = await heard(flow, "asked")
    assert told(chunks) == [("whole", "pushed"), ("chunk", "asked"), ("whole", "plain"), ("whole", "end")]
    assert [metadata["langgraph_node"] for _, metadata in chunks] == ["flow", "ask", "plain", "flow"]

    @entrypoint()
    async def writing(_given: Any) -> None:
        push_message(AIMessage("pushed", id="p"))

    with pytest.raises(InvalidUpdateError, match="pass state_key=None"):
        await writing.ainvoke(1)


# ---- callbacks that the caller gave ----------------------------------------------------------------------------------


class Listener(BaseCallbackHandler):
    """A handler as programs write them."""

    run_inline = True

    def __init__(self) -> None:
        self.tokens: list[str] = []

    def on_llm_new_token(self, token: Any, **_: Any) -> None:
        """Note a token."""
        self.tokens.append(token)


async def test_the_callers_handlers_hear_as_well_streamed_or_not() -> None:
    listener = Listener()
    graph = talk(("speak", speaker()))
    assert told(await heard(graph, config={"callbacks": [listener]})) == WORDS
    assert "".join(listener.tokens) == "well met"


async def test_without_a_listener_models_do_not_stream() -> None:
    listener = Listener()
    await talk(("speak", speaker())).ainvoke(THERE, {"callbacks": [listener]})
    assert listener.tokens == []
