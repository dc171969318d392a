"""The message reducer, with langchain_core and without."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.channels import BinaryOperatorAggregate
from runtime.schema import REMOVE_ALL_MESSAGES, MessagesState, add_messages, introspect
from runtime.schema import messages as module

ALL = REMOVE_ALL_MESSAGES


@pytest.fixture(params=["dicts", "langchain"])
def dialect(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "dicts":
        monkeypatch.setitem(sys.modules, "langchain_core", None)
    else:
        pytest.importorskip("langchain_core")
    module._langchain.cache_clear()
    yield request.param
    module._langchain.cache_clear()


@pytest.fixture
def langchain() -> Any:
    return pytest.importorskip("langchain_core.messages")


def message(content: str, identity: str | None = None, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": content} | ({} if identity is None else {"id": identity})


def removal(identity: str) -> dict[str, Any]:
    return message("", identity, "remove")


def shown(messages: list[Any]) -> list[tuple[str, str]]:
    """Return (id, content) of each message, in either dialect."""
    return [(one["id"], one["content"]) if isinstance(one, dict) else (one.id, one.content) for one in messages]


def is_uuid(text: str) -> bool:
    return str(uuid.UUID(text)) == text


A, B = message("a", "1"), message("b", "2")


@pytest.mark.parametrize(
    ("right", "merged"),
    [
        ([], [("1", "a"), ("2", "b")]),
        (message("c", "3"), [("1", "a"), ("2", "b"), ("3", "c")]),
        ([message("c", "1")], [("1", "c"), ("2", "b")]),
        ([message("c", "1"), message("d", "1")], [("1", "d"), ("2", "b")]),
        ([message("c", "3"), message("d", "3")], [("1", "a"), ("2", "b"), ("3", "d")]),
        ([removal("1")], [("2", "b")]),
        ([removal("1"), removal("1")], [("2", "b")]),
        ([removal("1"), message("c", "1")], [("1", "c"), ("2", "b")]),
        ([message("c", "1"), removal("1")], [("2", "b")]),
        ([message("c", "3"), removal("3")], [("1", "a"), ("2", "b")]),
        ([removal(ALL)], []),
        ([message("c", "3"), removal(ALL), message("d", "4")], [("4", "d")]),
        ([removal(ALL), message("c", "3"), removal(ALL), message("d", "4")], [("4", "d")]),
    ],
)
@pytest.mark.usefixtures("dialect")
def test_adding(right: Any, merged: list[tuple[str, str]]) -> None:
    left = [dict(A), dict(B)]
    assert shown(add_messages(left, right)) == merged
    assert left == [A, B]


@pytest.mark.usefixtures("dialect")
def test_messages_without_an_id_get_one() -> None:
    merged = shown(add_messages([message("a")], [message("b"), message("c")]))
    assert [content for _, content in merged] == ["a", "b", "c"]
    assert all(is_uuid(identity) for identity, _ in merged)
    assert len({identity for identity, _ in merged}) == 3


@pytest.mark.usefixtures("dialect")
def test_texts_and_pairs_are_messages() -> None:
    merged = add_messages("a", [("user", "b"), ("assistant", "c")])
    assert [content for _, content in shown(merged)] == ["a", "b", "c"]
    roles = [one["role"] if isinstance(one, dict) else one.type for one in merged]
    assert roles in (["user", "user", "assistant"], ["human", "human", "ai"])


@pytest.mark.usefixtures("dialect")
def test_the_removal_of_an_unknown_message_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Attempting to delete a message with an ID that doesn't exist \('9'\)"):
        add_messages([A], [removal("9")])


@pytest.mark.usefixtures("dialect")
def test_what_is_no_message_is_refused() -> None:
    with pytest.raises((TypeError, NotImplementedError), match="int"):
        add_messages([], [5])


@pytest.mark.parametrize(("left", "right"), [([], None), (None, [])])
def test_one_side_alone_is_refused(left: Any, right: Any) -> None:
    with pytest.raises(ValueError, match="one of them is None"):
        add_messages(left, right)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="Unrecognized format='other'"):
        add_messages([], [], format="other")  # type: ignore[call-overload]


def test_the_openai_format(langchain: Any) -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "xx"}}
    given = langchain.HumanMessage([{"type": "text", "text": "hi"}, image])
    merged = add_messages(format="langchain-openai")([], given)
    assert [block["type"] for block in merged[0].content] == ["text", "image_url"]


def test_the_openai_format_needs_langchain_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_langchain", lambda: None)
    with pytest.raises(ImportError, match="langchain-core"):
        add_messages([], [], format="langchain-openai")


def test_dicts_stay_dicts_without_langchain_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_langchain", lambda: None)
    given = {"role": "tool", "content": "a", "extra": 1}
    merged = add_messages([], given)
    assert {key: value for key, value in merged[0].items() if key != "id"} == given
    assert "id" not in given


def test_everything_becomes_langchains_messages_where_it_is_installed(langchain: Any) -> None:
    merged = add_messages([message("a")], [langchain.AIMessageChunk("b"), ("system", "c")])
    assert [type(one) for one in merged] == [langchain.HumanMessage, langchain.AIMessage, langchain.SystemMessage]


def test_ids_are_set_in_place_on_langchains_messages(langchain: Any) -> None:
    given = langchain.HumanMessage("a")
    merged = add_messages([], given)
    assert merged == [given]
    assert is_uuid(given.id)


def test_langchains_removals(langchain: Any) -> None:
    left = [langchain.HumanMessage("a", id="1"), langchain.HumanMessage("b", id="2")]
    assert shown(add_messages(left, langchain.RemoveMessage(id="1"))) == [("2", "b")]
    assert add_messages(left, langchain.RemoveMessage(id=ALL)) == []
    replaced = add_messages([langchain.RemoveMessage(id="1")], [langchain.HumanMessage("c", id="1")])
    assert shown(replaced) == [("1", "c")]


@pytest.mark.usefixtures("dialect")
def test_the_state_of_a_conversation() -> None:
    class Talk(MessagesState):
        topic: str

    schema = introspect(Talk)
    assert list(schema.channels) == ["messages", "topic"]
    channel = schema.channels["messages"].fresh()
    assert isinstance(channel, BinaryOperatorAggregate)
    assert channel.appends
    channel.update([[A], [B]])
    assert shown(channel.get()) == [("1", "a"), ("2", "b")]


identities = st.sampled_from("abc")
writes = st.lists(st.tuples(identities, st.booleans()), max_size=6)


@settings(max_examples=50, deadline=None)
@given(st.lists(identities, unique=True), writes)
def test_merging_against_a_plain_dict(left: list[str], right: list[tuple[str, bool]]) -> None:
    expected = dict.fromkeys(left, "left")
    given, alive = [], set(left)
    for number, (identity, removes) in enumerate(right):
        if removes and identity not in expected:
            continue
        given.append(removal(identity) if removes else message(str(number), identity))
        if removes:
            alive.discard(identity)
        else:
            expected[identity] = str(number)
            alive.add(identity)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_langchain", lambda: None)
        merged = add_messages([message("left", identity) for identity in left], given)
    assert shown(merged) == [(identity, content) for identity, content in expected.items() if identity in alive]
