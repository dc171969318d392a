"""Append-only channels are stored as what they gained: read back equal, from few rows, each item stored seldom."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from copy import deepcopy
from math import ceil, log
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from persistence.contracts.checkpoint import Addition, Mark, Unit
from persistence.memory import InMemorySaver
from runtime.channels import BinaryOperatorAggregate, DeltaChannel, Topic
from runtime.engine.applying import apply
from runtime.engine.cells import Cells
from runtime.engine.checkpointing import (
    GROUP,
    WORTHWHILE_ITEMS,
    WORTHWHILE_TEXT,
    checkpoint_of,
    keep,
    resting_on,
    take_changes,
)
from runtime.types import Overwrite
from runtime.types.ids import CheckpointIds
from tests.runtime.engine.sketching import described, plan_of, pulled


def gather(value: list[int], writes: Sequence[list[int]]) -> list[int]:
    return [*value, *(item for write in writes for item in write)]


def joined(left: list[int], right: list[int]) -> list[int]:
    """Concatenate; a reducer of a program's own, which storage knows nothing of."""
    return left + right


class Newest(BinaryOperatorAggregate[dict[str, int]]):
    """Keeps three keys."""

    def update(self, values: Sequence[dict[str, int]]) -> bool:
        changed = super().update(values)
        self.value = dict(list(self.value.items())[-3:])
        return changed


class State(TypedDict, total=False):
    items: Annotated[list[int], operator.add]
    text: Annotated[str, operator.add]
    delta: Annotated[list[int], DeltaChannel(gather)]
    topic: Annotated[list[int], Topic(int, accumulate=True)]
    plain: Annotated[list[int], joined]
    merged: Annotated[dict[str, Any], operator.or_]
    merged_there: Annotated[dict[str, Any], operator.ior]
    newest: Annotated[dict[str, int], Newest(dict, operator.or_)]


PLAN = plan_of(described("node", schema=State))
IDS = CheckpointIds()


class Thread:
    """One run on a thread: cells, and what of them is stored."""

    def __init__(self, saver: InMemorySaver, salt: str) -> None:
        self.saver = saver
        self.cells = Cells(PLAN, salt)
        self.kept: dict[str, Any] = {}
        self.head: str | None = None
        self.stored: list[dict[str, Any]] = []
        """What each checkpoint handed to storage."""

    def write(self, **values: Any) -> None:
        """Let a superstep pass."""
        apply(self.cells, [pulled(PLAN, "node", *values.items())])

    def save(self) -> str:
        """Store a checkpoint as a run does; return its id."""
        changed = take_changes(self.cells, self.kept)
        self.stored.append(changed)
        minted = IDS.mint(0, self.head)
        unit = Unit(
            "t",
            "",
            checkpoint=checkpoint_of(self.cells, minted, "now"),
            parent_id=self.head,
            changed=changed,
            lineage=self.cells.lineage,
        )
        receipt = self.saver.send_nowait(self.saver.encode(unit))
        assert receipt.error is None
        self.head = minted
        return minted

    def load(self, checkpoint_id: str) -> Any:
        """Go on from a stored checkpoint, as a run does; return the values that were read."""
        found = self.saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_id": checkpoint_id}})
        assert found is not None
        self.cells.restore(found.checkpoint, found.lineage)
        self.kept = keep(self.cells)
        self.head = checkpoint_id
        return {key: value for key, value in found.checkpoint["channel_values"].items() if key in PLAN.state}


def values(cells: Cells) -> dict[str, Any]:
    """Return copies of what is there: some is changed in place later on, as programs do."""
    return deepcopy({key: cells.stored[key] for key in PLAN.state if key in cells.stored})


# ---- read back equal, whatever happens -------------------------------------------------------------------------------

few = st.lists(st.integers(0, 99), max_size=4)
many = st.lists(st.integers(0, 99), min_size=5, max_size=40)
dicts = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9), max_size=4)


class Branches(RuleBasedStateMachine):
    """Several runs add, overwrite, fork and go on; every checkpoint stays what it was."""

    runs = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.saver = InMemorySaver()
        self.expected: dict[str, dict[str, Any]] = {}
        self.salts = 0

    @initialize(target=runs)
    def begin(self) -> Thread:
        return self._run()

    def _run(self) -> Thread:
        self.salts += 1
        return Thread(self.saver, f"salt{self.salts}")

    @rule(
        run=runs,
        items=few | many,
        text=st.text(max_size=3) | st.text(min_size=100, max_size=200),
        delta=few,
        topic=few,
        rounds=st.integers(1, 20),
    )
    def add(self, run: Thread, items: list[int], text: str, delta: list[int], topic: list[int], rounds: int) -> None:
        for _ in range(rounds):
            run.write(items=items, text=text, delta=delta, topic=topic, plain=items)
            self._save(run)

    @rule(run=runs, items=few | many)
    def several_supersteps_are_saved_as_one(self, run: Thread, items: list[int]) -> None:
        """As the mode does that saves when a run ends."""
        for _ in range(3):
            run.write(items=items, text="x")
        self._save(run)

    @rule(run=runs, writes=st.lists(dicts, min_size=1, max_size=20), at_once=st.integers(1, 3))
    def merge(self, run: Thread, writes: list[dict[str, Any]], at_once: int) -> None:
        for number, write in enumerate(writes):
            run.write(merged=write, merged_there=write)
            if number % at_once == 0:
                self._save(run)
        self._save(run)

    @rule(run=runs, write=dicts)
    def merge_what_was_changed_in_place(self, run: Thread, write: dict[str, Any]) -> None:
        """The value that is written again is the very object that is there."""
        held = run.cells.stored.get("merged", {}).get("log")
        log = held if type(held) is list else []
        log.append(len(log))
        run.write(merged={**write, "log": log})
        self._save(run)

    @rule(run=runs, value=dicts)
    def overwrite_what_was_merged(self, run: Thread, value: dict[str, Any]) -> None:
        run.write(merged=Overwrite(value))
        self._save(run)

    @rule(run=runs, items=few | many)
    def overwrite(self, run: Thread, items: list[int]) -> None:
        run.write(items=Overwrite(items), text=Overwrite("anew"), delta=Overwrite(items))
        self._save(run)

    @rule(run=runs)
    def rewrite_with_an_equal_beginning(self, run: Thread) -> None:
        """The items are equal and not the same: nothing may rest on that."""
        run.write(items=Overwrite([True if item == 1 else item for item in run.cells.stored.get("items", [])]))
        self._save(run)

    @rule(target=runs, run=runs, data=st.data())
    def fork(self, run: Thread, data: st.DataObject) -> Any:
        if not self.expected:
            return multiple()
        place = data.draw(st.sampled_from(sorted(self.expected)))
        branch = self._run()
        assert branch.load(place) == self.expected[place]
        return branch

    @rule(run=consumes(runs))
    def end(self, run: Thread) -> None:
        """The run is over; what it stored stays."""

    @rule(target=runs)
    def resume(self) -> Any:
        if not self.expected:
            return self._run()
        run = self._run()
        run.load(max(self.expected))
        return run

    def _save(self, run: Thread) -> None:
        self.expected[run.save()] = values(run.cells)
        for marks in run.cells.lineage.values():
            assert len(marks) <= rows_at_most(marks[-1].index)
            assert [mark.index for mark in marks] == chain(marks[-1].index)

    @invariant()
    def every_checkpoint_reads_as_it_was_written(self) -> None:
        for checkpoint_id in list(self.expected)[-3:]:
            assert Thread(self.saver, "reader").load(checkpoint_id) == self.expected[checkpoint_id]

    def teardown(self) -> None:
        for checkpoint_id, expected in self.expected.items():
            assert Thread(self.saver, "reader").load(checkpoint_id) == expected


Branches.TestCase.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)
TestBranches = pytest.mark.slow(Branches.TestCase)


# ---- the shape -------------------------------------------------------------------------------------------------------


def chain(index: int) -> list[int]:
    """Return the additions that are read for an addition, oldest first."""
    rows = [index]
    while rows[0]:
        rows.insert(0, resting_on(rows[0]))
    return rows


def rows_at_most(index: int) -> int:
    return 1 + (GROUP - 1) * levels(index)


def levels(index: int) -> int:
    return ceil(log(index + 1, GROUP)) if index else 0


@given(st.integers(1, 10**9) | st.integers(1, 1000))
def test_an_addition_rests_on_an_earlier_one_that_the_one_before_it_was_read_through(index: int) -> None:
    base = resting_on(index)
    assert 0 <= base < index
    assert base in chain(index - 1)


@given(st.integers(1, 10**9) | st.integers(1, 10_000))
def test_few_rows_are_read(index: int) -> None:
    assert len(chain(index)) <= rows_at_most(index)


def test_a_level_is_eight_additions() -> None:
    assert [resting_on(index) for index in (1, 2, 7, 8, 9, 15, 16, 63, 64, 65, 512)] == [
        0,
        1,
        6,
        0,
        8,
        14,
        8,
        62,
        0,
        64,
        0,
    ]


@pytest.mark.parametrize("count", [10, 100, 1000])
def test_each_item_is_stored_once_a_level(count: int) -> None:
    thread = Thread(InMemorySaver(), "salt")
    thread.write(items=list(range(WORTHWHILE_ITEMS)))
    thread.save()
    for number in range(count):
        thread.write(items=[number])
        thread.save()
    stored = sum(
        len(one["items"].items) if isinstance(one["items"], Addition) else len(one["items"]) for one in thread.stored
    )
    assert stored <= (count + WORTHWHILE_ITEMS) * (1 + levels(count))


def test_bytes_grow_about_as_fast_as_the_state() -> None:
    def size(count: int) -> int:
        thread = Thread(InMemorySaver(), "salt")
        for _ in range(count):
            thread.write(items=[7] * 10)
            thread.save()
        space = thread.saver._tables.threads["t"][""]
        return sum(len(data) for _, data in space.blobs.values())

    assert size(400) < 2.4 * size(200)


# ---- when it is worth it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "short", "long", "more"),
    [
        ("items", [1] * (WORTHWHILE_ITEMS - 1), [1] * WORTHWHILE_ITEMS, [2]),
        ("text", "x" * (WORTHWHILE_TEXT - 1), "x" * WORTHWHILE_TEXT, "y"),
    ],
)
def test_short_values_are_stored_whole(key: str, short: Any, long: Any, more: Any) -> None:
    for value, expected in ((short, short + more), (long, Addition(Mark(0, "00000001.salt", len(long)), 1, more))):
        thread = Thread(InMemorySaver(), "salt")
        for write in (value, more):
            thread.write(**{key: write})
            thread.save()
        assert thread.stored[-1][key] == expected


def test_a_value_that_was_written_again_unchanged_adds_nothing() -> None:
    thread = Thread(InMemorySaver(), "salt")
    for write in ([1] * WORTHWHILE_ITEMS, []):
        thread.write(items=write)
        thread.save()
    assert thread.stored[-1]["items"].items == []


@pytest.mark.parametrize("after", [[1, 2], [3] * 20, [1.0] * 9, "text" * 100, {"not": "a list"}])
def test_a_value_that_does_not_go_on_is_stored_whole(after: Any) -> None:
    thread = Thread(InMemorySaver(), "salt")
    for write in ([1] * WORTHWHILE_ITEMS, Overwrite(after)):
        thread.write(items=write)
        thread.save()
    assert thread.stored[1]["items"] == after
    assert thread.load(str(thread.head))["items"] == after


def merging(*writes: Any) -> Thread:
    """Return a thread that merged these, each in a superstep of its own."""
    thread = Thread(InMemorySaver(), "salt")
    for write in writes:
        thread.write(merged=write)
        thread.save()
    return thread


def test_a_merged_dict_is_stored_as_what_was_written_to_it() -> None:
    large = {name: list(range(100)) for name in "abc"}
    thread = merging(large, {"b": [0], "d": [1]}, {"e": [2], "b": [3]})
    assert [one["merged"] for one in thread.stored] == [
        large,
        Addition(Mark(0, "00000001.salt", 3), 1, {"b": [0], "d": [1]}),
        Addition(Mark(1, "00000002.salt", 4), 2, {"b": [3], "e": [2]}),
    ]
    assert list(thread.load(str(thread.head))["merged"].items()) == [*(large | {"b": [3], "d": [1], "e": [2]}).items()]


def test_what_only_a_copy_was_given_is_not_counted_as_written() -> None:
    """Views and checks fold into copies."""
    thread = merging(dict.fromkeys("abc", 0))
    thread.cells.channels["merged"].copy().update([{"a": 1}])
    thread.write(merged={"b": 1})
    thread.save()
    assert thread.stored[-1]["merged"].items == {"b": 1}


def test_at_the_end_of_a_group_it_is_all_that_was_written_since_the_base() -> None:
    thread = merging(dict.fromkeys("abc", 0), *({f"k{number}": number} for number in range(GROUP)))
    last = thread.stored[-1]["merged"]
    assert (last.base.index, last.index) == (0, GROUP)
    assert last.items == {f"k{number}": number for number in range(GROUP)}


def test_a_run_that_goes_on_knows_only_what_it_wrote_itself() -> None:
    thread = merging(dict.fromkeys("abcdef", 0), *({"a": number} for number in range(GROUP - 2)))
    thread.load(str(thread.head))
    thread.write(merged={"b": 1})
    thread.save()
    assert thread.stored[-1]["merged"].items == {"b": 1}
    thread.write(merged={"c": 1})  # rests on what was there before the run
    thread.save()
    assert thread.stored[-1]["merged"] == {"a": GROUP - 3, "b": 1, "c": 1, "d": 0, "e": 0, "f": 0}


WHOLE = {
    "all keys": dict.fromkeys("abc", 1),
    "overwrite": Overwrite({"a": 1, "z": 2}),
    "overwrite as a dict": {"__overwrite__": {"z": 1}},
    "overwrite as JSON": {"type": "__overwrite__", "value": {"a": 7, "b": 7, "c": 7}},
    "a key that equals nothing": {float("nan"): 1},
    "a key with such a part": {(float("nan"),): 1},
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_dict_that_was_written_whole_is_stored_whole(name: str) -> None:
    write = WHOLE[name]
    thread = merging(dict.fromkeys("abc", 0), write)
    assert thread.stored[-1]["merged"] == thread.cells.stored["merged"]
    assert type(thread.stored[-1]["merged"]) is dict
    thread.write(merged={"b": 2})
    thread.save()
    assert repr(thread.load(str(thread.head))["merged"]) == repr(thread.cells.stored["merged"])


def test_a_channel_of_a_programs_own_that_drops_keys_is_stored_whole() -> None:
    thread = Thread(InMemorySaver(), "salt")
    for number in range(8):
        thread.write(newest={f"k{number}": number})
        thread.save()
        assert thread.load(str(thread.head))["newest"] == thread.cells.stored["newest"]
    assert [type(one["newest"]) for one in thread.stored] == [dict] * 8


def test_a_dict_that_its_reducer_changes_in_place_is_stored_whole() -> None:
    thread = Thread(InMemorySaver(), "salt")
    for number in range(3):
        thread.write(merged_there={"a": number, "b": 0, f"k{number}": 0})
        thread.save()
    assert [type(one["merged_there"]) for one in thread.stored] == [dict, dict, dict]


def test_a_text_that_does_not_go_on_is_stored_whole() -> None:
    thread = Thread(InMemorySaver(), "salt")
    for write in ("x" * WORTHWHILE_TEXT, Overwrite("y" * WORTHWHILE_TEXT * 2)):
        thread.write(text=write)
        thread.save()
    assert thread.stored[1]["text"] == "y" * WORTHWHILE_TEXT * 2


def test_only_what_changed_is_handed_to_storage() -> None:
    thread = Thread(InMemorySaver(), "salt")
    thread.write(items=[1], text="x")
    thread.save()
    thread.write(text="y")
    thread.save()
    thread.save()
    assert [sorted(one) for one in thread.stored] == [["items", "text"], ["text"], []]


def test_a_base_that_is_not_known_is_not_rested_on() -> None:
    """The checkpoint comes from a saver that tells no lineage."""
    thread = Thread(InMemorySaver(), "salt")
    thread.write(items=[1] * 20)
    thread.save()
    branch = Thread(thread.saver, "branch")
    branch.load(str(thread.head))
    branch.cells.lineage.clear()
    branch.write(items=[2])
    branch.save()
    assert branch.stored == [{"items": [*[1] * 20, 2]}]


def test_a_base_that_is_missing_from_the_lineage_is_not_rested_on() -> None:
    thread = Thread(InMemorySaver(), "salt")
    for number in range(GROUP):
        thread.write(items=[number] * WORTHWHILE_ITEMS)
        thread.save()
    assert [mark.index for mark in thread.cells.lineage["items"]] == list(range(GROUP))
    thread.cells.lineage["items"] = thread.cells.lineage["items"][1:]
    thread.write(items=[99])
    thread.save()
    assert thread.stored[-1]["items"] == thread.cells.stored["items"]
    assert [mark.index for mark in thread.cells.lineage["items"]] == [0]


def test_what_a_program_folds_its_own_way_is_stored_whole() -> None:
    thread = Thread(InMemorySaver(), "salt")
    for number in range(3):
        thread.write(plain=[number] * 20)
        thread.save()
    assert [type(one["plain"]) for one in thread.stored] == [list, list, list]
    assert thread.cells.lineage == {}


def test_a_checkpoint_lists_what_the_last_superstep_changed() -> None:
    thread = Thread(InMemorySaver(), "salt")
    assert checkpoint_of(thread.cells, "id", "now")["updated_channels"] is None
    thread.write(text="x", items=[1])
    checkpoint = checkpoint_of(thread.cells, "id", "now")
    assert (checkpoint["v"], checkpoint["id"], checkpoint["ts"]) == (4, "id", "now")
    assert checkpoint["updated_channels"] == ["items", "text"]
