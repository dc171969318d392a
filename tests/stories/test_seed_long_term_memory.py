"""Long-term memory beside short-term memory: preferences in a store, the conversation in a saver, one file for both."""

# mypy: ignore-errors
# The graph is a user's code as printed in the course that this library follows; only imports and model differ.
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import pytest

from persistence.memory import InMemorySaver, InMemoryStore
from persistence.sqlite import SqliteSaver, SqliteStore
from runtime.config import get_store
from runtime.graph import END, START, StateGraph
from runtime.graph.message import MessagesState
from runtime.runtime import Runtime
from runtime.store import BaseStore, SearchItem
from tests.stories.fake_model import FakeModel, content_of

USERS_NS: Final = ("users",)
PREFERENCES_KEY: Final = "preferences"

PREFERENCES = {
    "Alice": {"course": "计算机组成原理", "sports": "跑步", "food": "紫光园奶皮子酸奶"},
    "Bob": {"course": "数字电路与模拟电路", "sports": "跑步", "food": "奶皮子糖葫芦"},
    "Black": {"course": "数字电路与模拟电路", "sports": "羽毛球", "food": "紫光园奶皮子酸奶"},
}


class OverAllState(MessagesState):
    username: str
    user_input: str
    output: str
    preferences: dict[str, str]


def prepare(store: BaseStore) -> None:
    for username, value in PREFERENCES.items():
        store.put((*USERS_NS, username), PREFERENCES_KEY, value)


def assistant(model: FakeModel, log: list[str]) -> Any:
    def check_preferences_node(state: OverAllState, runtime: Runtime) -> OverAllState:
        username = state["username"]
        store = runtime.store
        namespace = (*USERS_NS, username)
        key = PREFERENCES_KEY

        item = store.get(namespace, key)
        if not item:
            log.append(f"长期记忆中没有 {username} 的偏好数据")
            return {}
        log.append(f"长期记忆中保存的用户偏好: {item.value}")
        return {"preferences": item.value}

    def router(state: OverAllState) -> Literal["check_preferences_node", "llm_node"]:
        if not state.get("preferences"):
            log.append("需要从长期记忆中查询用户偏好")
            return "check_preferences_node"
        log.append("用户偏好已存在，不必查询")
        return "llm_node"

    def llm_node(state: OverAllState) -> OverAllState:
        preferences = state.get("preferences", {})
        user_input = state["user_input"]
        human_prompt = f"这是用户的偏好: \n{preferences}\n这是用户的需求: \n{user_input}\n"
        system_prompt = "请根据用户偏好解决用户需求"
        messages = (
            [{"role": "system", "content": system_prompt}] if not state.get("messages", []) else state["messages"]
        )
        human = {"role": "user", "content": human_prompt}
        model_response = model.invoke([*messages, human])
        output = content_of(model_response)
        return {"messages": [*messages, human, model_response], "output": output}

    builder = StateGraph(state_schema=OverAllState)
    builder.add_node("check_preferences_node", check_preferences_node)
    builder.add_node("llm_node", llm_node)
    builder.add_conditional_edges(START, router, path_map=["check_preferences_node", "llm_node"])
    builder.add_edge("check_preferences_node", "llm_node")
    builder.add_edge("llm_node", END)
    return builder


@pytest.fixture
def model() -> FakeModel:
    return FakeModel(lambda text: {"role": "assistant", "content": text})


def test_preferences_are_found_by_namespace(database: str) -> None:
    with SqliteStore.from_conn_string(database) as store:
        store.setup()
        prepare(store)
        found = store.search(USERS_NS)
        assert [type(item) for item in found] == [SearchItem] * 3
        assert [(item.namespace, item.key, item.value) for item in found] == [
            (("users", username), "preferences", value) for username, value in PREFERENCES.items()
        ]
        first = found[0]
        assert first.score is None
        assert first.created_at.utcoffset() == timedelta(0)
        assert first.created_at <= first.updated_at
        assert repr(first) == (
            "Item(namespace=['users', 'Alice'], key='preferences', value={'course': '计算机组成原理', "
            "'sports': '跑步', 'food': '紫光园奶皮子酸奶'}, "
            f"created_at='{first.created_at.isoformat()}', updated_at='{first.updated_at.isoformat()}', score=None)"
        )
        runners = store.search(USERS_NS, filter={"sports": "跑步"})
        assert [item.namespace[-1] for item in runners] == ["Alice", "Bob"]
        assert store.list_namespaces(prefix=USERS_NS) == [("users", "Alice"), ("users", "Black"), ("users", "Bob")]


@pytest.fixture(params=["memory", "sqlite"])
def memories(request: pytest.FixtureRequest, database: str) -> Any:
    """A saver and a store, of the same file where there is one."""
    if request.param == "memory":
        yield InMemorySaver(), InMemoryStore()
        return
    with (
        SqliteSaver.from_conn_string(database) as checkpointer,
        SqliteStore.from_conn_string(database) as store,
    ):
        checkpointer.setup()
        yield checkpointer, store


def test_a_conversation_looks_its_user_up_once(memories: Any, model: FakeModel) -> None:
    checkpointer, store = memories
    prepare(store)
    log: list[str] = []
    graph = assistant(model, log).compile(checkpointer=checkpointer, store=store)
    config = {"configurable": {"thread_id": "345"}}

    res = graph.invoke({"username": "Alice", "user_input": "我有点无聊，和我聊聊天吧"}, config=config)
    assert res["preferences"] == PREFERENCES["Alice"]
    assert len(res["messages"]) == 3
    assert log == ["需要从长期记忆中查询用户偏好", f"长期记忆中保存的用户偏好: {PREFERENCES['Alice']}"]
    assert "紫光园奶皮子酸奶" in model.prompts[0][-1]

    log.clear()
    new_res = graph.invoke({"user_input": "推荐一下酸奶"}, config=config)
    assert new_res["preferences"] == PREFERENCES["Alice"]
    assert new_res["output"].endswith("推荐一下酸奶\n")
    assert log == ["用户偏好已存在，不必查询"]


def test_memory_is_shared_by_threads_and_users_unknown_to_it_are_served(memories: Any, model: FakeModel) -> None:
    checkpointer, store = memories
    prepare(store)
    log: list[str] = []
    graph = assistant(model, log).compile(checkpointer=checkpointer, store=store)
    for thread_id in ("1", "2"):
        res = graph.invoke({"username": "Bob", "user_input": "嗨"}, {"configurable": {"thread_id": thread_id}})
        assert res["preferences"] == PREFERENCES["Bob"]
    log.clear()
    res = graph.invoke({"username": "Eve", "user_input": "嗨"}, {"configurable": {"thread_id": "3"}})
    assert "preferences" not in res
    assert log == ["需要从长期记忆中查询用户偏好", "长期记忆中没有 Eve 的偏好数据"]


async def test_the_same_graph_awaited(database: str, model: FakeModel) -> None:
    """Sync nodes use the blocking door from their worker threads, on a store that is open on the loop."""
    async with SqliteSaver.from_conn_string(database) as checkpointer, SqliteStore.from_conn_string(database) as store:
        for username, value in PREFERENCES.items():
            await store.aput((*USERS_NS, username), PREFERENCES_KEY, value)
        graph = assistant(model, []).compile(checkpointer=checkpointer, store=store)

        async def talk(username: str) -> None:
            config = {"configurable": {"thread_id": username}}
            res = await graph.ainvoke({"username": username, "user_input": "嗨"}, config)
            assert res["preferences"] == PREFERENCES[username]

        async with anyio.create_task_group() as nursery:
            for username in PREFERENCES:
                nursery.start_soon(talk, username)


async def test_nodes_write_memories_too_however_they_come_by_the_store(database: str) -> None:
    class State(MessagesState):
        username: str
        found: list[str]

    async def remember(state: State, store: BaseStore) -> State:
        await store.aput(("notes", state["username"]), "from the parameter", {"text": "a"})
        return {}

    async def remember_more(state: State, *, runtime: Runtime) -> State:
        await runtime.store.aput(("notes", state["username"]), "from the runtime", {"text": "b"})
        return {}

    def recall(state: State) -> State:
        return {"found": [item.key for item in get_store().search(("notes", state["username"]))]}

    builder = StateGraph(State)
    builder.add_node("remember", remember)
    builder.add_node("remember_more", remember_more)
    builder.add_node("recall", recall)
    builder.add_edge(START, "remember")
    builder.add_edge("remember", "remember_more")
    builder.add_edge("remember_more", "recall")
    builder.add_edge("recall", END)
    async with SqliteStore.from_conn_string(database) as store:
        result = await builder.compile(store=store).ainvoke({"username": "Alice"})
    assert result["found"] == ["from the parameter", "from the runtime"]


CHILD = """
import sys
from persistence.sqlite import SqliteStore

with SqliteStore.from_conn_string(sys.argv[1]) as store:
    store.put(("users", "Alice"), "preferences", {"food": "酸奶"})
    assert store.search(("users",))[0].value == {"food": "酸奶"}
"""


@pytest.mark.slow
def test_memories_outlive_the_program(database: str) -> None:
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", CHILD, database], check=True, cwd=root)
    with SqliteStore.from_conn_string(database) as store:
        item = store.get(("users", "Alice"), "preferences")
    assert item.value == {"food": "酸奶"}
