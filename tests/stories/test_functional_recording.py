"""When results of tasks are recorded, in each durability mode."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import pytest

from runtime.errors import GraphDrained
from runtime.func import entrypoint, task
from runtime.runtime import RunControl
from tests.stories.graphs import CONFIG, collect, steps
from tests.stories.recording import RecordingSaver

pytestmark = pytest.mark.anyio


class Shaky:
    """A task that fails until it is mended, and how often each call of it ran."""

    def __init__(self) -> None:
        self.runs: Counter[Any] = Counter()
        self.broken: set[Any] = set()
        self.work = task(self._work, name="work")

    async def _work(self, given: Any) -> Any:
        self.runs[given] += 1
        await anyio.lowlevel.checkpoint()
        if given in self.broken:
            raise ValueError(given)
        return given


# ---- what is recorded when -------------------------------------------------------------------------------------------


async def test_results_are_stored_as_they_come_and_before_the_checkpoint_they_led_to() -> None:
    saver = RecordingSaver()
    shaky = Shaky()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        first = await shaky.work(1)
        saver.events.append(f"got {first}")
        return [first, await shaky.work(2)]

    await flow.ainvoke(1, CONFIG, durability="sync")
    assert [event for event in saver.events if "done" not in event] == [
        "put -1",
        "writes 0000000001",
        "got 1",
        "writes 0000000001",
        "writes flow",
        "put 0",
    ]
    saver.events.clear()
    await flow.ainvoke(1, CONFIG, durability="exit")
    assert [event for event in saver.events if "done" not in event] == ["got 1", "put 2"]


async def test_in_exit_mode_a_failed_call_keeps_what_finished(saver: Any) -> None:
    shaky = Shaky()
    shaky.broken = {2}

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return [await shaky.work(1), await shaky.work(2)]

    with pytest.raises(ValueError, match="2"):
        await flow.ainvoke(1, CONFIG, durability="exit")
    assert steps([one async for one in flow.aget_state_history(CONFIG)]) == [(-1, "input", ("flow",))]
    shaky.broken.clear()
    assert await flow.ainvoke(None, CONFIG, durability="exit") == [1, 2]
    assert shaky.runs == {1: 1, 2: 2}


async def test_a_drain_lets_the_workflow_finish(saver: Any) -> None:
    shaky = Shaky()
    control = RunControl()

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        control.request_drain("deploy")
        return await shaky.work(given)

    assert await flow.ainvoke(1, CONFIG, control=control) == 1
    with pytest.raises(GraphDrained, match="deploy"):
        await flow.ainvoke(2, CONFIG, control=control)
    assert await flow.ainvoke(None, CONFIG) == 2
    assert shaky.runs == {1: 1, 2: 1}


async def test_what_is_found_again_is_not_reported_again(saver: Any) -> None:
    shaky = Shaky()
    shaky.broken = {2}

    @entrypoint(checkpointer=saver)
    async def flow(given: int) -> Any:
        return [await shaky.work(1), await shaky.work(2)]

    with pytest.raises(ValueError, match="2"):
        await flow.ainvoke(1, CONFIG)
    shaky.broken.clear()
    assert await collect(flow.astream(None, CONFIG)) == [{"work": 2}, {"flow": [1, 2]}]


@pytest.mark.parametrize("caught", [True, False])
async def test_a_result_that_the_saver_refuses_fails_the_run_whatever_the_workflow_does(caught: bool) -> None:
    class Full(RecordingSaver):
        async def aput_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
            if "__pregel_push" in task_path:
                raise OSError("no room")
            await super().aput_writes(config, writes, task_id, task_path)

    shaky = Shaky()

    @entrypoint(checkpointer=Full())
    async def flow(given: int) -> Any:
        try:
            return await shaky.work(given)
        except OSError:
            if caught:
                return "made good"
            raise

    with pytest.raises(OSError, match="no room"):
        await flow.ainvoke(1, CONFIG)
    assert (await flow.aget_state(CONFIG)).next == ("flow",)
