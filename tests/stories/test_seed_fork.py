"""Going back to a checkpoint, changing what it holds, and running on from there."""

# mypy: ignore-errors
# The graph is a user's code as printed in the course that this library follows; only imports and model differ.
from typing import Any, Literal, TypedDict

import pytest

from runtime.graph import END, START, StateGraph
from tests.stories.fake_model import FakeModel, FakeRouterModel

pytest.importorskip("langchain_core")
from langchain_core.messages import AIMessage, HumanMessage


class OverAllState(TypedDict):
    username: str
    user_input: str
    output: str


class StructuredOutputState(TypedDict):
    topic: str
    mode: Literal["poem", "joke"]


INPUT = {"username": "小黄", "user_input": "帮我写一首关于布偶猫的七言绝句"}
POEM = "诗《布偶猫》"


class Story:
    """The graph after its first run."""

    def __init__(self, checkpointer: Any) -> None:
        self.events: list[str] = []
        self.config = {"configurable": {"thread_id": "123"}}
        self.graph = build(self.events).compile(checkpointer=checkpointer)
        self.res = self.graph.invoke(
            {"username": "小黄", "user_input": "帮我写一首关于布偶猫的七言绝句"}, config=self.config
        )
        self.first_events = list(self.events)
        self.events.clear()
        self.history_checkpoints = list(self.graph.get_state_history(config=self.config))
        self.before_router_checkpoint = next(h for h in self.history_checkpoints if h.next == ("router_node",))


def build(events: list[str]) -> StateGraph:
    model = FakeModel(AIMessage)
    model_with_structure = FakeRouterModel()

    def router_node(state: OverAllState) -> StructuredOutputState:
        events.append("router_node")
        user_input = state["user_input"]
        return model_with_structure.invoke([HumanMessage(user_input)])

    def router(state: StructuredOutputState) -> Literal["node_poem", "node_joke", "node_default"]:
        events.append("router")
        if state["mode"] == "poem":
            return "node_poem"
        elif state["mode"] == "joke":  # noqa: RET505 - as printed
            return "node_joke"
        return "node_default"

    def node_poem(state: StructuredOutputState) -> OverAllState:
        events.append("node_poem")
        topic = state["topic"]
        poem = model.invoke([HumanMessage(f"写一首关于 {topic} 的七言绝句，不要赏析，只给诗句即可")]).content
        return {"output": poem}

    def node_joke(state: StructuredOutputState) -> OverAllState:
        events.append("node_joke")
        topic = state["topic"]
        joke = model.invoke([HumanMessage(f"写一个关于 {topic} 的笑话，尽可能简单，不超过一百字")]).content
        return {"output": joke}

    def node_default(state: StructuredOutputState) -> OverAllState:
        events.append("node_default")
        return {"output": "无法处理的任务类型"}

    builder = StateGraph(state_schema=OverAllState)
    builder.add_node("router_node", router_node)
    builder.add_node("node_poem", node_poem)
    builder.add_node("node_joke", node_joke)
    builder.add_node("node_default", node_default)
    builder.add_edge(START, "router_node")
    builder.add_conditional_edges("router_node", router, path_map=["node_poem", "node_joke", "node_default"])
    builder.add_edge("node_poem", END)
    builder.add_edge("node_joke", END)
    builder.add_edge("node_default", END)
    return builder


@pytest.fixture
def story(blocking_saver: Any) -> Story:
    return Story(blocking_saver)


def test_the_router_leads_to_the_poem(story: Story) -> None:
    assert story.first_events == ["router_node", "router", "node_poem"]
    assert story.res == {**INPUT, "output": POEM}


def test_the_history_holds_the_private_keys_too(story: Story) -> None:
    assert [(s.metadata, s.next, s.values) for s in story.history_checkpoints] == [
        (
            {"source": "loop", "step": 2, "parents": {}},
            (),
            {**INPUT, "output": POEM, "topic": "布偶猫", "mode": "poem"},
        ),
        (
            {"source": "loop", "step": 1, "parents": {}},
            ("node_poem",),
            {**INPUT, "topic": "布偶猫", "mode": "poem"},
        ),
        ({"source": "loop", "step": 0, "parents": {}}, ("router_node",), INPUT),
        ({"source": "input", "step": -1, "parents": {}}, ("__start__",), {}),
    ]
    assert [[(t.name, t.path, t.result, t.error) for t in s.tasks] for s in story.history_checkpoints] == [
        [],
        [("node_poem", ("__pregel_pull", "node_poem"), {"output": POEM}, None)],
        [("router_node", ("__pregel_pull", "router_node"), {"topic": "布偶猫", "mode": "poem"}, None)],
        [("__start__", ("__pregel_pull", "__start__"), INPUT, None)],
    ]


def fork_as_start(story: Story) -> dict[str, Any]:
    return story.graph.update_state(
        config=story.before_router_checkpoint.config,
        values={"user_input": "帮我写一个关于布偶猫的笑话"},
        as_node=START,
    )


def test_update_state_returns_the_address_of_a_new_checkpoint(story: Story) -> None:
    change_input_config = fork_as_start(story)
    assert set(change_input_config) == {"configurable"}
    assert set(change_input_config["configurable"]) == {"thread_id", "checkpoint_ns", "checkpoint_id"}
    assert change_input_config["configurable"]["thread_id"] == "123"
    assert change_input_config["configurable"]["checkpoint_ns"] == ""
    known = [s.config["configurable"]["checkpoint_id"] for s in story.history_checkpoints]
    assert change_input_config["configurable"]["checkpoint_id"] > max(known)
    assert story.events == []


def test_the_new_checkpoint_holds_the_change_and_its_origin(story: Story) -> None:
    snapshot = story.graph.get_state(fork_as_start(story))
    assert snapshot.values == {**INPUT, "user_input": "帮我写一个关于布偶猫的笑话"}
    assert snapshot.next == ("router_node",)
    assert snapshot.metadata == {"source": "update", "step": 1, "parents": {}}
    assert snapshot.parent_config == story.before_router_checkpoint.config
    assert [(t.name, t.path, t.result, t.error) for t in snapshot.tasks] == [
        ("router_node", ("__pregel_pull", "router_node"), None, None)
    ]


def test_a_changed_input_runs_the_router_node_again(story: Story) -> None:
    res = story.graph.invoke(None, fork_as_start(story))
    assert story.events == ["router_node", "router", "node_joke"]
    assert res == {"username": "小黄", "user_input": "帮我写一个关于布偶猫的笑话", "output": "笑话《布偶猫》"}


def test_the_branch_continues_from_the_update_and_leaves_the_old_history_alone(story: Story) -> None:
    change_input_config = fork_as_start(story)
    story.graph.invoke(None, change_input_config)
    history = list(story.graph.get_state_history(story.config))
    assert history[3:] == story.history_checkpoints
    assert [(s.metadata["step"], s.metadata["source"], s.next) for s in history[:3]] == [
        (3, "loop", ()),
        (2, "loop", ("node_joke",)),
        (1, "update", ("router_node",)),
    ]
    assert history[2].config == change_input_config
    assert [s.parent_config for s in history[:3]] == [
        history[1].config,
        change_input_config,
        story.before_router_checkpoint.config,
    ]


def fork_as_router_node(story: Story) -> dict[str, Any]:
    return story.graph.update_state(
        config=story.before_router_checkpoint.config,
        values={"topic": "狸花猫", "mode": "笑话"},
        as_node="router_node",
    )


def test_an_update_as_a_node_runs_its_router_but_not_the_node(story: Story) -> None:
    skip_router_config = fork_as_router_node(story)
    assert story.events == ["router"]
    snapshot = story.graph.get_state(skip_router_config)
    assert snapshot.next == ("node_default",)
    assert snapshot.values == {**INPUT, "topic": "狸花猫", "mode": "笑话"}
    assert snapshot.metadata == {"source": "update", "step": 1, "parents": {}}
    assert snapshot.parent_config == story.before_router_checkpoint.config


def test_running_on_skips_the_node_that_was_played(story: Story) -> None:
    skip_router_config = fork_as_router_node(story)
    story.events.clear()
    res = story.graph.invoke(None, skip_router_config)
    assert story.events == ["node_default"]
    assert res == {**INPUT, "output": "无法处理的任务类型"}


def test_several_branches_from_one_checkpoint_do_not_mix(story: Story) -> None:
    as_start = fork_as_start(story)
    as_router = fork_as_router_node(story)
    assert story.graph.invoke(None, as_start)["output"] == "笑话《布偶猫》"
    assert story.graph.invoke(None, as_router)["output"] == "无法处理的任务类型"
    assert story.graph.get_state(story.history_checkpoints[0].config).values["output"] == POEM
