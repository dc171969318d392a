"""What counts as a message, with langchain_core and without, and where messages are looked for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import anyio
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import callbacks
from runtime.context import passing
from runtime.graph import MessagesState, push_message
from runtime.schema import messages as reducer
from runtime.streaming import langchain
from runtime.streaming import messages as module
from runtime.streaming.messages import id_of, identified, is_message, messages_in
from runtime.types import Command, RunnableConfig, interrupt
from tests.stories.graphs import chain, collect

ids = st.lists(st.integers(0, 5), max_size=4)


def forget() -> None:
    """Forget whether langchain_core is there."""
    reducer._langchain.cache_clear()
    module._installed.cache_clear()
    langchain._makers.cache_clear()
    passing._library.cache_clear()
    passing._managers.cache_clear()


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let langchain_core be missing."""
    loaded = [name for name in sys.modules if name.startswith("langchain_core")]
    for name in {*loaded, "langchain_core", "langchain_core.callbacks"}:
        monkeypatch.setitem(sys.modules, name, None)
    forget()
    yield
    monkeypatch.undo()
    forget()


@pytest.fixture(params=["dicts", "langchain"])
def said(request: pytest.FixtureRequest) -> Any:
    """Return what makes a message of a text, as its id too."""
    if request.param == "dicts":
        request.getfixturevalue("alone")
        return lambda text: {"role": "assistant", "content": text, "id": text}
    library = pytest.importorskip("langchain_core.messages")
    return lambda text: library.AIMessage(text, id=text)


def test_what_a_message_is(said: Any) -> None:
    assert is_message(said("a"))
    assert not any(
        is_message(value) for value in (None, "a", 1, [said("a")], {"content": "a"}, {"role": "boss"}, object())
    )


def test_where_messages_are_looked_for(said: Any) -> None:
    @dataclass
    class Data:
        x: Any

    class Struct(msgspec.Struct):
        x: Any

    class Model(pydantic.BaseModel):
        x: Any

    a, b = said("a"), said("b")
    for holder in (Data, Struct, Model):
        assert [*messages_in(holder(x=a)), *messages_in(holder(x=[1, b]))] == [a, b]
    results: list[Any] = [[a, b], (a, b), {"x": a, "y": [b]}, Command(update=[a, b])]
    for result in [*results, [Command(update={"x": a}), {"y": b}]]:
        assert list(messages_in(result)) == [a, b]
    for nothing in (None, "text", b"bytes", 7, {"deep": {"deeper": [a]}}, Command(goto="x"), [[a]]):
        assert list(messages_in(nothing)) == []


def test_an_object_gets_an_id_and_a_dict_stays_as_it_is() -> None:
    library = pytest.importorskip("langchain_core.messages")
    message = library.AIMessage("x")
    assert identified(message) is message
    assert id_of(message)
    own = {"role": "user", "content": "x"}
    assert identified(own) is own
    assert "id" not in own


@pytest.mark.usefixtures("alone")
async def test_without_langchain_messages_are_dicts() -> None:
    def node(_state: Any) -> dict[str, Any]:
        for text in ("to", "ken"):
            push_message({"role": "assistant", "content": text, "id": "m"}, state_key=None)
        return {"messages": [{"role": "assistant", "content": "token", "id": "m"}, {"role": "user", "content": "?"}]}

    graph = chain(("speak", node), schema=MessagesState).compile()
    given = {"messages": [{"role": "user", "content": "q", "id": "q"}]}
    chunks = await collect(graph.astream(given, stream_mode=["messages", "tools"]))
    assert [(mode, message["content"], metadata["langgraph_node"]) for mode, (message, metadata) in chunks] == [
        ("messages", "to", "speak"),
        ("messages", "ken", "speak"),
        ("messages", "?", "speak"),
    ]
    with pytest.raises(ValueError, match="needs a message with an id"):
        await chain(("speak", lambda _: push_message({"role": "user", "content": "?"}))).compile().ainvoke({})


@pytest.mark.usefixtures("alone")
async def test_without_langchain_callbacks_are_handed_to_nodes_as_they_are() -> None:
    seen: list[Any] = []
    handler = object()

    def node(_state: Any, config: RunnableConfig) -> None:
        seen.append(config["callbacks"])

    graph = chain(("n", node)).compile()
    await graph.ainvoke({}, {"callbacks": handler})
    await graph.ainvoke({}, {"callbacks": [handler]})
    assert seen == [[handler], [handler]]


@pytest.mark.usefixtures("alone")
async def test_without_langchain_pauses_are_told_all_the_same() -> None:
    callbacks._handler_class.cache_clear()
    told: list[Any] = []

    class Watcher(callbacks.GraphCallbackHandler):
        async def on_interrupt(self, event: callbacks.GraphInterruptEvent) -> None:
            told.append(event.interrupts[0].value)

    graph = chain(("ask", lambda _state: interrupt("?"))).compile()
    try:
        await graph.ainvoke({}, {"callbacks": [Watcher()]})
    finally:
        callbacks._handler_class.cache_clear()
    assert told == ["?"]


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
@given(given_ids=ids, returned=st.lists(ids, min_size=1, max_size=4), pushed=st.sets(st.integers(0, 5)))
@settings(max_examples=25)
def test_every_message_is_told_once(
    loop: str, given_ids: list[int], returned: list[list[int]], pushed: set[int]
) -> None:
    """What was given to a node, or told before, is no news; what a node pushes always is."""
    library = pytest.importorskip("langchain_core.messages")

    def said(number: int) -> Any:
        return library.AIMessage(f"said {number}", id=str(number))

    def speaking(at: int, numbers: list[int]) -> Any:
        async def node(_state: Any) -> dict[str, Any]:
            if at in pushed:
                push_message(said(at), state_key=None)
            return {"messages": [said(number) for number in numbers]}

        return node

    nodes = [(f"n{at}", speaking(at, numbers)) for at, numbers in enumerate(returned)]
    graph = chain(*nodes, schema=MessagesState).compile()
    before = {"messages": [said(number) for number in given_ids]}

    async def run() -> list[Any]:
        return await collect(graph.astream(before, stream_mode="messages"))

    known, expected = set(given_ids), list[int]()
    for at, numbers in enumerate(returned):
        if at in pushed:
            known.add(at)
            expected.append(at)
        for number in numbers:
            if number not in known:
                known.add(number)
                expected.append(number)
    assert [int(message.id) for message, _ in anyio.run(run, backend=loop)] == expected
