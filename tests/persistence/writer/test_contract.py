"""The checkpoint contract, on every saver of this project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from persistence.contracts.checkpoint import ERROR, RESUME, Addition, Mark, TaskWrites, Unit
from persistence.errors import CheckpointConflictError, CorruptDataError, DecryptionError, SerializationError
from persistence.memory import InMemorySaver
from persistence.mongo import MongoDBSaver
from persistence.postgres import PostgresSaver
from persistence.redis import RedisSaver
from persistence.serde.encrypted import EncryptedSerializer
from persistence.serde.serializer import Serializer
from persistence.sqlite import SqliteSaver
from tests.persistence.writer.samples import checkpoint, config, put, unit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from persistence.writer.contract import RowSaver

pytestmark = pytest.mark.anyio
KEY = b"0123456789abcdef"


PLAIN = ("memory", "sqlite", "sqlite in memory", "postgres", "redis", "mongo")
SEALING = ("encrypted memory", "encrypted sqlite", "encrypted postgres", "encrypted redis", "encrypted mongo")


@pytest.fixture(params=PLAIN + SEALING)
async def saver(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RowSaver]:
    serde = EncryptedSerializer(KEY) if request.param.startswith("encrypted") else None
    if request.param.endswith("postgres"):
        async with PostgresSaver(request.getfixturevalue("postgres_url"), serde=serde) as shared:
            yield shared
        return
    if request.param.endswith("mongo"):
        async with MongoDBSaver(**request.getfixturevalue("mongo"), serde=serde) as shared_documents:
            yield shared_documents
        return
    if request.param.endswith("redis"):
        url, prefix = request.getfixturevalue("redis_server").url, request.getfixturevalue("redis_keys")
        async with RedisSaver(url, prefix=prefix, serde=serde) as shared_keys:
            yield shared_keys
        return
    if request.param.endswith("y") and "sqlite" not in request.param:
        yield InMemorySaver(serde=serde)
        return
    path = ":memory:" if "in memory" in request.param else tmp_path / "threads.sqlite"
    async with SqliteSaver(path, serde=serde) as opened:
        yield opened


async def ids(saver: RowSaver, where: dict[str, Any] | None, **options: Any) -> list[str]:
    return [stored.checkpoint["id"] async for stored in saver.alist(where, **options)]


async def values(saver: RowSaver, thread_id: str = "t", checkpoint_id: str | None = None, ns: str = "") -> Any:
    stored = await saver.aget_tuple(config(thread_id, checkpoint_id, ns))
    return None if stored is None else stored.checkpoint["channel_values"]


async def test_newest_and_addressed(saver: RowSaver) -> None:
    assert await saver.aget_tuple(config()) is None
    first = await put(saver, "1", {"a": [1], "n": 1})
    second = await put(saver, "2", {"a": [2], "n": 2}, parent="1", step=7)
    await put(saver, "9", {"a": []}, ns="child")
    assert second == config("t", "2")
    newest = await saver.aget_tuple(config())
    assert newest is not None
    assert newest.config == second
    assert newest.parent_config == first
    assert newest.metadata == {"source": "loop", "step": 7, "parents": {}}
    assert newest.pending_writes == []
    assert newest.lineage is None
    assert newest.checkpoint["channel_values"] == {"a": [2], "n": 2}
    assert await values(saver, checkpoint_id="1") == {"a": [1], "n": 1}
    assert await saver.aget_tuple(config("t", "8")) is None
    assert await saver.aget_tuple(config("u")) is None


async def test_a_put_of_the_same_id_replaces_it(saver: RowSaver) -> None:
    await put(saver, "1", {"a": "x"}, parent="0", step=1)
    await put(saver, "1", {"a": "y"}, step=2)
    stored = await saver.aget_tuple(config())
    assert stored is not None
    assert (stored.metadata["step"], stored.parent_config) == (2, None)
    assert await ids(saver, config()) == ["1"]


async def test_an_older_id_put_later_does_not_become_the_head(saver: RowSaver) -> None:
    await put(saver, "5", {"a": 5})
    await put(saver, "3", {"a": 3})
    assert await values(saver) == {"a": 5}
    assert await ids(saver, config()) == ["5", "3"]


async def test_a_checkpoint_without_a_parent_is_stored_whole(saver: RowSaver) -> None:
    """Whatever its writer says is new in it: nothing of it can be there yet."""
    whole = checkpoint("1", {"a": [1], "b": {"c": [2]}})
    await saver.aput({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, whole, {"source": "input"}, {})
    assert await values(saver) == {"a": [1], "b": {"c": [2]}}


async def test_unchanged_channels_are_found_under_their_old_version(saver: RowSaver) -> None:
    await saver.aput(config(), checkpoint("1", {"a": [1], "b": [1]}, {"a": "1", "b": "1"}), {}, {"a": "1", "b": "1"})
    await saver.aput(config("t", "1"), checkpoint("2", {"a": [2], "b": [1]}, {"a": "2", "b": "1"}), {}, {"a": "2"})
    assert await values(saver) == {"a": [2], "b": [1]}
    assert await values(saver, checkpoint_id="1") == {"a": [1], "b": [1]}


async def test_the_first_of_a_namespace_is_whole_whatever_is_said_to_have_changed(saver: RowSaver) -> None:
    """As one that was made by hand, with no word of what changed: there is nothing that it could rest on."""
    made = checkpoint("1", {"a": [1], "b": "text", "c": None}, {"a": "1", "b": "1", "c": "1"})
    await saver.aput(config(), made, {}, {})
    found = await saver.aget_tuple(config())
    assert found is not None
    assert found.checkpoint["channel_values"] == {"a": [1], "b": "text", "c": None}


@pytest.mark.parametrize("part", ["id", "channel_values", "channel_versions"])
async def test_a_checkpoint_that_lacks_a_part_is_refused(saver: RowSaver, part: str) -> None:
    broken: Any = checkpoint("1", {"a": 1}, {"a": "1"})
    del broken[part]
    with pytest.raises(ValueError, match=f"lacks '{part}'"):
        await saver.aput(config(), broken, {}, {})
    assert await saver.aget_tuple(config()) is None


async def test_the_first_result_of_a_task_stays_special_rows_are_replaced(saver: RowSaver) -> None:
    where = await put(saver, "1", {})
    await saver.aput_writes(where, [("a", "first"), (RESUME, ["r1"]), (ERROR, "e1")], "task", "~p")
    await saver.aput_writes(where, [("a", "second"), (RESUME, ["r2"]), ("late", 1)], "task", "~p")
    stored = await saver.aget_tuple(config())
    assert stored is not None
    assert stored.pending_writes == [
        ("task", RESUME, ["r2"]),
        ("task", ERROR, "e1"),
        ("task", "a", "first"),
        ("task", "late", 1),
    ]


async def test_pending_writes_are_ordered_by_path_task_and_position(saver: RowSaver) -> None:
    where = await put(saver, "1", {})
    await saver.aput_writes(where, [("x", 1)], "b", "~2")
    await saver.aput_writes(where, [("x", number) for number in range(11)], "c", "~1")
    await saver.aput_writes(where, [("x", 2)], "a", "~2")
    stored = await saver.aget_tuple(config())
    assert stored is not None
    assert stored.pending_writes == [
        *(("c", "x", number) for number in range(11)),
        ("a", "x", 2),
        ("b", "x", 1),
    ]


async def test_writes_without_a_checkpoint_id_are_refused(saver: RowSaver) -> None:
    with pytest.raises(ValueError, match="checkpoint_id"):
        await saver.aput_writes(config(), [("a", 1)], "task")


async def test_listing(saver: RowSaver) -> None:
    for number in range(6):
        await put(saver, f"{number}", {"a": [number]}, step=number, kind="even" if number % 2 == 0 else "odd")
    await put(saver, "7", {}, ns="child")
    await put(saver, "8", {}, thread_id="u")
    assert await ids(saver, config()) == ["5", "4", "3", "2", "1", "0"]
    assert await ids(saver, {"configurable": {"thread_id": "t"}}) == ["7", "5", "4", "3", "2", "1", "0"]
    assert await ids(saver, None) == ["8", "7", "5", "4", "3", "2", "1", "0"]
    assert await ids(saver, config(), limit=2) == ["5", "4"]
    assert await ids(saver, config(), limit=0) == []
    assert await ids(saver, config(), limit=99) == ["5", "4", "3", "2", "1", "0"]
    assert await ids(saver, config(), before=config("t", "3")) == ["2", "1", "0"]
    assert await ids(saver, config("t", "4")) == ["4"]
    assert await ids(saver, config("t", "4"), before=config("t", "4")) == []
    assert await ids(saver, config(), filter={"kind": "odd"}) == ["5", "3", "1"]
    assert await ids(saver, config(), filter={"kind": "odd"}, limit=2, before=config("t", "5")) == ["3", "1"]
    assert await ids(saver, config(), filter={"kind": "odd", "step": 3}) == ["3"]
    assert await ids(saver, config(), filter={"parents": {}}, limit=1) == ["5"]
    assert await ids(saver, config("v")) == []
    stored = [one async for one in saver.alist(config(), limit=3)]
    assert [one.checkpoint["channel_values"] for one in stored] == [{"a": [5]}, {"a": [4]}, {"a": [3]}]
    with pytest.raises(ValueError, match="limit must not be negative"):
        saver.alist(config(), limit=-1)
    with pytest.raises(ValueError, match="before must be"):
        saver.alist(config(), before=config("t"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"filter": "odd"}, "filter must be a mapping of metadata keys to values, not str: 'odd'"),
        ({"filter": ["kind"]}, "filter must be a mapping"),
        ({"before": "3"}, "A config must be a mapping with a \"configurable\", not str: '3'"),
        ({"limit": "2"}, "limit must be a number of checkpoints or None, not '2'"),
    ],
    ids=["text", "list", "before", "limit"],
)
async def test_what_is_no_question_is_refused_at_once(saver: RowSaver, arguments: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        saver.alist(config(), **arguments)
    with pytest.raises(TypeError, match="A config must be a mapping"):
        await saver.aget_tuple("t")  # type: ignore[arg-type]


async def test_pages_join_without_gap_or_overlap(saver: RowSaver) -> None:
    """Several threads and namespaces hold the same ids, so pages end in the middle of equal ones."""
    expected = []
    for number in range(12):
        for thread_id in ("a", "b"):
            for ns in ("", "x", "y"):
                request = saver.encode(unit(thread_id, f"{number:03}", ns=ns, value=[number]))
                await saver.send(request)  # type: ignore[attr-defined]
                expected.append((f"{number:03}", thread_id, ns))
    found = [
        (stored.checkpoint["id"], *list(stored.config["configurable"].values())[:2])
        async for stored in saver.alist(None)
    ]
    assert found == sorted(expected, reverse=True)


@pytest.mark.parametrize(
    "key",
    ["k') OR 1=1 --", "a.b", "a'b", 'a"b', "$", "$.step", "a[0]", "", "*", "%", "\0", "é\U0001f600", "key with spaces"],
)
async def test_any_key_can_be_filtered_on_and_none_injects(saver: RowSaver, key: str) -> None:
    await put(saver, "1", {}, **{key: "here"})
    await put(saver, "2", {})
    assert await ids(saver, None, filter={key: "here"}) == ["1"]
    assert await ids(saver, None, filter={key: "elsewhere"}) == []
    assert await ids(saver, None, filter={key + "x": "here"}) == []


async def test_filters_that_are_no_json_are_refused(saver: RowSaver) -> None:
    with pytest.raises(SerializationError, match="filter 'a'"):
        saver.alist(None, filter={"a": object()})


async def test_values_of_every_kind_of_text(saver: RowSaver) -> None:
    texts = {"nul": "a\0b", "surrogate": "a\ud800b", "emoji": "\U0001f600", "long": "é" * 100, "key": {"\0": "\0"}}
    where = await put(saver, "1", texts, thread_id="é\U0001f600 ' \" %", ns="n:1|m:2", note="nul \0 in metadata")
    await saver.aput_writes(where, [("x", "a\0b\ud800")], "task")
    stored = await saver.aget_tuple(where)
    assert stored is not None
    assert stored.checkpoint["channel_values"] == texts
    assert stored.metadata["note"] == "nul \0 in metadata"
    assert stored.pending_writes == [("task", "x", "a\0b\ud800")]


async def test_a_refused_value_leaves_the_thread_as_it_was(saver: RowSaver) -> None:
    where = await put(saver, "1", {"a": 1})
    with pytest.raises(SerializationError, match="channel 'b'"):
        await put(saver, "2", {"a": 2, "b": object()}, parent="1")
    with pytest.raises(SerializationError, match="channel 'b', written by task job"):
        await saver.aput_writes(where, [("a", 1), ("b", object())], "job")
    stored = await saver.aget_tuple(config())
    assert stored is not None
    assert (stored.checkpoint["id"], stored.pending_writes) == ("1", [])


async def test_registered_types_come_back(saver: RowSaver) -> None:
    saver.register_types([Point])
    where = await put(saver, "1", {"p": Point(1, 2)})
    assert await values(saver, checkpoint_id=where["configurable"]["checkpoint_id"]) == {"p": Point(1, 2)}


@dataclass(frozen=True)
class Point:
    """A type that only its registration makes storable."""

    x: int
    y: int


async def fill(saver: RowSaver, thread_id: str = "t") -> None:
    """Three checkpoints, a fork, a child namespace, writes, and an append-only channel."""
    log: list[str] = ["a"]
    marks: tuple[Mark, ...] = (Mark(0, "l0", 1),)
    parent = None
    for number in range(3):
        versions = {"x": f"x{number}", "log": f"l{number}", "same": "s"}
        changed: dict[str, Any] = {"x": [number], "log": log if number == 0 else Addition(marks[-1], number, ["b"])}
        if number == 0:
            changed["same"] = {"never": "changes"}
        else:
            log = [*log, "b"]
            marks = (*marks, Mark(number, f"l{number}", len(log)))
        held = {"x": [number], "log": log, "same": {"never": "changes"}}
        one = Unit(
            thread_id,
            "",
            [TaskWrites(f"c{number}", "task", "", [("x", number)])],
            checkpoint(f"c{number}", held, versions),
            parent,
            {"run_id": f"run {number}"},
            changed,
            {"log": marks},
        )
        await saver.send(saver.encode(one))  # type: ignore[attr-defined]
        parent = f"c{number}"
    await put(saver, "b", {"x": ["fork"]}, thread_id=thread_id, parent="c0", run_id="fork")
    await put(saver, "n1", {"x": ["old"]}, thread_id=thread_id, ns="child", run_id="run 0")
    await put(saver, "n2", {"x": ["new"]}, thread_id=thread_id, ns="child", run_id="run 2")


async def state(saver: RowSaver, thread_id: str) -> list[Any]:
    return [
        (
            stored.config["configurable"]["checkpoint_ns"],
            stored.checkpoint,
            stored.metadata,
            None if stored.parent_config is None else stored.parent_config["configurable"]["checkpoint_id"],
            stored.pending_writes,
            stored.lineage,
        )
        async for stored in saver.alist({"configurable": {"thread_id": thread_id}})
    ]


async def test_deleting_a_thread_leaves_others_alone(saver: RowSaver) -> None:
    await fill(saver, "t")
    await fill(saver, "u")
    before = await state(saver, "u")
    await saver.adelete_thread("t")
    await saver.adelete_thread("never existed")
    assert await state(saver, "t") == []
    assert await state(saver, "u") == before


async def test_a_copy_is_equal_and_independent(saver: RowSaver) -> None:
    await fill(saver)
    before = await state(saver, "t")
    await saver.acopy_thread("t", "copy")
    assert await state(saver, "copy") == before
    await put(saver, "c9", {"x": [9]}, thread_id="copy", parent="c2")
    await saver.aput_writes(config("copy", "c2"), [("x", 9)], "another")
    assert await state(saver, "t") == before
    await saver.adelete_thread("t")
    assert await values(saver, "copy", "c2") == {"x": [2], "log": ["a", "b", "b"], "same": {"never": "changes"}}
    assert await values(saver, "copy", ns="child") == {"x": ["new"]}


async def test_a_copy_keeps_what_the_target_has(saver: RowSaver) -> None:
    await fill(saver)
    await put(saver, "c1", {"x": "mine"}, thread_id="target")
    await saver.acopy_thread("t", "target")
    await saver.acopy_thread("t", "t")
    assert await values(saver, "target", "c1") == {"x": "mine"}
    assert len(await state(saver, "target")) == 6
    assert len(await state(saver, "t")) == 6


async def test_pruning_keeps_the_newest_of_each_namespace_whole(saver: RowSaver) -> None:
    await fill(saver)
    await fill(saver, "u")
    before = await state(saver, "t")
    await saver.aprune(["t", "never existed"])
    after = await state(saver, "t")
    assert after == [one for one in before if one[1]["id"] in ("c2", "n2")]
    assert len(await state(saver, "u")) == 6
    await put(saver, "c3", {"x": [3]}, parent="c2")
    assert await values(saver) == {"x": [3]}


async def test_pruning_everything(saver: RowSaver) -> None:
    await fill(saver)
    await fill(saver, "u")
    await saver.aprune(["t"], strategy="delete")
    assert await state(saver, "t") == []
    assert len(await state(saver, "u")) == 6
    with pytest.raises(ValueError, match="'keep_latest' or 'delete'"):
        await saver.aprune(["t"], strategy="keep_some")


async def test_deleting_runs_keeps_their_children_readable(saver: RowSaver) -> None:
    await fill(saver)
    before = await state(saver, "t")
    await saver.adelete_for_runs(["run 0", "no such run"])
    assert await state(saver, "t") == [one for one in before if one[1]["id"] in ("c2", "c1", "b", "n2")]
    await saver.adelete_for_runs([])
    assert len(await state(saver, "t")) == 4


async def test_a_deleted_thread_can_start_again(saver: RowSaver) -> None:
    await put(saver, "1", {"a": ["old"]})
    await saver.adelete_thread("t")
    await put(saver, "1", {"a": ["new"]})
    assert await values(saver) == {"a": ["new"]}


async def send(saver: RowSaver, checkpoint_id: str, expected_head: str | None, ns: str = "") -> None:
    one = unit("t", checkpoint_id, parent=expected_head or None, value=[checkpoint_id], ns=ns)
    one.expected_head = expected_head
    receipt = await saver.send(saver.encode(one))  # type: ignore[attr-defined]
    await receipt.wait()


async def test_a_unit_that_follows_a_head_that_moved_is_refused(saver: RowSaver) -> None:
    await send(saver, "1", "")
    await send(saver, "2", "1")
    for stale in ("1", ""):
        with pytest.raises(CheckpointConflictError, match="has moved on: another writer stored checkpoint 2 where"):
            await send(saver, "3", stale)
    with pytest.raises(CheckpointConflictError, match="stored checkpoint none where 2 was expected"):
        await send(saver, "3", "2", ns="child")
    assert await ids(saver, None) == ["2", "1"]
    await send(saver, "fork", None)
    await send(saver, "fork of a fork", "fork")
    await send(saver, "2", "1")  # tried again: it is stored already
    assert await ids(saver, None) == ["fork of a fork", "fork", "2", "1"]


async def test_a_sealed_copy_of_a_tampered_thread_copies_nothing(saver: RowSaver) -> None:
    if not saver.serde.encrypts:
        saver = InMemorySaver(serde=EncryptedSerializer(KEY))
    await put(saver, "1", {"a": [1]}, ns="a")
    sealed = saver.encode(unit("t", "1", ns="b", value=[1]))
    ((*key, _, _),) = sealed.blobs
    plain = [(*key, *Serializer().dumps_typed([1]))]
    await saver.send(msgspec.structs.replace(sealed, blobs=plain))  # type: ignore[attr-defined]
    with pytest.raises(DecryptionError):
        await saver.acopy_thread("t", "copy")
    assert await state(saver, "copy") == []


async def test_a_lost_blob_is_damage_and_the_rest_stays_readable(saver: RowSaver) -> None:
    await put(saver, "1", {"a": ["old"]})
    broken = checkpoint("2", {"a": ["never stored"]}, {"a": "v"})
    await saver.aput(config("t", "1"), broken, {}, {})
    await put(saver, "3", {"a": ["new"]})
    with pytest.raises(CorruptDataError, match="Checkpoint 2 of thread 't'.*channel 'a' has no stored value"):
        await saver.aget_tuple(config("t", "2"))
    assert await values(saver) == {"a": ["new"]}
    assert await values(saver, checkpoint_id="1") == {"a": ["old"]}
    reached = []
    with pytest.raises(CorruptDataError):
        async for stored in saver.alist(config()):
            reached.append(stored.checkpoint["id"])
    assert reached == ["3"]
    assert await ids(saver, config(), before=config("t", "2")) == ["1"]
