"""Encoding and decoding: what goes in comes out, errors name the place, damage is told from emptiness."""

from __future__ import annotations

import enum
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.contracts.checkpoint import (
    ERROR,
    INTERRUPT,
    RESUME,
    Addition,
    Mark,
    TaskWrites,
    Unit,
)
from persistence.errors import SerializationError
from persistence.serde.encrypted import EncryptedSerializer
from persistence.serde.serializer import Serializer
from persistence.writer import encoding
from persistence.writer.decoding import blobs_of, unreferenced
from persistence.writer.encoding import Encoder
from persistence.writer.inlining import inlines
from tests.persistence.writer.coding import KEY, back, grown, unit
from tests.persistence.writer.samples import checkpoint

SERIALIZERS = [Serializer(), EncryptedSerializer(KEY)]
serializers = pytest.mark.parametrize("serializer", SERIALIZERS, ids=["plain", "encrypted"])


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(st.characters(), max_size=80)
)


@serializers
@given(values=st.dictionaries(st.text("abc", min_size=1, max_size=3), scalars | st.lists(scalars, max_size=3)))
def test_values_come_back_with_their_type(serializer: Serializer, values: dict[str, Any]) -> None:
    rows = Encoder(serializer).encode(unit(values))
    found = back(serializer, rows).checkpoint["channel_values"]
    assert repr(sorted(found.items())) == repr(sorted(values.items()))  # tells 1 from True and 0.0 from -0.0
    if serializer.encrypts:
        assert len(rows.blobs) == len(values)
        assert rows.checkpoint is not None
        assert msgspec.json.decode(rows.checkpoint[5])["channel_values"] == {}


def test_what_is_inlined() -> None:
    class Level(enum.IntEnum):
        LOW = 1

    class Word(str):
        __slots__ = ()

    yes = [None, True, 0, -(2**53), 2**53, 0.5, -0.0, "", "x" * 64, "line\nbreak", "\U0001f600 é"]
    no = [2**53 + 1, math.inf, math.nan, "x" * 65, "\0", "\ud800", b"", [], {}, Level.LOW, Word("x")]
    assert [value for value in yes if not inlines(value)] == []
    assert [value for value in no if inlines(value)] == []


def test_small_primitives_cost_no_row_and_unchanged_values_are_inlined_again() -> None:
    values = {"n": 1, "text": "x", "flag": True, "none": None, "list": [1]}
    rows = Encoder(Serializer()).encode(unit(values, changed={}))
    assert not rows.blobs
    assert rows.checkpoint is not None
    assert msgspec.json.decode(rows.checkpoint[5])["channel_values"] == {
        "n": 1,
        "text": "x",
        "flag": True,
        "none": None,
    }
    assert blobs_of(rows.checkpoint) == [("list", "v.list")]


def test_an_emptied_channel_is_empty_not_damaged() -> None:
    made = checkpoint("c", {"a": 1}, {"a": "1", "gone": "2"})
    found = back(Serializer(), Encoder(Serializer()).encode(Unit("t", "", checkpoint=made)))
    assert found.checkpoint["channel_values"] == {"a": 1}
    assert found.checkpoint["channel_versions"] == {"a": "1", "gone": "2"}


def test_every_key_of_a_checkpoint_survives() -> None:
    made = checkpoint("c", {"a": 1}, {"a": 7})
    made["extra"] = [1, {"x": None}]  # type: ignore[typeddict-unknown-key]
    found = back(Serializer(), Encoder(Serializer()).encode(Unit("t", "", checkpoint=made, parent_id="p")))
    assert found.checkpoint == made
    assert found.parent_config == {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "p"}}


@serializers
def test_writes_come_back_in_order_with_reserved_rows(serializer: Serializer) -> None:
    tasks = [
        TaskWrites("c", "task 2", "~a", [("x", [2]), (RESUME, ["r"]), ("y", 3)]),
        TaskWrites("c", "task 1", "~b", [("x", 1)]),
        TaskWrites("c", "task 3", "~a", [(ERROR, "boom"), (INTERRUPT, "why")]),
    ]
    rows = Encoder(serializer).encode(unit({}, writes=tasks))
    assert [(row[3], row[4]) for row in rows.writes] == [("task 2", 0), ("task 2", 2), ("task 1", 0)]
    assert [(row[3], row[4]) for row in rows.upserts] == [("task 2", -4), ("task 3", -1), ("task 3", -3)]
    assert back(serializer, rows).pending_writes == [
        ("task 2", RESUME, ["r"]),
        ("task 2", "x", [2]),
        ("task 2", "y", 3),
        ("task 3", INTERRUPT, "why"),
        ("task 3", ERROR, "boom"),
        ("task 1", "x", 1),
    ]


def test_one_object_is_dumped_once_per_unit() -> None:
    class Counting(Serializer):
        dumps = 0

        def dumps_typed(self, value: object) -> tuple[str, bytes]:
            Counting.dumps += 1
            return super().dumps_typed(value)

    message = ["shared"]
    tasks = [TaskWrites("p", "task", "", [("a", message)])]
    rows = Encoder(Counting()).encode(unit({"a": message}, writes=tasks))
    assert Counting.dumps == 1
    assert rows.blobs[0][5] is rows.writes[0][7]


def test_equal_writes_are_sealed_apart() -> None:
    message = ["shared"]
    tasks = [TaskWrites("p", "task", "", [("a", message)])]
    rows = Encoder(EncryptedSerializer(KEY)).encode(unit({"a": message}, writes=tasks))
    assert rows.blobs[0][5] != rows.writes[0][7]


def test_what_cannot_be_stored_is_blamed_on_channel_and_task() -> None:
    encode = Encoder(Serializer()).encode
    with pytest.raises(SerializationError, match="channel 'a' cannot be stored"):
        encode(unit({"a": object()}))
    with pytest.raises(SerializationError, match="channel 'b', written by task job, cannot be stored"):
        encode(unit({}, writes=[TaskWrites("c", "job", "", [("b", object())])]))
    mark = Mark(0, "v", 1)
    with pytest.raises(SerializationError, match="channel 'a' cannot be stored"):
        encode(unit({"a": []}, changed={"a": Addition(mark, 1, [object()])}, lineage={"a": (mark,)}))
    with pytest.raises(ValueError, match="'a' changed but has no version"):
        encode(Unit("t", "", checkpoint=checkpoint("c", {}), changed={"a": [1]}))


@pytest.mark.parametrize(
    ("metadata", "blamed"),
    [
        ({"n": math.nan}, "metadata 'n' holds a float"),
        ({"n": [math.inf]}, "metadata 'n' holds a list"),
        ({"when": object()}, "metadata 'when' holds a object"),
        ({"pair": (1, 2)}, "metadata 'pair' holds a tuple"),
        ({"deep": {"x": {1: 2}}}, "metadata 'deep' holds a dict"),
        ({3: "x"}, "metadata key 3 is not a string"),
        ({"n": "\ud800"}, "metadata cannot be stored as JSON"),
    ],
)
def test_metadata_that_json_would_change_is_refused(metadata: dict[Any, Any], blamed: str) -> None:
    with pytest.raises(SerializationError, match=blamed):
        Encoder(Serializer()).encode(unit({}, metadata=metadata))


def test_metadata_survives_with_every_kind_of_text() -> None:
    metadata = {"nul": "a\0b", "emoji": "\U0001f600", "key \0 ' \" .": 1.5, "nested": {"a": [None, True, 2]}}
    assert back(Serializer(), Encoder(Serializer()).encode(unit({}, metadata=metadata))).metadata == metadata


@pytest.mark.parametrize("bad", ["a\0b", "\ud800"])
def test_names_no_database_can_key_on_are_refused(bad: str) -> None:
    encode = Encoder(Serializer()).encode
    made = checkpoint("c", {})
    for refused in (
        Unit(bad, "", checkpoint=made),
        Unit("t", bad, checkpoint=made),
        Unit("t", "", checkpoint=checkpoint(bad, {})),
        Unit("t", "", checkpoint=made, parent_id=bad),
        Unit("t", "", checkpoint=checkpoint("c", {bad: [1]}), changed={bad: [1]}),
        Unit("t", "", [TaskWrites(bad, "task", "", [("a", 1)])]),
        Unit("t", "", [TaskWrites("c", bad, "", [("a", 1)])]),
        Unit("t", "", [TaskWrites("c", "task", bad, [("a", 1)])]),
        Unit("t", "", [TaskWrites("c", "task", "", [(bad, 1)])]),
    ):
        with pytest.raises(ValueError, match="NUL or a lone surrogate"):
            encode(refused)
    with pytest.raises(TypeError, match="thread_id must be a string, not int"):
        encode(Unit(7, "", checkpoint=made))  # type: ignore[arg-type]


def test_names_may_be_any_other_text() -> None:
    for good in ("", "two\nlines", "\x7f", "é\u200b", "\U0001f600", "a" * 10_000):
        made = checkpoint("c", {good: [1]}, {good: "1"})
        assert back(Serializer(), Encoder(Serializer()).encode(Unit(good, good, checkpoint=made, changed={good: [1]})))


def test_the_memory_of_good_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "KNOWN_NAMES", 3)
    encoder = Encoder(Serializer())
    for number in range(20):
        encoder.encode(Unit(f"t{number}", "", checkpoint=checkpoint("c", {})))
        assert len(encoder._names) <= 3


def test_a_changed_value_missing_among_the_values_is_found_again() -> None:
    made = checkpoint("c", {}, {"a": "1"})
    rows = Encoder(Serializer()).encode(Unit("t", "", checkpoint=made, changed={"a": 5}))
    assert back(Serializer(), rows).checkpoint["channel_values"] == {"a": 5}


# ---- append-only channels ---------------------------------------------------------------------------------------


@serializers
@given(
    st.lists(st.lists(st.integers(), max_size=3), min_size=1, max_size=9) | st.lists(st.text(max_size=3), min_size=1)
)
def test_additions_are_put_together_again(serializer: Serializer, pieces: list[Any]) -> None:
    stored, whole = grown(serializer, pieces)
    found = back(serializer, *stored)
    assert found.checkpoint["channel_values"] == {"log": whole}
    assert found.lineage is not None
    assert found.lineage["log"][-1].length == len(whole)


def test_an_addition_is_stored_without_what_it_adds_to() -> None:
    stored, _ = grown(Serializer(), [["x" * 1000], ["y"]])
    assert stored[1].blobs[0][4].startswith("msgpack+add@")
    assert len(stored[1].blobs[0][5]) < 100


def test_a_short_text_with_a_lineage_is_a_row() -> None:
    stored, _ = grown(Serializer(), ["a", "b"])
    assert [row[4].partition("@")[0] for rows in stored for row in rows.blobs] == ["msgpack", "msgpack+add"]


def test_unchanged_additive_channels_keep_their_lineage() -> None:
    stored, whole = grown(Serializer(), [["a"], ["b"]])
    marks = back(Serializer(), *stored).lineage
    assert marks is not None
    later = checkpoint("c9", {"log": whole}, {"log": "v1"})
    rows = Encoder(Serializer()).encode(Unit("t", "", checkpoint=later, lineage=marks))
    assert back(Serializer(), *stored, rows).checkpoint["channel_values"] == {"log": ["a", "b"]}
    assert back(Serializer(), *stored, rows).lineage == marks


# ---- garbage ----------------------------------------------------------------------------------------------------


def test_only_blobs_nobody_rests_on_are_garbage() -> None:
    stored, _ = grown(Serializer(), [["a"], ["b"], ["c"], ["d"]])
    keys = [blob[:4] for rows in stored for blob in rows.blobs]
    last = stored[-1].checkpoint
    assert last is not None
    assert [key[3] for key in unreferenced(keys, [last])] == ["v1"]
    assert unreferenced(keys, []) == keys
    broken = (*last[:5], "{", last[6])
    assert unreferenced(keys, [broken]) == []
    elsewhere = ("other", *last[1:5], "{", last[6])
    assert unreferenced(keys, [elsewhere]) == keys
