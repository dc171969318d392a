"""The assistant of the course's chapter on memory, word for word: looked up once, remembered by the conversation."""

# mypy: ignore-errors
# ruff: noqa: PLE1205 - loguru's logger formats with braces
# The program is a user's code as printed in the course that this library follows; only imports and model differ.
from typing import Any, Final, Literal

import pytest

from persistence.memory import InMemorySaver, InMemoryStore
from persistence.sqlite import SqliteSaver, SqliteStore
from runtime.graph import END, START, MessagesState, StateGraph
from runtime.runtime import Runtime
from tests.stories.fake_model import FakeModel

pytest.importorskip("langchain_core")
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

USERS_NS: Final[tuple[str]] = ("users",)
PREFERENCES_KEY: Final[str] = "preferences"

value1 = {"course": "计算机组成原理", "sports": "跑步", "food": "紫光园奶皮子酸奶"}
value2 = {"course": "数字电路与模拟电路", "sports": "跑步", "food": "奶皮子糖葫芦"}

model = FakeModel(AIMessage)
logged: list[tuple[str, str]] = []


class Logger:
    """Stands for loguru's logger."""

    def info(self, text: str, *values: Any) -> None:
        logged.append(("INFO", text.format(*values)))

    def warning(self, text: str, *values: Any) -> None:
        logged.append(("WARNING", text.format(*values)))


logger = Logger()


class OverAllState(MessagesState):
    username: str
    user_input: str
    output: str
    preferences: dict[str, str]  # 用户偏好


def check_preferences_node(state: OverAllState, runtime: Runtime) -> OverAllState:
    username = state["username"]
    store = runtime.store
    namespace = (*USERS_NS, username)
    key = PREFERENCES_KEY
    item = store.get(namespace, key)
    if not item:
        logger.warning("长期记忆中没有 {} 的偏好数据", username)
        return {}
    logger.info("长期记忆中保存的用户偏好: {}", item.value)
    return {"preferences": item.value}


def router(state: OverAllState) -> Literal["check_preferences_node", "llm_node"]:
    if not state.get("preferences"):
        logger.info("需要从长期记忆中查询用户偏好")
        return "check_preferences_node"
    logger.info("用户偏好已存在，不必查询")
    return "llm_node"


def llm_node(state: OverAllState) -> OverAllState:
    preferences = state.get("preferences", {})
    user_input = state["user_input"]
    human_prompt = f"这是用户的偏好: \n{preferences}\n这是用户的需求: \n{user_input}\n"
    system_prompt = "请根据用户偏好解决用户需求"
    messages: list[SystemMessage | HumanMessage | AIMessage | ToolMessage] = (
        [SystemMessage(content=system_prompt)] if not state.get("messages", []) else state["messages"]
    )
    model_response = model.invoke(messages + [HumanMessage(content=human_prompt)])  # noqa: RUF005 - as printed
    output = model_response.content
    return {"messages": messages + [HumanMessage(content=human_prompt), model_response], "output": output}  # noqa: RUF005


builder = StateGraph(state_schema=OverAllState)
builder.add_node("check_preferences_node", check_preferences_node)
builder.add_node("llm_node", llm_node)
builder.add_conditional_edges(START, router, path_map=["check_preferences_node", "llm_node"])
builder.add_edge("check_preferences_node", "llm_node")
builder.add_edge("llm_node", END)


@pytest.fixture(params=["memory", "sqlite"])
def memories(request: pytest.FixtureRequest, database: str) -> Any:
    """A saver and a store, of the same file where there is one."""
    logged.clear()
    if request.param == "memory":
        yield InMemorySaver(), InMemoryStore()
        return
    with SqliteSaver.from_conn_string(database) as checkpointer, SqliteStore.from_conn_string(database) as store:
        checkpointer.setup()
        yield checkpointer, store


def test_the_second_call_reuses_what_the_first_looked_up(memories: Any, capsys: pytest.CaptureFixture[str]) -> None:
    checkpointer, store = memories
    store.put((*USERS_NS, "Alice"), PREFERENCES_KEY, value1)
    store.put((*USERS_NS, "Bob"), PREFERENCES_KEY, value2)
    graph = builder.compile(checkpointer=checkpointer, store=store)
    display = pytest.importorskip("IPython.display").display
    display(graph)
    assert capsys.readouterr().out == f"{graph!r}\n"

    config = {"configurable": {"thread_id": "345"}}
    res = graph.invoke({"username": "Alice", "user_input": "我有点无聊，和我聊聊天吧"}, config=config)
    first = f"这是用户的偏好: \n{value1}\n这是用户的需求: \n我有点无聊，和我聊聊天吧\n"
    messages = res.pop("messages")
    assert res == {
        "username": "Alice",
        "user_input": "我有点无聊，和我聊聊天吧",
        "output": f"收到：{first}",
        "preferences": value1,
    }
    assert logged == [("INFO", "需要从长期记忆中查询用户偏好"), ("INFO", f"长期记忆中保存的用户偏好: {value1}")]

    logged.clear()
    new_res = graph.invoke({"user_input": "推荐一下酸奶"}, config=config)
    second = f"这是用户的偏好: \n{value1}\n这是用户的需求: \n推荐一下酸奶\n"
    new_messages = new_res.pop("messages")
    assert new_res == {
        "username": "Alice",
        "user_input": "推荐一下酸奶",
        "output": f"收到：{second}",
        "preferences": value1,
    }
    assert logged == [("INFO", "用户偏好已存在，不必查询")]

    # The node returned the old messages too: they are recognised by their ids and not added again.
    assert new_messages[:3] == messages
    assert [(type(message), message.content) for message in new_messages] == [
        (SystemMessage, "请根据用户偏好解决用户需求"),
        (HumanMessage, first),
        (AIMessage, f"收到：{first}"),
        (HumanMessage, second),
        (AIMessage, f"收到：{second}"),
    ]
    assert len({message.id for message in new_messages}) == 5


def test_whom_the_memory_does_not_know_is_told_of(memories: Any) -> None:
    checkpointer, store = memories
    graph = builder.compile(checkpointer=checkpointer, store=store)
    config = {"configurable": {"thread_id": "345"}}
    for _ in range(2):
        logged.clear()
        res = graph.invoke({"username": "Black", "user_input": "嗨"}, config=config)
        assert "preferences" not in res
        assert logged == [("INFO", "需要从长期记忆中查询用户偏好"), ("WARNING", "长期记忆中没有 Black 的偏好数据")]
