"""A notebook, as people write one: blocking calls, awaits, questions and pictures, run by a real kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

# The first test pays for the kernel; its libraries warn of things that are not ours.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(90, func_only=False), pytest.mark.filterwarnings("default")]

ROOT = Path(__file__).parents[2]

CELLS = {
    "a graph": f"""
        import sys
        sys.path.insert(0, {str(ROOT)!r})

        import operator
        from typing import Annotated, TypedDict

        from persistence.memory import InMemorySaver
        from persistence.sqlite import SqliteSaver
        from runtime.graph import END, START, StateGraph
        from runtime.types import Command, interrupt

        class State(TypedDict):
            log: Annotated[list[str], operator.add]

        async def draft(state: State):
            return {{"log": ["draft"]}}

        def review(state: State):
            return {{"log": [interrupt("Publish?")]}}

        builder = StateGraph(State).add_sequence([draft, review])
        builder.add_edge(START, "draft").add_edge("review", END)
        thread = {{"configurable": {{"thread_id": "1"}}}}
        """,
    "blocking": """
        with SqliteSaver.from_conn_string("threads.sqlite") as saver:
            graph = builder.compile(saver)
            print([next(iter(chunk)) for chunk in graph.stream({"log": []}, thread)])
            print(graph.get_state(thread).next)
            print(graph.invoke(Command(resume="yes"), thread))
            print([state.metadata["step"] for state in graph.get_state_history(thread)])
        """,
    "the file goes on": """
        with SqliteSaver.from_conn_string("threads.sqlite") as saver:
            builder.compile(saver).get_state(thread).values
        builder.compile(InMemorySaver()).get_state(thread).values
        """,
    "await": """
        async with SqliteSaver("threads.sqlite") as saver:
            graph = builder.compile(saver)
            other = {"configurable": {"thread_id": "2"}}
            print((await graph.ainvoke({"log": []}, other))["__interrupt__"][0].value)
            print([chunk async for chunk in graph.astream(Command(resume="no"), other)])
            print((await graph.aget_state(thread)).values)
        """,
    "both doors of one graph in memory": """
        graph = builder.compile(InMemorySaver())
        graph.invoke({"log": ["blocking"]}, thread)
        print((await graph.ainvoke(Command(resume="await"), thread))["log"])
        """,
    "a saver kept open over cells": """
        keeper = SqliteSaver("threads.sqlite")
        kept = builder.compile(keeper.__enter__())
        """,
    "a later cell": """
        print(kept.get_state(thread).values)
        keeper.__exit__(None, None, None)
        """,
    "waiting where the loop is busy with the cell": """
        async with SqliteSaver("threads.sqlite") as saver:
            builder.compile(saver).get_state(thread)
        """,
    "a thread may wait": """
        import asyncio
        async with SqliteSaver("threads.sqlite") as saver:
            print((await asyncio.to_thread(builder.compile(saver).get_state, thread)).values)
        """,
    "awaiting on another loop than the savers": """
        with SqliteSaver("threads.sqlite") as saver:
            await builder.compile(saver).aget_state(thread)
        """,
    "a broken node": """
        def broken(state: State):
            raise ValueError("no such word")

        StateGraph(State).add_node(broken).add_edge(START, "broken").compile().invoke({"log": []})
        """,
    "display": "display(graph)",
    "last line": "graph",
    "outline": "graph.get_graph(xray=True)",
}
FAILING = {"waiting where the loop is busy with the cell", "awaiting on another loop than the savers", "a broken node"}


def code(text: str) -> str:
    lines = text.strip("\n").split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[margin:] for line in lines).strip()


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each cell put out, by the cell's name."""
    folder = tmp_path_factory.mktemp("notebook")
    made: Any = nbformat.v4
    written = made.new_notebook()
    for name, text in CELLS.items():
        tags = ["raises-exception"] if name in FAILING else []
        written.cells.append(made.new_code_cell(code(text), metadata={"tags": tags}))
    path = folder / "graph.ipynb"
    nbformat.write(written, path)  # type: ignore[no-untyped-call]

    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    where = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=60, kernel_name="python3", coalesce_streams=True, resources=where).execute()
    return dict(zip(CELLS, (cell.outputs for cell in notebook.cells), strict=True))


def printed(outputs: Any) -> list[str]:
    """Return the lines on standard output, where nothing else was put out."""
    assert [output.output_type for output in outputs] == ["stream"], outputs
    assert outputs[0].name == "stdout"
    return str(outputs[0].text).splitlines()


def test_blocking_calls_run_while_the_kernels_loop_is_busy(cells: dict[str, Any]) -> None:
    assert cells["a graph"] == []
    assert printed(cells["blocking"]) == [
        "['draft', '__interrupt__']",
        "('review',)",
        "{'log': ['draft', 'yes']}",
        "[2, 1, 0, -1]",
    ]


def test_what_a_cell_stored_is_there_for_the_next(cells: dict[str, Any]) -> None:
    (result,) = cells["the file goes on"]
    assert result.data["text/plain"] == "{}"
    assert printed(cells["await"])[2] == "{'log': ['draft', 'yes']}"


def test_await_needs_no_event_loop_of_its_own(cells: dict[str, Any]) -> None:
    assert printed(cells["await"])[:2] == ["Publish?", "[{'review': {'log': ['no']}}]"]
    assert printed(cells["both doors of one graph in memory"]) == ["['blocking', 'draft', 'await']"]


def test_a_saver_may_stay_open_over_cells(cells: dict[str, Any]) -> None:
    assert cells["a saver kept open over cells"] == []
    assert printed(cells["a later cell"]) == ["{'log': ['draft', 'yes']}"]


def test_a_wait_that_would_never_end_is_refused_and_names_the_await(cells: dict[str, Any]) -> None:
    (error,) = cells["waiting where the loop is busy with the cell"]
    assert error.ename == "BlockingCallError"
    assert "Await aget_state()" in error.evalue
    assert printed(cells["a thread may wait"]) == ["{'log': ['draft', 'yes']}"]


def test_a_saver_of_the_blocking_door_is_not_awaited_and_says_why(cells: dict[str, Any]) -> None:
    (error,) = cells["awaiting on another loop than the savers"]
    assert error.ename == "SaverLoopError"
    assert "In async code open it by 'async with'" in error.evalue


def test_an_error_of_a_node_is_shown_as_it_was_raised(cells: dict[str, Any]) -> None:
    (error,) = cells["a broken node"]
    assert (error.ename, error.evalue.splitlines()[0]) == ("ValueError", "no such word")
    assert any("def broken" in line or "broken(state" in line for line in error.traceback)


def test_the_graph_shows_its_picture(cells: dict[str, Any]) -> None:
    (displayed,), (result,), (outlined,) = cells["display"], cells["last line"], cells["outline"]
    assert displayed.output_type == "display_data"
    assert result.output_type == outlined.output_type == "execute_result"
    picture = displayed.data["image/svg+xml"]
    assert picture.startswith("<svg")
    assert all(name in picture for name in ("draft", "review"))
    assert result.data["image/svg+xml"] == outlined.data["image/svg+xml"] == picture
    assert "CompiledStateGraph" in result.data["text/plain"]
