"""Going back to a checkpoint and running what follows it again."""

# mypy: ignore-errors
# The graph is a user's code as printed in the course that this library follows; only imports and model differ.
from typing import Any, TypedDict

import pytest

from persistence.sqlite import SqliteSaver
from runtime.graph import END, START, StateGraph
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


CONFIG = {"configurable": {"thread_id": "chapter03-08"}}
FIRST = {"final_output": "关于猫咪:布偶猫的七言绝句:诗《猫咪:布偶猫》\n 笑话:笑话《猫咪:布偶猫》\n"}


class Program:
    """The course's program; the model numbers its answers so that a repeated call shows."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.model = FakeModel(AIMessage)
        self.topics = ["布偶猫", "狸花猫", "金渐层"]
        self.topic_index = 0
        self.edition = ""

        def node_change_topic(state: InputState) -> OverAllState:
            self.events.append("node_change_topic")
            sub_topic = self.topics[self.topic_index]
            self.topic_index += 1
            self.topic_index %= len(self.topics)
            return {"topic": f"{state['topic']}:{sub_topic}"}

        def node_poem(state: OverAllState) -> OverAllState:
            self.events.append("node_poem")
            topic = state["topic"]
            poem = self.model.invoke([HumanMessage(f"写一首关于{topic}主题的七言绝句")]).content
            return {"poem": poem + self.edition}

        def node_joke(state: OverAllState) -> OverAllState:
            self.events.append("node_joke")
            topic = state["topic"]
            joke = self.model.invoke([HumanMessage(f"写一首关于{topic}主题的笑话")]).content
            return {"joke": joke + self.edition}

        def node_output(state: OverAllState) -> OutputState:
            self.events.append("node_output")
            topic = state["topic"]
            poem = state["poem"]
            joke = state["joke"]
            final_output = f"关于{topic}的七言绝句:{poem}\n 笑话:{joke}\n"
            return {"final_output": final_output}

        builder = StateGraph(state_schema=OverAllState, input_schema=InputState, output_schema=OutputState)
        builder.add_node("node_change_topic", node_change_topic)
        builder.add_node("node_poem", node_poem)
        builder.add_node("node_joke", node_joke)
        builder.add_node("node_output", node_output)
        builder.add_edge(START, "node_change_topic")
        builder.add_edge("node_change_topic", "node_poem")
        builder.add_edge("node_change_topic", "node_joke")
        builder.add_edge("node_poem", "node_output")
        builder.add_edge("node_joke", "node_output")
        builder.add_edge("node_output", END)
        self.builder = builder

    def first_run(self, database: str) -> list[Any]:
        """Run once and return the history."""
        with SqliteSaver.from_conn_string(database) as checkpointer:
            graph = self.builder.compile(checkpointer=checkpointer)
            res = graph.invoke({"topic": "猫咪"}, config=CONFIG)
            assert res == FIRST
            return list(graph.get_state_history(config=CONFIG))


def test_the_first_run_is_recorded_step_by_step(database: str) -> None:
    history_checkpoints = Program().first_run(database)
    assert [(s.metadata["step"], s.metadata["source"], s.next) for s in history_checkpoints] == [
        (3, "loop", ()),
        (2, "loop", ("node_output",)),
        (1, "loop", ("node_poem", "node_joke")),
        (0, "loop", ("node_change_topic",)),
        (-1, "input", ("__start__",)),
    ]
    assert [{t.name: t.result for t in s.tasks} for s in history_checkpoints] == [
        {},
        {"node_output": FIRST},
        {"node_poem": {"poem": "诗《猫咪:布偶猫》"}, "node_joke": {"joke": "笑话《猫咪:布偶猫》"}},
        {"node_change_topic": {"topic": "猫咪:布偶猫"}},
        {"__start__": {"topic": "猫咪"}},
    ]


def test_replay_runs_what_follows_the_checkpoint_and_nothing_before(database: str) -> None:
    program = Program()
    program.first_run(database)
    program.events.clear()
    program.edition = "(二)"

    with SqliteSaver.from_conn_string(database) as checkpointer:
        graph = program.builder.compile(checkpointer=checkpointer)
        history_checkpoints = list(graph.get_state_history(config=CONFIG))
        new_checkpoint = None
        for checkpoint in history_checkpoints:
            if checkpoint.next == ("node_poem", "node_joke"):
                new_checkpoint = checkpoint
                break
        res = graph.invoke(None, config=new_checkpoint.config)

    assert sorted(program.events[:2]) == ["node_joke", "node_poem"]
    assert program.events[2:] == ["node_output"]
    assert res == {"final_output": "关于猫咪:布偶猫的七言绝句:诗《猫咪:布偶猫》(二)\n 笑话:笑话《猫咪:布偶猫》(二)\n"}


def test_replay_makes_a_new_branch_and_keeps_the_old_one(database: str) -> None:
    program = Program()
    before = program.first_run(database)
    with SqliteSaver.from_conn_string(database) as checkpointer:
        graph = program.builder.compile(checkpointer=checkpointer)
        graph.invoke(None, config=before[2].config)
        after = list(graph.get_state_history(config=CONFIG))

    assert after[3:] == before
    assert [(s.metadata["step"], s.metadata["source"], s.next) for s in after[:3]] == [
        (4, "loop", ()),
        (3, "loop", ("node_output",)),
        (2, "fork", ("node_poem", "node_joke")),
    ]
    assert [s.parent_config for s in after[:3]] == [after[1].config, after[2].config, before[2].config]
    assert after[2].values == before[2].values == {"topic": "猫咪:布偶猫"}


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (0, []),
        (1, ["node_output"]),
        (2, ["node_joke", "node_output", "node_poem"]),
        (3, ["node_change_topic", "node_joke", "node_output", "node_poem"]),
        (4, ["node_change_topic", "node_joke", "node_output", "node_poem"]),
    ],
)
def test_replay_from_any_checkpoint(database: str, position: int, expected: list[str]) -> None:
    program = Program()
    history = program.first_run(database)
    program.events.clear()
    program.topic_index = 0
    with SqliteSaver.from_conn_string(database) as checkpointer:
        graph = program.builder.compile(checkpointer=checkpointer)
        assert graph.invoke(None, config=history[position].config) == FIRST
    assert sorted(program.events) == expected


def test_the_latest_checkpoint_without_an_id_is_the_new_branch(database: str) -> None:
    program = Program()
    before = program.first_run(database)
    program.edition = "(二)"
    with SqliteSaver.from_conn_string(database) as checkpointer:
        graph = program.builder.compile(checkpointer=checkpointer)
        graph.invoke(None, config=before[2].config)
        assert graph.get_state(CONFIG).values["poem"] == "诗《猫咪:布偶猫》(二)"
        assert graph.get_state(before[0].config).values["poem"] == "诗《猫咪:布偶猫》"
