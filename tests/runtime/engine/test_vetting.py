"""What the runtime keeps in stored checkpoints is of the kinds that it wrote, or the checkpoint is refused."""

from __future__ import annotations

from typing import Any

import pytest

from persistence.contracts.checkpoint import CheckpointTuple
from persistence.errors import CorruptDataError
from runtime.engine.vetting import vet
from runtime.types import Interrupt, Send
from runtime.types.policy import TimeoutPolicy

YEARS = range(10**15)


def made(kind: type[Any], **attributes: object) -> Any:
    """Return an instance as stored bytes make it: without asking the class."""
    value = object.__new__(kind)
    for name, attribute in attributes.items():
        object.__setattr__(value, name, attribute)
    return value


def found(
    metadata: dict[str, Any] | None = None, tasks: Any = None, writes: list[tuple[str, str, Any]] | None = None
) -> CheckpointTuple:
    values = {} if tasks is None else {"__pregel_tasks": tasks}
    checkpoint: Any = {"id": "c", "ts": "", "channel_values": values, "channel_versions": {}, "versions_seen": {}}
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "ns", "checkpoint_id": "c"}}
    return CheckpointTuple(config, checkpoint, metadata or {}, None, writes or [])


GOOD = {
    "nothing": found(),
    "metadata": found({"step": -1, "parents": {"": "b"}, "source": "loop"}),
    "a branch": found({"__branched__": {"at": "b", "left": "a"}, "__callers__": ["x", "y"]}),
    "keys of one's own": found({"branched": "mine", "callers": 3, "caller": None}),
    "Sends": found(tasks=[Send("n", YEARS), Send("n", None, timeout=TimeoutPolicy(run_timeout=1.5))]),
    "a question": found(writes=[("t", "__interrupt__", Interrupt("q", id="i"))]),
    "questions": found(writes=[("t", "__interrupt__", (Interrupt("q", id="i"), Interrupt(YEARS, id="j")))]),
    "an answer": found(writes=[("t", "__resume__", "yes"), ("u", "__resume__", [YEARS])]),
    "answers by id": found(writes=[("t", "__resume__", {"in_order": ["yes"], "by_id": {"i": 1}})]),
    "a result": found(writes=[("t", "a", YEARS), ("t", "__error__", 3), ("t", "__return__", YEARS)]),
    "a written Send": found(writes=[("t", "__pregel_tasks", Send("n", 1))]),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_the_runtime_writes_passes(name: str) -> None:
    assert vet(GOOD[name]) is GOOD[name]


BAD = {
    "a step that is text": found({"step": "1"}),
    "no step": found({"step": None}),
    "parents that are text": found({"parents": "b"}),
    "a parent that is a number": found({"parents": {"": 1}}),
    "a branch that began nowhere": found({"__branched__": {"at": 1, "left": "a"}}),
    "half a branch": found({"__branched__": {"at": "a"}}),
    "callers that are numbers": found({"__callers__": [1]}),
    "Sends that are text": found(tasks="nn"),
    "Sends that take years": found(tasks=YEARS),
    "a Send that is text": found(tasks=["n"]),
    "a Send to a number": found(tasks=[made(Send, node=1, arg=1, timeout=None)]),
    "a Send to nobody": found(tasks=[made(Send, arg=1, timeout=None)]),
    "a Send of nothing": found(tasks=[made(Send, node="n", timeout=None)]),
    "a Send with text as timeout": found(tasks=[made(Send, node="n", arg=1, timeout="1")]),
    "a Send with half a timeout": found(tasks=[made(Send, node="n", arg=1, timeout=made(TimeoutPolicy))]),
    "a question that is text": found(writes=[("t", "__interrupt__", "q")]),
    "questions that take years": found(writes=[("t", "__interrupt__", YEARS)]),
    "questions of which one is none": found(writes=[("t", "__interrupt__", [Interrupt("q", id="i"), 1])]),
    "a question without an id": found(
        writes=[("t", "__interrupt__", [made(Interrupt, value=1, response_schema=None)])]
    ),
    "a question that asks nothing": found(writes=[("t", "__interrupt__", [made(Interrupt, id="i")])]),
    "answers that take years": found(writes=[("t", "__resume__", {"in_order": YEARS, "by_id": {}})]),
    "answers by number": found(writes=[("t", "__resume__", {"in_order": [], "by_id": {1: 1}})]),
    "a written Send that is none": found(writes=[("t", "__pregel_tasks", ["n", 1])]),
}


@pytest.mark.parametrize("name", BAD)
def test_what_it_never_writes_is_refused_with_the_place_and_the_way_out(name: str) -> None:
    with pytest.raises(
        CorruptDataError, match="Checkpoint c of thread 't', namespace 'ns', .* by their checkpoint_id"
    ) as e:
        vet(BAD[name])
    assert e.value.checkpoint_id == "c"


@pytest.mark.parametrize("part", ["ts", "channel_values", "channel_versions", "versions_seen"])
def test_a_checkpoint_that_lacks_a_part_is_refused(part: str) -> None:
    cut = found()
    lacking: Any = {key: value for key, value in cut.checkpoint.items() if key != part}
    with pytest.raises(CorruptDataError, match=f"it has no {part}"):
        vet(cut._replace(checkpoint=lacking))
