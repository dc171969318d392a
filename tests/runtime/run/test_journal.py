"""The journal: what is sent when, in which order, and what each mode of durability keeps back."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from persistence.contracts.checkpoint import Unit
from persistence.errors import BackendError, CheckpointConflictError
from persistence.memory import InMemorySaver
from runtime.engine.applying import apply
from runtime.engine.cells import Cells
from runtime.engine.checkpointing import checkpoint_of
from runtime.engine.tasks import Moment, Task
from runtime.errors import ThreadConflictError
from runtime.run.adapting import SETTLED, ContractDoor
from runtime.run.journal import Journal
from runtime.types.ids import CheckpointIds
from tests.runtime.engine.sketching import described, plan_of
from tests.stories.recording import RecordingSaver

PLAN = plan_of(described("a", "b"))
IDS = CheckpointIds()


class Receipt:
    """A receipt that is settled by hand."""

    def __init__(self) -> None:
        self.done = False
        self.error: BaseException | None = None
        self.event = anyio.Event()

    def settle(self, error: BaseException | None = None) -> None:
        self.done, self.error = True, error
        self.event.set()

    async def wait(self) -> None:
        await self.event.wait()
        if self.error is not None:
            raise self.error


class Noting(InMemorySaver):
    """Notes the units that pass; with ``slow`` their receipts are settled by hand."""

    def __init__(self, *, slow: bool = False, full: bool = False) -> None:
        super().__init__()
        self.units: list[Unit] = []
        self.encoded: dict[int, tuple[Any, Unit]] = {}
        """With the request, so that its id stays its own."""
        self.receipts: list[Receipt] = []
        self.slow = slow
        self.full = full
        encode = self.encode

        def noting(unit: Unit) -> Any:
            request = encode(unit)
            self.encoded[id(request)] = (request, unit)
            return request

        self.encode = noting

    def send_nowait(self, request: Any) -> Any:
        if self.full:
            raise anyio.WouldBlock
        self.units.append(self.encoded[id(request)][1])
        done = super().send_nowait(request)
        if not self.slow:
            return done
        self.receipts.append(Receipt())
        return self.receipts[-1]

    async def send(self, request: Any) -> Any:
        self.full = False
        return self.send_nowait(request)


class Book:
    """A run that records, superstep by superstep."""

    def __init__(self, durability: Any, saver: Any = None) -> None:
        self.saver = saver if saver is not None else Noting()
        self.journal = Journal(self.saver, "t", "", durability, {"user": "u"}, {})
        self.journal.heads[""] = ""
        self.cells = Cells(PLAN, "salt")
        self.head: str | None = None
        self.step = -1

    def task(self, name: str, value: int) -> Task:
        """Return a finished task of the current superstep."""
        task = Task(PLAN.nodes[name], Moment(self.head or "", "", self.step, 9))
        task.writes = [("last" if name == "a" else "any", value)]
        return task

    async def superstep(self, *tasks: Task) -> None:
        """Fold and record."""
        apply(self.cells, list(tasks))
        minted = IDS.mint(self.step, self.head)
        await self.journal.checkpoint(self.cells, minted, self.head, "loop", self.step)
        self.head, self.step = minted, self.step + 1

    def store(self, checkpoint_id: str) -> None:
        """Store what the run starts from."""
        unit = Unit("t", "", checkpoint=_checkpoint(self.cells, checkpoint_id))
        self.saver.send_nowait(self.saver.encode(unit))

    @property
    def kinds(self) -> list[tuple[int, bool]]:
        """How many tasks' writes each unit holds, and whether a checkpoint."""
        return [(len(unit.writes), unit.checkpoint is not None) for unit in self.saver.units]


# ---- what travels with what ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_the_last_tasks_writes_travel_with_the_checkpoint_they_lead_to(durability: str) -> None:
    book = Book(durability)
    await book.superstep()
    first, last = book.task("a", 1), book.task("b", 2)
    book.journal.finished(first)
    await book.journal.flush()
    book.journal.finished(last)
    await book.superstep(first, last)
    assert book.kinds == [(0, True), (1, False), (1, True)]
    loop = book.saver.units[2]
    assert loop.writes[0].task_id == last.id
    assert loop.writes[0].checkpoint_id == loop.parent_id == book.saver.units[1].writes[0].checkpoint_id


async def test_exit_keeps_one_unit_for_the_end() -> None:
    book = Book("exit")
    for number in range(4):
        task = book.task("a", number)
        book.journal.finished(task)
        await book.journal.flush()
        await book.superstep(task)
    left = book.task("b", 9)
    book.journal.finished(left)
    await book.journal.flush()
    assert book.kinds == []
    await book.journal.close(book.cells)
    assert book.kinds == [(1, True)]
    unit = book.saver.units[0]
    assert unit.checkpoint is not None
    assert (unit.checkpoint["id"], unit.parent_id, unit.metadata["step"]) == (book.head, None, 2)
    assert unit.writes[0].task_id == left.id


async def test_exit_without_a_new_checkpoint_keeps_the_writes() -> None:
    book = Book("exit")
    book.store("stored")
    book.journal.hold("stored", "task", "path", [("last", 1)])
    await book.journal.close(book.cells)
    assert book.kinds == [(0, True), (1, False)]


async def test_exit_with_nothing_to_keep_sends_nothing() -> None:
    for durability in ("exit", "async"):
        book = Book(durability)
        await book.journal.close(book.cells)
        assert book.kinds == []


async def test_a_subgraph_that_starts_afresh_each_time_is_not_worth_its_exit() -> None:
    for well, kinds in ((True, []), (False, [(0, True)])):
        book = Book("exit")
        book.journal.keeps_exit = False
        await book.superstep()
        await book.journal.close(book.cells, well=well)
        assert book.kinds == kinds


async def test_what_others_may_change_is_encoded_when_it_is_handed_over() -> None:
    book = Book("exit")
    items = [1]
    book.store("c")
    book.journal.hold("c", "task", "path", [("items", items)])
    await book.journal.flush(frozen=True)
    items.append(2)
    await book.journal.close(book.cells)
    rows = book.saver._tables.threads["t"][""].writes["c"]
    assert [row[7] for row in rows.values()] == [book.saver.serde.dumps_typed([1])[1]]


async def test_writes_can_be_taken_back_until_they_are_sent() -> None:
    book = Book("async")
    task = book.task("a", 1)
    book.journal.finished(task)
    assert book.journal.withdraw() == [task]
    assert book.journal.withdraw() == []
    await book.journal.flush()
    assert book.kinds == []


async def test_only_what_changed_is_sent_and_the_programs_facts_with_every_checkpoint() -> None:
    book = Book("async")
    await book.superstep(book.task("a", 1))
    await book.superstep(book.task("b", 2))
    assert [sorted(unit.changed) for unit in book.saver.units] == [["last"], ["any"]]
    assert [dict(unit.metadata) for unit in book.saver.units] == [
        {"user": "u", "source": "loop", "step": step, "parents": {}} for step in (-1, 0)
    ]


# ---- the head that each checkpoint follows ---------------------------------------------------------------------------


@given(st.sampled_from(["sync", "async", "exit"]), st.lists(st.integers(0, 2), max_size=6))
@settings(max_examples=30)
def test_each_checkpoint_expects_the_one_before_it(durability: str, widths: list[int]) -> None:
    async def main() -> None:
        book = Book(durability)
        for width in widths:
            names = "ab"[:width] if book.head else ""  # at first there is nothing that tasks could start from
            tasks = [book.task(name, 1) for name in names]
            for task in tasks:
                book.journal.finished(task)
                await book.journal.flush()
            await book.superstep(*tasks)
        await book.journal.close(book.cells)
        made = [unit for unit in book.saver.units if unit.checkpoint is not None]
        assert [unit.expected_head for unit in made] == ["", *(unit.checkpoint["id"] for unit in made[:-1])][
            : len(made)
        ]
        assert len(made) == (min(1, len(widths)) if durability == "exit" else len(widths))
        assert book.journal.heads[""] == (book.head or "")

    anyio.run(main)


async def test_a_head_that_is_newer_than_a_fork_stays_the_head() -> None:
    book = Book("async")
    book.journal.heads[""] = newest = CheckpointIds(lambda: 2 * 10**18).mint(5)
    request = book.saver.encode(Unit("t", "", checkpoint=_checkpoint(book.cells, newest)))
    book.saver.send_nowait(request)
    await book.superstep()
    assert book.saver.units[-1].expected_head == newest
    assert book.journal.heads[""] == newest


def _checkpoint(cells: Cells, checkpoint_id: str) -> Any:
    return checkpoint_of(cells, checkpoint_id, "now")


async def test_what_was_not_accepted_moves_no_head() -> None:
    saver = Noting(slow=True, full=True)
    book = Book("async", saver)

    async def refuse(request: Any) -> Any:
        msg = "closed"
        raise BackendError(msg)

    saver.send = refuse  # type: ignore[method-assign]
    with pytest.raises(BackendError, match="closed"):
        await book.superstep()
    assert book.journal.heads[""] == ""


# ---- receipts --------------------------------------------------------------------------------------------------------


async def settle() -> None:
    """Let every task go as far as it can."""
    for _ in range(10):
        await anyio.sleep(0)


@pytest.mark.parametrize(("durability", "waits"), [("sync", True), ("async", False)])
async def test_sync_goes_on_once_everything_is_durable(durability: str, waits: bool) -> None:
    book = Book(durability, Noting(slow=True))
    gone_on: list[str] = []

    async def run() -> None:
        await book.superstep()
        await book.journal.settle()
        gone_on.append("on")

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await settle()
        assert bool(gone_on) is not waits
        book.saver.receipts[0].settle()
    assert gone_on == ["on"]


async def test_a_run_hears_of_an_earlier_failure_at_its_next_superstep() -> None:
    book = Book("async", Noting(slow=True))
    await book.superstep()
    await book.superstep()
    await book.journal.settle()
    book.saver.receipts[0].settle()
    book.saver.receipts[1].settle(BackendError("no room"))
    with pytest.raises(BackendError, match="no room"):
        await book.journal.settle()


async def test_closing_waits_for_everything_and_raises_the_first_failure() -> None:
    book = Book("async", Noting(slow=True))
    for _ in range(3):
        await book.superstep()
    failures: list[BaseException] = []

    async def close() -> None:
        with pytest.raises(BackendError) as caught:
            await book.journal.close(book.cells)
        failures.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(close)
        for number, receipt in enumerate(book.saver.receipts):
            await settle()
            assert failures == []
            receipt.settle(BackendError(f"failure {number}") if number else None)
    assert str(failures[0]) == "failure 1"


@pytest.mark.parametrize("late", [True, False])
async def test_a_lost_race_is_told_as_such(late: bool) -> None:
    book = Book("sync", Noting(slow=True))
    await book.superstep()
    book.saver.receipts[0].settle(CheckpointConflictError("moved on"))
    with pytest.raises(ThreadConflictError, match="thread 't' on while") as caught:
        await (book.journal.arrived() if late else book.journal.settle())
    assert isinstance(caught.value.__cause__, CheckpointConflictError)


async def test_a_full_channel_is_waited_for_whoever_cancels_meanwhile() -> None:
    saver = Noting(full=True)
    book = Book("async", saver)
    entered, room = anyio.Event(), anyio.Event()
    send = saver.send

    async def slowly(request: Any) -> Any:
        entered.set()
        await room.wait()
        return await send(request)

    saver.send = slowly  # type: ignore[method-assign]
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(book.superstep)
            await entered.wait()
            scope.cancel()
            room.set()
    assert book.kinds == [(0, True)]
    assert await saver.aget_tuple({"configurable": {"thread_id": "t"}}) is not None


# ---- savers of third parties -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("durability", ["sync", "async"])
async def test_a_saver_of_a_third_party_gets_writes_before_the_checkpoint_they_lead_to(durability: str) -> None:
    saver = RecordingSaver()
    book = Book(durability, saver)
    await book.superstep()
    tasks = [book.task("a", 1), book.task("b", 2)]
    for task in tasks:
        book.journal.finished(task)
    await book.superstep(*tasks)
    assert saver.events == [
        "put -1",
        "put -1 done",
        "writes a",
        "writes a done",
        "writes b",
        "writes b done",
        "put 0",
        "put 0 done",
    ]


async def test_a_saver_of_a_third_party_owns_what_it_is_given() -> None:
    given: list[Any] = []

    class Greedy(RecordingSaver):
        async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
            given.append((config, new_versions))
            stored = await super().aput(config, checkpoint, metadata, new_versions)
            for part in (*checkpoint.values(), *checkpoint["versions_seen"].values(), metadata):
                if isinstance(part, dict):
                    part.clear()
            return stored

    book = Book("async", Greedy())
    await book.superstep(book.task("a", 1))
    await book.superstep(book.task("a", 2))
    assert book.cells.stored["last"] == 2
    assert book.cells.versions
    assert book.cells.seen == {"a": {}}
    assert [sorted(new_versions) for _, new_versions in given] == [["last"], ["last"]]
    assert given[1][0]["configurable"]["checkpoint_id"] is not None


async def test_the_door_to_a_third_partys_saver() -> None:
    door = ContractDoor(RecordingSaver())
    unit = Unit("t", "")
    assert door.encode(unit) is unit
    with pytest.raises(anyio.WouldBlock):
        door.send_nowait(unit)
    assert await door.send(unit) is SETTLED
    await SETTLED.wait()
    door.register_types([int])
    assert not door.inline
