"""Damage is told from emptiness and names its place: rows changed, cut, exchanged, of another shape or key."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from persistence.contracts.backend import BlobRow, Rows
from persistence.contracts.checkpoint import (
    TaskWrites,
)
from persistence.errors import CorruptDataError, DecryptionError, UnknownTypeError
from persistence.serde.encrypted import EncryptedSerializer
from persistence.serde.serializer import Serializer, place
from persistence.writer.binding import blob_key, bound, open_write
from persistence.writer.decoding import blobs_of
from persistence.writer.encoding import ADDITION, Encoder, checksum
from persistence.writer.resealing import Resealer
from tests.persistence.writer.coding import KEY, back, damaged, forged, grown, unit


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


@pytest.mark.parametrize("index", [-1, 1, 7, 2**70])
def test_a_lineage_begins_at_a_whole_value(index: int) -> None:
    """The next addition is numbered after it; what it would rest on is no number below 0."""
    (first,), _ = grown(Serializer(), [["a"]])
    with pytest.raises(CorruptDataError, match=f"the lineage of channel 'log' begins at addition {index}, not at 0"):
        back(Serializer(), forged(first, lineage={"log": [[index, "v0", 1]]}))


@pytest.mark.parametrize("index", [0, -1])
def test_a_lineage_ascends(index: int) -> None:
    """Though the addition itself says that it has that number."""
    (first, second), _ = grown(Serializer(), [["a"], ["b"]])
    (blob,) = second.blobs
    kind, data = Serializer().dumps_typed([0, "v0", 1, index, ["b"]])
    own = bound(kind + ADDITION, data, blob_key(blob[1], blob[2], blob[3]))
    moved = damaged(second, blobs=[(*blob[:4], own, data)])
    with pytest.raises(CorruptDataError, match="the lineage of channel 'log' does not ascend"):
        back(Serializer(), first, forged(moved, lineage={"log": [[0, "v0", 1], [index, "v1", 2]]}))
    whole = [[0, "v0", 1], [1, "v1", 2]]
    with pytest.raises(CorruptDataError, match="does not follow its base"):
        back(Serializer(), first, forged(moved, lineage={"log": whole}))
    assert back(Serializer(), first, second).checkpoint["channel_values"] == {"log": ["a", "b"]}


def test_what_is_no_row_has_no_lineage() -> None:
    """Nothing may be stored as an addition to a value that stands in the checkpoint itself."""
    rows = Encoder(Serializer()).encode(unit({"n": "text"}))
    found = back(Serializer(), forged(rows, lineage={"n": [[0, "v.n", 4]], "other": []}))
    assert (found.checkpoint["channel_values"], found.lineage) == ({"n": "text"}, None)


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
    rows, at = written(), WRITE_COLUMNS[column]
    first = list(rows.writes[0])
    first[at] = 7 if column == "idx" else "other"
    with pytest.raises(CorruptDataError, match="the write of task .* to channel .* cannot be read: it was damaged, or"):
        back(Serializer(), msgspec.structs.replace(rows, writes=[tuple(first), rows.writes[1]]))


@pytest.mark.parametrize("columns", [(6, 7), (7,)], ids=["values with types", "values alone"])
def test_exchanged_writes_are_told(columns: tuple[int, ...]) -> None:
    rows = written()
    one, other = map(list, rows.writes)
    for at in columns:
        one[at], other[at] = other[at], one[at]
    with pytest.raises(CorruptDataError, match="the write of task task to channel 'a'"):
        back(Serializer(), msgspec.structs.replace(rows, writes=[tuple(one), tuple(other)]))


@pytest.mark.parametrize("columns", [(4, 5), (5,)], ids=["values with types", "values alone"])
def test_exchanged_values_are_told(columns: tuple[int, ...]) -> None:
    rows = written()
    one, other = map(list, rows.blobs)
    for at in columns:
        one[at], other[at] = other[at], one[at]
    with pytest.raises(CorruptDataError, match="channel 'a' cannot be read: it was damaged, or belongs"):
        back(Serializer(), msgspec.structs.replace(rows, blobs=[tuple(one), tuple(other)]))


def test_rows_of_old_are_read_without_such_a_checksum() -> None:
    rows = written()
    blobs = [(*row[:4], row[4].partition("@")[0], row[5]) for row in rows.blobs]
    writes = [(*row[:6], row[6].partition("@")[0], *row[7:]) for row in rows.writes]
    found = back(Serializer(), msgspec.structs.replace(rows, blobs=blobs, writes=writes))
    assert found.checkpoint["channel_values"] == {"a": [1], "b": [2]}
    assert [value for _, _, value in found.pending_writes or ()] == [[3], [4]]


def sealed_writes() -> Rows:
    """Return a checkpoint with three sealed writes of one task, all to one channel."""
    one = unit({})
    assert one.checkpoint is not None
    one.writes.append(TaskWrites(one.checkpoint["id"], "task", "path", [("a", number) for number in range(3)]))
    return Encoder(EncryptedSerializer(KEY)).encode(one)


@pytest.mark.parametrize("column", WRITE_COLUMNS)
def test_a_sealed_write_does_not_open_under_another_key(column: str) -> None:
    """Not either as a row of old, whose type says nothing of its key."""
    rows, at = sealed_writes(), WRITE_COLUMNS[column]
    first: list[Any] = list(rows.writes[0])
    first[at] = 7 if column == "idx" else "other"
    first[6] = first[6].partition("@")[0]
    with pytest.raises(DecryptionError, match="the write of task .* to channel .* cannot be read"):
        back(EncryptedSerializer(KEY), msgspec.structs.replace(rows, writes=[tuple(first), *rows.writes[1:]]))


def test_one_sealed_write_does_not_stand_for_another() -> None:
    rows = sealed_writes()
    first, second, third = rows.writes
    forged_row = (*first[:6], second[6].partition("@")[0], *second[7:])
    with pytest.raises(DecryptionError, match="the write of task task to channel 'a'"):
        back(EncryptedSerializer(KEY), msgspec.structs.replace(rows, writes=[forged_row, second, third]))


def test_sealed_writes_of_old_are_read_and_copied() -> None:
    """They were sealed for any write of their task to the channel."""
    serializer, rows = EncryptedSerializer(KEY), sealed_writes()
    old = []
    for number, row in enumerate(rows.writes):
        typed = serializer.seal(serializer.dumps_typed(number), place(*row[:4], row[5]))
        old.append((*row[:6], *typed, row[8]))
    found = back(serializer, msgspec.structs.replace(rows, writes=old))
    assert [value for _, _, value in found.pending_writes or ()] == [0, 1, 2]
    copied = [Resealer(serializer).write(row, "u") for row in old]
    kinds = [row[6].partition("@")[0] for row in copied]
    opened = [open_write(serializer, kind, row) for kind, row in zip(kinds, copied, strict=True)]
    assert list(map(serializer.loads_typed, opened)) == [0, 1, 2]
    with pytest.raises(DecryptionError):
        open_write(serializer, kinds[0], (*copied[0][:4], 1, *copied[0][5:]))
