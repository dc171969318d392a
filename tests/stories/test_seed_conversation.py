"""Conversations that remember: one thread id, several calls, in memory and in a database."""

# mypy: ignore-errors
# The graphs are a user's code as printed in the course that this library follows; only imports and model differ.
from typing import Any

import pytest

from persistence.memory import InMemorySaver
from persistence.sqlite import SqliteSaver
from runtime.graph import END, START, StateGraph
from runtime.graph.message import MessagesState
from runtime.types import Durability
from tests.stories.fake_model import FakeModel, content_of, role_of


class OverAllState(MessagesState):
    output: str


class Kind:
    """One way to write messages: the real classes, or plain dicts."""

    def __init__(self, name: str) -> None:
        if name == "objects":
            messages = pytest.importorskip("langchain_core.messages")
            self.human = messages.HumanMessage
            self.model = FakeModel(messages.AIMessage)
        else:
            self.human = lambda text: {"role": "user", "content": text}
            self.model = FakeModel(lambda text: {"role": "assistant", "content": text})


@pytest.fixture(params=["objects", "dicts"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return Kind(request.param)


def conversation(model: FakeModel) -> Any:
    def llm_node(state: OverAllState) -> OverAllState:
        messages = state["messages"]
        res = model.invoke(messages)
        return {"messages": [res]}

    def output_node(state: OverAllState) -> OverAllState:
        return {"output": content_of(state["messages"][-1])}

    builder = StateGraph(state_schema=OverAllState)
    builder.add_node("llm_node", llm_node)
    builder.add_node("output_node", output_node)
    builder.add_edge(START, "llm_node")
    builder.add_edge("llm_node", "output_node")
    builder.add_edge("output_node", END)
    return builder


TURNS = ["你好，我是老王", "从现在开始，你是小王", "我是谁？你是谁？"]
DIALOGUE = [
    ("user", "你好，我是老王"),
    ("assistant", "收到：你好，我是老王"),
    ("user", "从现在开始，你是小王"),
    ("assistant", "收到：从现在开始，你是小王"),
    ("user", "我是谁？你是谁？"),
    ("assistant", "你是老王，我是小王。"),
]


def spoken(messages: list[Any]) -> list[tuple[str, str]]:
    return [(role_of(message), content_of(message)) for message in messages]


def test_three_calls_on_one_thread_share_the_conversation(kind: Kind) -> None:
    builder = conversation(kind.model)
    checkpointer = InMemorySaver()
    graph = builder.compile(checkpointer=checkpointer)
    config = {"configurable": {"thread_id": "chapter_6_6-2-2"}}

    graph.invoke({"messages": [kind.human("你好，我是老王")]}, config=config)
    graph.invoke({"messages": [kind.human("从现在开始，你是小王")]}, config=config)
    res = graph.invoke({"messages": [kind.human("我是谁？你是谁？")]}, config=config)

    assert res["output"] == "你是老王，我是小王。"
    assert set(res) == {"messages", "output"}
    assert spoken(res["messages"]) == DIALOGUE


def test_messages_get_ids_and_keep_them(kind: Kind) -> None:
    graph = conversation(kind.model).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    ids: list[list[Any]] = []
    for turn in TURNS:
        res = graph.invoke({"messages": [kind.human(turn)]}, config=config)
        ids.append([m["id"] if isinstance(m, dict) else m.id for m in res["messages"]])
    assert ids[0] == ids[1][:2] == ids[2][:2]
    assert len(set(ids[2])) == len(TURNS) * 2
    assert all(ids[2])


def test_another_thread_remembers_nothing(kind: Kind) -> None:
    graph = conversation(kind.model).compile(checkpointer=InMemorySaver())
    for turn in TURNS[:2]:
        graph.invoke({"messages": [kind.human(turn)]}, config={"configurable": {"thread_id": "老王的会话"}})
    res = graph.invoke({"messages": [kind.human(TURNS[2])]}, config={"configurable": {"thread_id": "别的会话"}})
    assert res["output"] == "你是不知道，我是不知道。"


def test_a_new_memory_saver_starts_from_nothing(kind: Kind) -> None:
    config = {"configurable": {"thread_id": "1"}}
    for _ in range(2):  # running the whole program again re-creates the saver
        graph = conversation(kind.model).compile(checkpointer=InMemorySaver())
        for turn in TURNS:
            res = graph.invoke({"messages": [kind.human(turn)]}, config=config)
        assert spoken(res["messages"]) == DIALOGUE


def test_a_database_keeps_the_conversation_over_restarts(kind: Kind, database: str) -> None:
    for run in (1, 2):
        with SqliteSaver.from_conn_string(database) as checkpointer:
            checkpointer.setup()
            graph = conversation(kind.model).compile(checkpointer=checkpointer)
            config = {"configurable": {"thread_id": "chapter_6_6.2.4"}}
            graph.invoke({"messages": [kind.human("你好，我是老王")]}, config=config)
            graph.invoke({"messages": [kind.human("从现在开始，你是小王")]}, config=config)
            res = graph.invoke({"messages": [kind.human("我是谁？你是谁？")]}, config=config)
            assert res["output"] == "你是老王，我是小王。"
            assert spoken(res["messages"]) == DIALOGUE * run


def test_each_turn_continues_the_step_count(kind: Kind) -> None:
    graph = conversation(kind.model).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    for turn in TURNS[:2]:
        graph.invoke({"messages": [kind.human(turn)]}, config=config)
    history = list(graph.get_state_history(config))
    assert [(s.metadata["step"], s.metadata["source"], s.next) for s in reversed(history)] == [
        (-1, "input", ("__start__",)),
        (0, "loop", ("llm_node",)),
        (1, "loop", ("output_node",)),
        (2, "loop", ()),
        (3, "input", ("__start__",)),
        (4, "loop", ("llm_node",)),
        (5, "loop", ("output_node",)),
        (6, "loop", ()),
    ]
    assert [s.parent_config for s in history] == [s.config for s in history[1:]] + [None]


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
def test_the_durability_mode_does_not_change_the_answer(kind: Kind, durability: Durability) -> None:
    graph = conversation(kind.model).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "chapter_tmp"}}
    res = graph.invoke({"messages": [kind.human("你好")]}, config=config, durability=durability)
    assert res["output"] == "收到：你好"
    assert spoken(res["messages"]) == [("user", "你好"), ("assistant", "收到：你好")]

    history = list(graph.get_state_history(config))
    steps = [2] if durability == "exit" else [2, 1, 0, -1]
    assert [snapshot.metadata["step"] for snapshot in history] == steps
    assert history[0].next == ()
    assert history[0].values["output"] == "收到：你好"
    assert (history[0].parent_config is None) is (durability == "exit")


@pytest.mark.parametrize("durability", ["exit", "async", "sync"])
def test_every_durability_mode_remembers_the_conversation(kind: Kind, durability: Durability, database: str) -> None:
    config = {"configurable": {"thread_id": "1"}}
    for turn in TURNS:
        with SqliteSaver.from_conn_string(database) as checkpointer:
            graph = conversation(kind.model).compile(checkpointer=checkpointer)
            res = graph.invoke({"messages": [kind.human(turn)]}, config=config, durability=durability)
    assert spoken(res["messages"]) == DIALOGUE
