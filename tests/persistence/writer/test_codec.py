"""Encoding and decoding: what goes in comes out, errors name the place, damage is told from emptiness."""

from __future__ import annotations

import enum
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from persistence.contracts.backend import BlobRow, Page, Rows
from persistence.contracts.checkpoint import (
    ERROR,
    INTERRUPT,
    RESUME,
    Addition,
    CheckpointTuple,
    Mark,
    TaskWrites,
    Unit,
)
from persistence.errors import CorruptDataError, DecryptionError, SerializationError, UnknownTypeError
from persistence.serde.encrypted import EncryptedSerializer
from persistence.serde.serializer import Serializer
from persistence.writer import encoding
from persistence.writer.decoding import Decoder, blobs_of, group_writes, unreferenced
from persistence.writer.encoding import Encoder, checksum
from persistence.writer.inlining import inlines
from tests.persistence.writer.samples import checkpoint

KEY = b"0123456789abcdef"
SERIALIZERS = [Serializer(), EncryptedSerializer(KEY)]
serializers = pytest.mark.parametrize("serializer", SERIALIZERS, ids=["plain", "encrypted"])


def unit(values: dict[str, Any], **fields: Any) -> Unit:
    made = checkpoint("c", values, {channel: f"v.{channel}" for channel in values})
    return Unit("t", "ns", checkpoint=made, **{"changed": values, **fields})


def page(*units: Rows) -> Page:
    blobs = {blob[:4]: blob[4:] for rows in units for blob in rows.blobs}
    writes = group_writes(write for rows in units for write in (*rows.writes, *rows.upserts))
    return Page([rows.checkpoint for rows in units if rows.checkpoint is not None], writes, blobs)


def back(serializer: Serializer, *units: Rows) -> CheckpointTuple:
    stored = page(*units)
    return Decoder(serializer).decode(stored.checkpoints[-1], stored)


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


def grown(serializer: Serializer, pieces: list[Any]) -> tuple[list[Rows], Any]:
    """Store a value that grows piece by piece, each addition resting on every other mark before it."""
    encode = Encoder(serializer).encode
    whole = pieces[0]
    marks: tuple[Mark, ...] = (Mark(0, "v0", len(whole)),)
    made = checkpoint("c0", {"log": whole}, {"log": "v0"})
    stored = [encode(Unit("t", "", checkpoint=made, changed={"log": whole}, lineage={"log": marks}))]
    skipped: Any = pieces[0][:0]
    for index, piece in enumerate(pieces[1:], 1):
        base, whole, skipped = marks[-1], whole + piece, skipped + piece
        own = Mark(index, f"v{index}", len(whole))
        made = checkpoint(f"c{index}", {"log": whole}, {"log": own.version})
        unit = Unit(
            "t",
            "",
            checkpoint=made,
            changed={"log": Addition(base, index, skipped)},
            lineage={"log": (*marks, own)},
        )
        stored.append(encode(unit))
        if index % 2 == 0:
            marks, skipped = (*marks, own), skipped[:0]
    return stored, whole


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


# ---- damage -----------------------------------------------------------------------------------------------------


def damaged(rows: Rows, **changes: Any) -> Rows:
    return msgspec.structs.replace(rows, **changes)


def test_damage_names_where_it_is() -> None:
    serializer = Serializer()
    rows = Encoder(serializer).encode(unit({"a": [1]}, writes=[TaskWrites("c", "job", "", [("b", [1])])]))
    row, (blob,), (write,) = rows.checkpoint, rows.blobs, rows.writes
    assert row is not None
    flipped = bytes([*blob[5][:-1], blob[5][-1] ^ 1])
    cases = {
        "checksum does not match": damaged(rows, checkpoint=(*row[:5], row[5].replace('"v":4', '"v":5'), row[6])),
        "its checksum": damaged(rows, checkpoint=(*row[:6], row[6].replace("{", '{"more":1,', 1))),
        "content": damaged(rows, checkpoint=(*row[:3], "another", *row[4:])),
        "does not parse .DecodeError": damaged(rows, checkpoint=(*row[:4], checksum(row[5].encode()), row[5], "{")),
        "its content is that of checkpoint 'c'": damaged(rows, checkpoint=(*row[:2], "d", *row[3:])),
        "channel 'a' has no stored value for version v.a": damaged(rows, blobs=()),
        "channel 'a' cannot be read: .*damaged": damaged(rows, blobs=[(*blob[:5], flipped)]),
        "channel 'a' holds 'msgpack.add'": damaged(rows, blobs=[(*blob[:4], "msgpack+add", blob[5])]),
        "write of task job to channel 'b' cannot be read": damaged(rows, writes=[(*write[:7], b"", "")]),
    }
    for words, broken in cases.items():
        with pytest.raises(CorruptDataError, match=f"Checkpoint [cd] of thread 't', namespace 'ns'.*{words}"):
            back(serializer, broken)
    with pytest.raises(UnknownTypeError, match="Checkpoint c of thread 't'.*channel 'a'"):
        back(serializer, damaged(rows, blobs=[(*blob[:4], "newer", blob[5])]))


def forged(unit_rows: Rows, **changes: Any) -> Rows:
    """Return rows whose checkpoint was changed together with its checksum."""
    row = unit_rows.checkpoint
    assert row is not None
    text = msgspec.json.encode({**msgspec.json.decode(row[5]), **changes})
    return damaged(unit_rows, checkpoint=(*row[:4], checksum(text), text.decode(), row[6]))


def test_a_checkpoint_of_another_shape_is_damaged_too() -> None:
    rows = Encoder(Serializer()).encode(unit({"a": [1]}))
    shapes: list[dict[str, Any]] = [
        {"rows": None},
        {"channel_versions": {}},
        {"lineage": {"a": [[1]]}},
        {"lineage": 5},
        {"lineage": {"a": 5}},
        {"channel_values": []},
        {"channel_versions": {"a": []}},
        {"versions_seen": {"n": 1}},
        {"updated_channels": "a"},
        {"rows": {"a": 1}},
        {"id": None},
        {"ts": 1},
    ]
    for changes in shapes:
        with pytest.raises(CorruptDataError, match="does not parse"):
            back(Serializer(), forged(rows, **changes))


def test_json_that_is_nested_without_end_is_damaged() -> None:
    rows = Encoder(Serializer()).encode(unit({"a": [1]}))
    row = rows.checkpoint
    assert row is not None
    deep = "[" * 100_000
    body = row[5][:-1] + ',"x":' + deep
    bare = (*row[:4], checksum(row[5].encode()), row[5])  # as rows of old, which have no checksum of their metadata
    for changed in ((*row[:4], checksum(body.encode()), body, row[6]), (*bare, deep), (*bare, "[]")):
        with pytest.raises(CorruptDataError, match="does not parse"):
            back(Serializer(), damaged(rows, checkpoint=changed))
    assert blobs_of((*row[:5], body, row[6])) is None


def test_the_content_of_another_checkpoint_is_damage() -> None:
    rows = Encoder(Serializer()).encode(unit({"a": [1]}))
    with pytest.raises(CorruptDataError, match="Checkpoint c of .* its content is that of checkpoint 'b'"):
        back(Serializer(), forged(rows, id="b"))


def test_additions_to_what_cannot_grow_are_damaged() -> None:
    """Nor is anything gone through that only can be: a range takes a few bytes and any time."""
    stored, _ = grown(Serializer(), [["a"], ["b"]])
    first, second = stored
    base, added = first.blobs[0], second.blobs[0]
    dump = Serializer().dumps_typed
    kind, years = dump([0, "v0", 1, 1, range(10**15)])
    with pytest.raises(CorruptDataError, match="addition that does not follow its base"):
        back(Serializer(), first, damaged(second, blobs=[(*added[:4], kind + "+add", years)]))
    with pytest.raises(CorruptDataError, match="holds a range, to which nothing can be added"):
        back(Serializer(), damaged(first, blobs=[(*base[:4], *dump(range(1)))]), second)


def test_a_channel_without_a_version_needs_no_row() -> None:
    row = forged(Encoder(Serializer()).encode(unit({"a": [1]})), channel_versions={}).checkpoint
    assert row is not None
    assert blobs_of(row) == []


def test_a_broken_lineage_is_damaged() -> None:
    stored, _ = grown(Serializer(), [["a"], ["b"], ["c"]])
    first, second, third = stored
    cases = {
        "lineage of channel 'log' does not end at its version": [
            first,
            second,
            forged(third, lineage={"log": [[0, "v0", 1]]}),
        ],
        "has an addition that does not follow its base": [
            first,
            second,
            forged(third, lineage={"log": [[0, "v0", 1], [1, "v1", 2], [2, "v2", 3]]}),
        ],
        "lineage of channel 'log' does not end": [
            first,
            second,
            forged(third, lineage={"log": []}),
        ],
        "is 1 long at version v0, not 2": [first, second, forged(third, lineage={"log": [[0, "v0", 2], [2, "v2", 3]]})],
        "holds 'msgpack' at version v0, where it cannot stand": [
            first,
            forged(second, lineage={"log": [[0, "v0", 1], [0, "v0", 2]]}, channel_versions={"log": "v0"}),
        ],
        "holds 'msgpack.add' at version v1, where it cannot stand": [
            first,
            forged(second, lineage={"log": [[1, "v1", 2]]}),
        ],
    }
    for words, rows in cases.items():
        with pytest.raises(CorruptDataError, match=words):
            back(Serializer(), *rows)


def test_sealed_values_do_not_open_elsewhere() -> None:
    serializer = EncryptedSerializer(KEY)
    encode = Encoder(serializer).encode
    rows = encode(unit({"a": [1], "b": [2]}))
    first, second = rows.blobs
    swapped: list[BlobRow] = [(*first[:4], *second[4:]), (*second[:4], *first[4:])]
    with pytest.raises(DecryptionError, match="channel 'a'"):
        back(serializer, damaged(rows, blobs=swapped))
    with pytest.raises(DecryptionError, match="channel 'a'"):
        back(Serializer(), rows)
    with pytest.raises(DecryptionError, match="channel 'a'"):
        back(serializer, damaged(rows, blobs=[(*first[:4], *Serializer().dumps_typed([1])), second]))


def test_values_inside_the_checkpoint_are_plain_too() -> None:
    sealed = EncryptedSerializer(KEY)
    with pytest.raises(DecryptionError, match="holds plain values of .'n'.; a serializer that encrypts reads none"):
        back(sealed, Encoder(Serializer()).encode(unit({"n": 1})))
    rows = Encoder(sealed).encode(unit({"n": 1}))
    with pytest.raises(DecryptionError, match="holds plain values"):
        back(sealed, forged(rows, channel_values={"n": 2}, rows=[]))


def test_a_whole_value_cannot_pass_for_an_addition() -> None:
    serializer = EncryptedSerializer(KEY)
    stored, _ = grown(serializer, [["a"], ["b"]])
    first, second = stored
    (blob,) = second.blobs
    assert blob[4].startswith("msgpack+aes+add@")
    renamed = damaged(second, blobs=[(*blob[:4], "msgpack+aes", blob[5])])
    moved = forged(renamed, lineage={"log": [[0, "v1", 5]]})
    with pytest.raises(DecryptionError):
        back(serializer, first, moved)


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


# ---- places -----------------------------------------------------------------------------------------------------


def written() -> Rows:
    """Return a checkpoint with two values, and two writes of one task against it."""
    one = unit({"a": [1], "b": [2]})
    assert one.checkpoint is not None
    one.writes.append(TaskWrites(one.checkpoint["id"], "task", "path", [("a", [3]), ("b", [4])]))
    return Encoder(Serializer()).encode(one)


WRITE_COLUMNS = {"task_id": 3, "idx": 4, "channel": 5, "task_path": 8}


@pytest.mark.parametrize("column", WRITE_COLUMNS)
def test_a_write_under_another_key_is_told(column: str) -> None:
    rows, place = written(), WRITE_COLUMNS[column]
    first = list(rows.writes[0])
    first[place] = 7 if column == "idx" else "other"
    with pytest.raises(CorruptDataError, match="the write of task .* to channel .* cannot be read: it was damaged, or"):
        back(Serializer(), msgspec.structs.replace(rows, writes=[tuple(first), rows.writes[1]]))


@pytest.mark.parametrize("columns", [(6, 7), (7,)], ids=["values with types", "values alone"])
def test_exchanged_writes_are_told(columns: tuple[int, ...]) -> None:
    rows = written()
    one, other = map(list, rows.writes)
    for place in columns:
        one[place], other[place] = other[place], one[place]
    with pytest.raises(CorruptDataError, match="the write of task task to channel 'a'"):
        back(Serializer(), msgspec.structs.replace(rows, writes=[tuple(one), tuple(other)]))


@pytest.mark.parametrize("columns", [(4, 5), (5,)], ids=["values with types", "values alone"])
def test_exchanged_values_are_told(columns: tuple[int, ...]) -> None:
    rows = written()
    one, other = map(list, rows.blobs)
    for place in columns:
        one[place], other[place] = other[place], one[place]
    with pytest.raises(CorruptDataError, match="channel 'a' cannot be read: it was damaged, or belongs"):
        back(Serializer(), msgspec.structs.replace(rows, blobs=[tuple(one), tuple(other)]))


def test_rows_of_old_are_read_without_such_a_checksum() -> None:
    rows = written()
    blobs = [(*row[:4], row[4].partition("@")[0], row[5]) for row in rows.blobs]
    writes = [(*row[:6], row[6].partition("@")[0], *row[7:]) for row in rows.writes]
    found = back(Serializer(), msgspec.structs.replace(rows, blobs=blobs, writes=writes))
    assert found.checkpoint["channel_values"] == {"a": [1], "b": [2]}
    assert [value for _, _, value in found.pending_writes or ()] == [[3], [4]]
