"""Facts that hold for one call only: the runtime context."""

# mypy: ignore-errors
# The graph is a user's code as printed in the course that this library follows; only imports and model differ.
from dataclasses import dataclass
from typing import Any

import pytest

from persistence.memory import InMemorySaver
from runtime.graph import END, START, StateGraph
from runtime.graph.message import MessagesState
from runtime.runtime import Runtime
from tests.stories.fake_model import FakeModel

pytest.importorskip("langchain_core")
from langchain_core.messages import AIMessage, HumanMessage


@dataclass
class UserContext:
    username: str
    membership_level: str


class OverAllState(MessagesState):
    user_input: str
    output: str


def build(events: list[str], model: FakeModel) -> StateGraph:
    def llm_node(state: OverAllState, runtime: Runtime[UserContext]) -> OverAllState:
        runtime_context = runtime.context
        if runtime_context:
            username = runtime_context.username
            level = runtime_context.membership_level
            events.append(f"当前用户: {username}, 会员等级: {level}")
            if level == "VIP":
                system_prompt = f"你是高级客服助理。当前VIP用户是{username}"
            else:
                system_prompt = f"你是普通客服助理。当前用户是{username}，请友好简洁地回复。"
        else:
            events.append("运行时上下文为空，使用默认风格")
            system_prompt = "你是客服助理，请友好简洁地回复。"

        user_input = state["user_input"]
        messages = state.get("messages", [])
        prompt = [HumanMessage(content=system_prompt), *messages, HumanMessage(content=user_input)]
        response = model.invoke(prompt)
        return {"messages": [response], "output": response.content}

    builder = StateGraph(state_schema=OverAllState, context_schema=UserContext)
    builder.add_node("llm_node", llm_node)
    builder.add_edge(START, "llm_node")
    builder.add_edge("llm_node", END)
    return builder


FIRST = "你好，帮我查一下最近有什么优惠活动"
SECOND = "再帮我看看有没有新品"


@pytest.mark.parametrize("with_saver", [False, True])
def test_the_context_holds_for_one_call_and_is_not_inherited(with_saver: bool) -> None:
    events: list[str] = []
    model = FakeModel(AIMessage)
    graph = build(events, model).compile(checkpointer=InMemorySaver() if with_saver else None)
    config = {"configurable": {"thread_id": "demo-7.3"}}

    res = graph.invoke(
        {"user_input": FIRST}, config=config, context=UserContext(username="Alice", membership_level="VIP")
    )
    res2 = graph.invoke({"user_input": SECOND}, config=config)

    assert events == ["当前用户: Alice, 会员等级: VIP", "运行时上下文为空，使用默认风格"]
    assert res["output"] == f"收到：{FIRST}"
    assert res2["output"] == f"收到：{SECOND}"
    assert model.prompts[0] == ["你是高级客服助理。当前VIP用户是Alice", FIRST]
    remembered = [f"收到：{FIRST}"] if with_saver else []
    assert model.prompts[1] == ["你是客服助理，请友好简洁地回复。", *remembered, SECOND]


def test_the_context_is_not_stored(blocking_saver: Any) -> None:
    graph = build([], FakeModel(AIMessage)).compile(checkpointer=blocking_saver)
    config = {"configurable": {"thread_id": "1"}}
    graph.invoke({"user_input": FIRST}, config, context=UserContext(username="Alice", membership_level="VIP"))
    for snapshot in graph.get_state_history(config):
        assert "Alice" not in repr(snapshot)


def test_another_level_gets_another_prompt() -> None:
    model = FakeModel(AIMessage)
    graph = build([], model).compile()
    graph.invoke({"user_input": FIRST}, context=UserContext(username="Bob", membership_level="普通用户"))
    assert model.prompts[0][0] == "你是普通客服助理。当前用户是Bob，请友好简洁地回复。"


def test_a_dict_becomes_the_context_class() -> None:
    events: list[str] = []
    graph = build(events, FakeModel(AIMessage)).compile()
    graph.invoke({"user_input": FIRST}, context={"username": "Eve", "membership_level": "VIP"})
    assert events == ["当前用户: Eve, 会员等级: VIP"]
