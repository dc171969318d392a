"""When several nodes of a superstep fail, all failures are reported: the first raised, the others attached."""

import threading
from typing import Any

import pytest

from tests.stories.graphs import CONFIG, fan

pytestmark = pytest.mark.anyio


def failing_together(*errors: Exception) -> list[tuple[str, Any]]:
    """Sync nodes that meet, so that none can be cancelled before it fails, and then raise."""
    everyone = threading.Barrier(len(errors), timeout=10)

    def node(error: Exception) -> Any:
        def run(_state: Any) -> None:
            everyone.wait()
            raise error

        return run

    return [(f"bad{number}", node(error)) for number, error in enumerate(errors)]


async def test_the_first_is_raised_and_the_others_are_attached(saver: Any) -> None:
    errors = [ValueError("one"), KeyError("two"), OSError("three")]
    graph = fan(*failing_together(*errors), last=None).compile(checkpointer=saver)
    with pytest.raises((ValueError, KeyError, OSError)) as caught:
        await graph.ainvoke({}, CONFIG)
    assert caught.value in errors
    notes = "\n".join(caught.value.__notes__)
    for number, error in enumerate(errors):
        assert f"bad{number}" in notes
        if error is not caught.value:
            assert repr(error) in notes or str(error) in notes


async def test_all_are_recorded_on_their_tasks(saver: Any) -> None:
    graph = fan(*failing_together(ValueError("one"), KeyError("two")), last=None).compile(checkpointer=saver)
    with pytest.raises((ValueError, KeyError)):
        await graph.ainvoke({}, CONFIG)
    snapshot = await graph.aget_state(CONFIG)
    assert {task.name: task.error for task in snapshot.tasks} == {
        "bad0": "ValueError('one')",
        "bad1": "KeyError('two')",
    }
    assert set(snapshot.next) == {"bad0", "bad1"}


async def test_no_exception_group_reaches_the_caller(saver: Any) -> None:
    graph = fan(*failing_together(ValueError("one"), ValueError("two")), last=None).compile(checkpointer=saver)
    with pytest.raises(ValueError, match="one|two") as caught:
        await graph.ainvoke({}, CONFIG)
    assert not isinstance(caught.value, BaseExceptionGroup)
