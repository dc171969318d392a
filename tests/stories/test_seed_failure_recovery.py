"""A node fails beside one that succeeds; the program is repaired and continues where it stopped."""

# mypy: ignore-errors
# The graph is a user's code as printed in the course that this library follows; only imports and model differ.
import threading
from typing import Any, TypedDict

import pytest

from persistence.sqlite import SqliteSaver
from runtime.graph import END, START, StateGraph
from runtime.types import Durability
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


POEM = "诗《猫咪:布偶猫》"
JOKE = "笑话《猫咪:布偶猫》"
FINAL = f"关于猫咪:布偶猫的七言绝句:{POEM}\n 笑话:{JOKE}\n"
CONFIG = {"configurable": {"thread_id": "chapter03-05"}}


class Program:
    """The course's program: sub-topics rotate, so a second run of node_change_topic would show."""

    def __init__(self, *, broken: bool) -> None:
        self.events: list[str] = []
        self.broken = broken
        self.model = FakeModel(AIMessage)
        self.topics = ["布偶猫", "狸花猫", "金渐层"]
        self.topic_index = 0
        self.poem_done = threading.Event()

    def node_change_topic(self, state: InputState) -> OverAllState:
        self.events.append("node_change_topic")
        sub_topic = self.topics[self.topic_index]
        self.topic_index += 1
        self.topic_index %= len(self.topics)
        return {"topic": f"{state['topic']}:{sub_topic}"}

    def node_poem(self, state: OverAllState) -> OverAllState:
        self.events.append("node_poem")
        topic = state["topic"]
        poem = self.model.invoke([HumanMessage(f"写一首关于{topic}主题的七言绝句")]).content
        return {"poem": poem}

    def node_joke(self, state: OverAllState) -> OverAllState:
        self.events.append("node_joke")
        topic = state["topic"]
        if self.broken:
            assert self.poem_done.wait(10)  # printed as time.sleep(5): the poem is finished by then
            raise Exception("人为抛异常")  # noqa: TRY002 - as printed
        joke = self.model.invoke([HumanMessage(f"写一首关于{topic}主题的笑话")]).content
        return {"joke": joke}

    def node_output(self, state: OverAllState) -> OutputState:
        self.events.append("node_output")
        topic = state["topic"]
        poem = state["poem"]
        joke = state["joke"]
        final_output = f"关于{topic}的七言绝句:{poem}\n 笑话:{joke}\n"
        return {"final_output": final_output}

    def compile(self, checkpointer: Any) -> Any:
        builder = StateGraph(state_schema=OverAllState, input_schema=InputState, output_schema=OutputState)
        builder.add_node("node_change_topic", self.node_change_topic)
        builder.add_node("node_poem", self.node_poem)
        builder.add_node("node_joke", self.node_joke)
        builder.add_node("node_output", self.node_output)
        builder.add_edge(START, "node_change_topic")
        builder.add_edge("node_change_topic", "node_poem")
        builder.add_edge("node_change_topic", "node_joke")
        builder.add_edge("node_poem", "node_output")
        builder.add_edge("node_joke", "node_output")
        builder.add_edge("node_output", END)
        return builder.compile(checkpointer=checkpointer)

    def run_until_it_breaks(self, graph: Any, **options: Any) -> BaseException:
        """Run the broken graph; node_joke raises once the poem's result has been seen."""
        with pytest.raises(Exception, match="人为抛异常") as caught:
            for _mode, update in graph.stream(
                {"topic": "猫咪"}, config=CONFIG, stream_mode=["updates", "custom"], **options
            ):
                if "node_poem" in update:
                    self.poem_done.set()
        return caught.value


def fail(database: str, **options: Any) -> tuple[Program, BaseException]:
    program = Program(broken=True)
    with SqliteSaver.from_conn_string(database) as checkpointer:
        error = program.run_until_it_breaks(program.compile(checkpointer), **options)
    return program, error


def test_the_users_exception_reaches_the_caller_and_names_the_task(database: str) -> None:
    program, error = fail(database)
    assert type(error) is Exception
    assert error.args == ("人为抛异常",)
    assert sorted(program.events[1:]) == ["node_joke", "node_poem"]
    assert program.events[0] == "node_change_topic"

    with SqliteSaver.from_conn_string(database) as checkpointer:
        snapshot = Program(broken=True).compile(checkpointer).get_state(CONFIG)
    (joke,) = [task for task in snapshot.tasks if task.name == "node_joke"]
    notes = "\n".join(error.__notes__)
    assert "node_joke" in notes
    assert joke.id in notes


def test_the_history_records_what_finished_and_what_failed(database: str) -> None:
    fail(database)
    with SqliteSaver.from_conn_string(database) as checkpointer:
        history = list(Program(broken=True).compile(checkpointer).get_state_history(config=CONFIG))

    assert [(s.metadata, s.next, s.values) for s in history] == [
        ({"source": "loop", "step": 1, "parents": {}}, ("node_poem", "node_joke"), {"topic": "猫咪:布偶猫"}),
        ({"source": "loop", "step": 0, "parents": {}}, ("node_change_topic",), {"topic": "猫咪"}),
        ({"source": "input", "step": -1, "parents": {}}, ("__start__",), {}),
    ]
    assert [s.parent_config for s in history] == [s.config for s in history[1:]] + [None]
    tasks = [[(t.name, t.path, t.error, t.interrupts, t.state, t.result) for t in s.tasks] for s in history]
    assert tasks == [
        [
            ("node_poem", ("__pregel_pull", "node_poem"), None, (), None, {"poem": POEM}),
            ("node_joke", ("__pregel_pull", "node_joke"), "Exception('人为抛异常')", (), None, None),
        ],
        [
            (
                "node_change_topic",
                ("__pregel_pull", "node_change_topic"),
                None,
                (),
                None,
                {"topic": "猫咪:布偶猫"},
            )
        ],
        [("__start__", ("__pregel_pull", "__start__"), None, (), None, {"topic": "猫咪"})],
    ]


def test_the_live_view_shows_only_the_failed_node_as_next(database: str) -> None:
    fail(database)
    with SqliteSaver.from_conn_string(database) as checkpointer:
        snapshot = Program(broken=True).compile(checkpointer).get_state(CONFIG)
    assert snapshot.next == ("node_joke",)
    assert snapshot.values == {"topic": "猫咪:布偶猫", "poem": POEM}


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_the_repaired_program_continues_without_running_the_poem_again(database: str, durability: Durability) -> None:
    fail(database, durability=durability)

    repaired = Program(broken=False)
    with SqliteSaver.from_conn_string(database) as checkpointer:
        new_graph = repaired.compile(checkpointer)
        res = new_graph.invoke(None, config=CONFIG, durability=durability)
        history = list(new_graph.get_state_history(CONFIG))

    assert res == {"final_output": FINAL}
    assert repaired.events == ["node_joke", "node_output"]
    assert history[0].next == ()
    assert history[0].values == {"topic": "猫咪:布偶猫", "poem": POEM, "joke": JOKE, "final_output": FINAL}
    assert history[0].metadata == {"source": "loop", "step": 3, "parents": {}}


def test_the_history_keeps_the_error_beside_the_later_result(database: str) -> None:
    fail(database)
    with SqliteSaver.from_conn_string(database) as checkpointer:
        new_graph = Program(broken=False).compile(checkpointer)
        new_graph.invoke(None, config=CONFIG)
        history = list(new_graph.get_state_history(CONFIG))
    assert [s.metadata["step"] for s in history] == [3, 2, 1, 0, -1]
    poem, joke = history[2].tasks
    assert (poem.result, poem.error) == ({"poem": POEM}, None)
    assert (joke.result, joke.error) == ({"joke": JOKE}, "Exception('人为抛异常')")


def test_a_finished_thread_has_nothing_left_to_continue(database: str) -> None:
    fail(database)
    repaired = Program(broken=False)
    with SqliteSaver.from_conn_string(database) as checkpointer:
        new_graph = repaired.compile(checkpointer)
        first = new_graph.invoke(None, config=CONFIG)
        again = new_graph.invoke(None, config=CONFIG)
    assert first == again == {"final_output": FINAL}
    assert repaired.events == ["node_joke", "node_output"]
