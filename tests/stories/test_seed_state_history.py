"""Looking at checkpoints: the whole history, the newest one, and one by its id."""

# mypy: ignore-errors
# The graph is a user's code as printed in the course that this library follows; only imports and model differ.
import datetime as dt
from typing import Any, TypedDict

import pytest

from runtime.graph import END, START, StateGraph
from runtime.types import PregelTask, StateSnapshot
from tests.stories.fake_model import FakeModel

pytest.importorskip("langchain_core")
from langchain_core.messages import AIMessage, HumanMessage


class OverAllState(TypedDict):
    topic: str
    poem: str
    joke: str
    final_output: str


class InputState(TypedDict):
    topic: str


class OutputState(TypedDict):
    final_output: str


POEM = "诗《猫咪》"
JOKE = "笑话《猫咪》"
FINAL = f"关于 猫咪 的七言绝句：\n{POEM}\n笑话：\n{JOKE}"


class Story:
    """The compiled graph, the thread's config, what ran and what the call returned."""

    def __init__(self, checkpointer: Any) -> None:
        self.events: list[str] = []
        self.config = {"configurable": {"thread_id": "123"}}
        self.graph = build(self.events).compile(checkpointer=checkpointer)
        self.res = self.graph.invoke({"topic": "猫咪"}, config=self.config)


def build(events: list[str]) -> StateGraph:
    model = FakeModel(AIMessage)

    def node_poem(state: InputState) -> OverAllState:
        events.append("node_poem")
        topic = state["topic"]
        poem = model.invoke([HumanMessage(f"写一首关于 {topic} 的七言绝句")]).content
        return {"poem": poem}

    def node_joke(state: InputState) -> OverAllState:
        events.append("node_joke")
        topic = state["topic"]
        joke = model.invoke([HumanMessage(f"写一个关于 {topic} 的笑话")]).content
        return {"joke": joke}

    def node_output(state: OverAllState) -> OutputState:
        events.append("node_output")
        topic = state["topic"]
        poem = state["poem"]
        joke = state["joke"]
        final_output = f"关于 {topic} 的七言绝句：\n{poem}\n笑话：\n{joke}"
        return {"final_output": final_output}

    builder = StateGraph(state_schema=OverAllState, input_schema=InputState, output_schema=OutputState)
    builder.add_node("node_poem", node_poem)
    builder.add_node("node_joke", node_joke)
    builder.add_node("node_output", node_output)
    builder.add_edge(START, "node_poem")
    builder.add_edge(START, "node_joke")
    builder.add_edge("node_poem", "node_output")
    builder.add_edge("node_joke", "node_output")
    builder.add_edge("node_output", END)
    return builder


@pytest.fixture
def story(blocking_saver: Any) -> Story:
    return Story(blocking_saver)


def test_the_call_returns_the_output_schema_only(story: Story) -> None:
    assert story.res == {"final_output": FINAL}
    assert sorted(story.events[:2]) == ["node_joke", "node_poem"]
    assert story.events[2:] == ["node_output"]


def test_the_history_lists_every_superstep_newest_first(story: Story) -> None:
    history_checkpoints = list(story.graph.get_state_history(config=story.config))

    assert all(isinstance(snapshot, StateSnapshot) for snapshot in history_checkpoints)
    assert [snapshot.metadata for snapshot in history_checkpoints] == [
        {"source": "loop", "step": 2, "parents": {}},
        {"source": "loop", "step": 1, "parents": {}},
        {"source": "loop", "step": 0, "parents": {}},
        {"source": "input", "step": -1, "parents": {}},
    ]
    assert [snapshot.next for snapshot in history_checkpoints] == [
        (),
        ("node_output",),
        ("node_poem", "node_joke"),
        ("__start__",),
    ]
    assert [snapshot.values for snapshot in history_checkpoints] == [
        {"topic": "猫咪", "poem": POEM, "joke": JOKE, "final_output": FINAL},
        {"topic": "猫咪", "poem": POEM, "joke": JOKE},
        {"topic": "猫咪"},
        {},
    ]
    assert [snapshot.interrupts for snapshot in history_checkpoints] == [()] * 4


def test_each_checkpoint_names_its_parent(story: Story) -> None:
    history_checkpoints = list(story.graph.get_state_history(config=story.config))
    ids = [snapshot.config["configurable"].pop("checkpoint_id") for snapshot in history_checkpoints]
    assert ids == sorted(set(ids), reverse=True)
    assert [snapshot.config for snapshot in history_checkpoints] == [
        {"configurable": {"thread_id": "123", "checkpoint_ns": ""}}
    ] * 4
    assert [snapshot.parent_config for snapshot in history_checkpoints] == [
        {"configurable": {"thread_id": "123", "checkpoint_ns": "", "checkpoint_id": parent}} for parent in ids[1:]
    ] + [None]


def test_checkpoint_ids_show_the_step_in_their_fourth_group(story: Story) -> None:
    history_checkpoints = list(story.graph.get_state_history(config=story.config))
    ids = [snapshot.config["configurable"]["checkpoint_id"] for snapshot in history_checkpoints]
    assert [one.split("-")[3] for one in ids] == ["8002", "8001", "8000", "bfff"]


def test_created_at_is_utc_and_rises(story: Story) -> None:
    history_checkpoints = list(story.graph.get_state_history(config=story.config))
    times = [dt.datetime.fromisoformat(snapshot.created_at) for snapshot in history_checkpoints]
    assert all(time.utcoffset() == dt.timedelta(0) for time in times)
    assert times == sorted(times, reverse=True)


def test_tasks_tell_what_ran_next_and_its_result(story: Story) -> None:
    history_checkpoints = list(story.graph.get_state_history(config=story.config))
    tasks = [snapshot.tasks for snapshot in history_checkpoints]
    assert all(isinstance(task, PregelTask) for step in tasks for task in step)
    assert [[(task.name, task.path, task.result) for task in step] for step in tasks] == [
        [],
        [("node_output", ("__pregel_pull", "node_output"), {"final_output": FINAL})],
        [
            ("node_poem", ("__pregel_pull", "node_poem"), {"poem": POEM}),
            ("node_joke", ("__pregel_pull", "node_joke"), {"joke": JOKE}),
        ],
        [("__start__", ("__pregel_pull", "__start__"), {"topic": "猫咪"})],
    ]
    flat = [task for step in tasks for task in step]
    assert {(task.error, task.interrupts, task.state) for task in flat} == {(None, (), None)}
    assert len({task.id for task in flat}) == len(flat)


def test_the_newest_checkpoint_of_a_finished_run_has_nothing_next(story: Story) -> None:
    latest_history_checkpoint = story.graph.get_state(config=story.config)

    assert latest_history_checkpoint.next == ()
    assert latest_history_checkpoint.tasks == ()
    assert latest_history_checkpoint.interrupts == ()
    assert latest_history_checkpoint.values == {"topic": "猫咪", "poem": POEM, "joke": JOKE, "final_output": FINAL}
    assert latest_history_checkpoint.metadata == {"source": "loop", "step": 2, "parents": {}}
    assert latest_history_checkpoint == next(iter(story.graph.get_state_history(story.config)))


def test_an_id_selects_one_checkpoint(story: Story) -> None:
    history_checkpoints = list(story.graph.get_state_history(config=story.config))
    for expected in history_checkpoints:
        checkpointe_id = expected.config["configurable"]["checkpoint_id"]
        target_config = {
            "configurable": {"thread_id": story.config["configurable"]["thread_id"], "checkpoint_id": checkpointe_id}
        }
        specific_history_checkpoint = story.graph.get_state(config=target_config)
        assert specific_history_checkpoint._replace(config=None) == expected._replace(config=None)
        assert specific_history_checkpoint.config["configurable"].items() >= target_config["configurable"].items()
        assert story.graph.get_state(expected.config) == expected


def test_the_first_checkpoint_by_id_holds_only_the_input_task(story: Story) -> None:
    history_checkpoints = list(story.graph.get_state_history(config=story.config))
    snapshot = story.graph.get_state(config=history_checkpoints[3].config)
    assert snapshot.values == {}
    assert snapshot.next == ("__start__",)
    assert snapshot.parent_config is None
    assert snapshot.metadata == {"source": "input", "step": -1, "parents": {}}
    (task,) = snapshot.tasks
    assert (task.name, task.path, task.error, task.interrupts, task.state, task.result) == (
        "__start__",
        ("__pregel_pull", "__start__"),
        None,
        (),
        None,
        {"topic": "猫咪"},
    )
