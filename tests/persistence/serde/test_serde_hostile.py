"""Stored bytes are data: whatever they hold, reading imports nothing, calls nothing, and fails in a typed way."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.msgpack import Ext, encode

from persistence.errors import CorruptDataError, DecryptionError, StoredDataError, UnknownTypeError
from persistence.serde import tags
from persistence.serde.serializer import Serializer
from tests.persistence.serde.confined import outcomes
from tests.persistence.serde.corpus import CORPUS
from tests.persistence.serde.forging import CODES, LONG, forged, forged_payload
from tests.persistence.serde.samples import REGISTERED, SAMPLES, Point, Rec, registered_serializer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from persistence.serde.serializer import Typed

SERIALIZER = registered_serializer()
KINDS = range(tags.ENUM, tags.SUBCLASS + 1)
relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)


_watched: list[str] | None = None
_AUDITED = ("import", "pickle.find_class", "exec", "compile", "os.system", "subprocess.Popen", "open", "ctypes.dlopen")


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if _watched is not None and event in _AUDITED:
        _watched.append(f"{event} {args[:1]}")


sys.addaudithook(_audit)  # cannot be removed, so it is idle unless watching


@contextlib.contextmanager
def watching() -> Iterator[list[str]]:
    """Collect what the interpreter reports of imports, unpickling, execution and the like."""
    global _watched  # noqa: PLW0603 - an audit hook has no other way to know
    seen: list[str] = []
    _watched = seen
    try:
        yield seen
    finally:
        _watched = None


@pytest.fixture
def trap(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pathlib.Path]:
    """Provide a module that leaves a mark when it is imported; yields where the mark would be."""
    mark = tmp_path / "imported"
    code = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\nclass Trap(dict): pass\n"
    (tmp_path / "serde_trap.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield mark
    assert "serde_trap" not in sys.modules


NAMES = [
    "serde_trap:Trap",
    "serde_trap.Trap",
    "serde_trap",
    "os:system",
    "builtins:eval",
    "subprocess:Popen",
    "",
    "a:b",
]


@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("code", KINDS)
def test_a_named_class_is_never_imported(trap: pathlib.Path, code: int, name: str, *, strict: bool) -> None:
    """A name that nobody registered is an error, in every kind of class, and no reason to import or call."""
    serializer = Serializer(strict=strict)
    payloads: list[list[Any]] = [[], [{}], [["echo gotcha"]], [{"x": 1}, {}, []], ["x"]]
    with watching() as seen:
        for rest in payloads:
            with pytest.raises(UnknownTypeError, match="not registered"):
                serializer.loads_typed(forged({"a": [Ext(code, encode([name, *rest]))]}))
    assert seen == []
    assert not trap.exists()


def test_registered_classes_are_rebuilt_only_as_what_they_are(trap: pathlib.Path) -> None:
    """A registered class, in any kind but its own, is an error; so is one that cannot be rebuilt."""

    class Callable:
        def __init__(self, *_: object) -> None:
            trap.touch()

    serializer = registered_serializer()
    serializer.registry.register(Callable, name="callable")
    serializer.registry.register(int, str, type)
    names = ["callable", "builtins:int", "builtins:type", "builtins:str"]
    names += [name for cls in REGISTERED if (name := serializer.registry.name_of(cls))]
    for code in KINDS:
        for name in names:
            with contextlib.suppress(CorruptDataError):
                value = serializer.loads_typed(forged(Ext(code, encode([name]))))
                assert type(value) in REGISTERED
    assert not trap.exists()


@pytest.mark.usefixtures("trap")
def test_zones_are_looked_up_not_imported() -> None:
    """A time zone that does not exist makes zoneinfo import a module named after it; it is not asked."""
    with watching() as seen:
        for name in ("serde_trap/Trap", "../../etc/passwd", "/etc/passwd", "No/Where", "", ".", "Europe", "a\0b"):
            for tree in (Ext(tags.ZONE, name.encode()), Ext(tags.DATETIME, encode(["2024-01-01T00:00:00", name]))):
                with pytest.raises(CorruptDataError, match="does not know"):
                    SERIALIZER.loads_typed(forged(tree))
    assert seen == []


@pytest.mark.parametrize("name", SAMPLES)
def test_reading_what_was_written_imports_nothing(name: str) -> None:
    """Reading goes by what is loaded already, also for values that are fine."""
    typed = SERIALIZER.dumps_typed(SAMPLES[name])
    SERIALIZER.loads_typed(typed)  # a zone is read from its file once
    with watching() as seen:
        SERIALIZER.loads_typed(typed)
    assert seen == []


ALL_SORTS = [
    "text",
    "bytes",
    "surrogate key",
    "nested tuple",
    "odd keys",
    "zone",
    "model",
    "derived",
    "array",
    "exception",
]


@pytest.mark.parametrize("name", [*ALL_SORTS, "none", "empty list", "zero"])
def test_every_flipped_bit_and_every_cut_is_noticed(name: str) -> None:
    """Damage never becomes another value."""
    kind, data = SERIALIZER.dumps_typed(SAMPLES[name])
    for position in range(len(data)):
        for bit in range(8):
            damaged = bytearray(data)
            damaged[position] ^= 1 << bit
            with pytest.raises(CorruptDataError):
                SERIALIZER.loads_typed((kind, bytes(damaged)))
        with pytest.raises(CorruptDataError):
            SERIALIZER.loads_typed((kind, data[:position]))
    with pytest.raises(CorruptDataError):
        SERIALIZER.loads_typed((kind, data + b"\0"))


def test_the_type_belongs_to_the_checksum() -> None:
    """A value whose type was changed is not read as another type."""
    for value, other in ((b"\x01", "msgpack"), (1, "bytes"), (1, "null"), (b"", "null")):
        _, data = SERIALIZER.dumps_typed(value)
        with pytest.raises(CorruptDataError):
            SERIALIZER.loads_typed((other, data))


def test_types_that_this_version_does_not_know() -> None:
    """An unknown type or code is an error that says so; a sealed value asks for its key."""
    with pytest.raises(UnknownTypeError, match="pickle"):
        SERIALIZER.loads_typed(("pickle", b"cos\nsystem\n(S'true'\ntR."))
    with pytest.raises(UnknownTypeError, match="json"):
        SERIALIZER.loads_typed(("json", b'{"lc": 2, "type": "constructor", "id": ["os", "system"]}'))
    with pytest.raises(DecryptionError, match="encrypted"):
        SERIALIZER.loads_typed(("msgpack+aes", b"x" * 40))
    for code in set(range(-128, 128)) - set(CODES) - {-1}:
        with pytest.raises(UnknownTypeError, match=f"code {code}"):
            SERIALIZER.loads_typed(forged([Ext(code, b"\x01")]))


@relaxed
@given(st.text(max_size=12), st.binary(max_size=80))
def test_random_rows(kind: str, data: bytes) -> None:
    """Any type with any data is an error of this package's."""
    for each in (kind, "msgpack", "bytes", "null"):
        if each == "null" and not data:
            continue
        with pytest.raises(StoredDataError):
            SERIALIZER.loads_typed((each, data))


def _load(typed: Typed) -> None:
    with contextlib.suppress(StoredDataError):
        SERIALIZER.loads_typed(typed)


@relaxed
@given(st.binary(max_size=80))
def test_random_payloads(payload: bytes) -> None:
    """Even with a right checksum, random bytes give a value or a typed error."""
    with watching() as seen:
        _load(forged_payload(payload))
    assert seen == []


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=5), st.binary(max_size=9),
    st.sampled_from(NAMES), st.sampled_from([name for c in REGISTERED if (name := SERIALIZER.registry.name_of(c))]),
    st.sampled_from(["builtins:OSError", "x", "a", "<i4", "O", "|V8", "C", "list", "2024-01-01T00:00:00"]),
    st.just("Europe/Paris"), st.sampled_from([LONG, "1e99999999", Ext(tags.DECIMAL, b"1e99999999")]),
)  # fmt: skip


def _trees(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(Ext, st.sampled_from(CODES), st.one_of(inner.map(encode), st.binary(max_size=20))),
        st.builds(Ext, st.integers(-128, 127), st.lists(inner, max_size=4).map(encode)),
    )


@settings(relaxed, max_examples=300)
@given(st.recursive(scalars, _trees, max_leaves=8))
def test_well_formed_nonsense(tree: Any) -> None:
    """Known codes around the wrong payloads give a value or a typed error, and nothing is imported or run."""
    with watching() as seen:
        _load(forged(tree))
    assert [event for event in seen if "zoneinfo" not in event and "tzif" not in event.lower()] == []


@settings(relaxed, max_examples=150)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
def test_damage_behind_a_right_checksum(name: str, data: st.DataObject) -> None:
    """A payload changed by somebody who also fixed the checksum gives a value or a typed error."""
    kind, stored = SERIALIZER.dumps_typed([SAMPLES[name]])
    payload = bytearray(stored[4:])
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, len(payload) - 1))
        payload[position] = data.draw(st.integers(0, 255))
    _load(forged_payload(bytes(payload), kind))


BOMBS = {
    "lists": b"\x91" * 100_000,
    "maps": b"\x81\x01" * 100_000,
    "list header": b"\xdd\xff\xff\xff\xff\x01",
    "map header": b"\xdf\xff\xff\xff\xff\x01",
    "text header": b"\xdb\xff\xff\xff\xff\x01",
    "extension header": b"\xc9\xff\xff\xff\xff\x0a\x01",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str) -> None:
    """Absurd nesting and absurd lengths cost little and are typed errors."""
    tracemalloc.start()
    try:
        with pytest.raises(CorruptDataError):
            SERIALIZER.loads_typed(forged_payload(BOMBS[name]))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_bomb_of_nested_codes() -> None:
    """Extensions in extensions beyond what the stack holds are a typed error."""
    payload = b"\x90"
    for _ in range(2_000):
        payload = encode([Ext(tags.TUPLE, payload)])
    with pytest.raises(CorruptDataError, match="nested too deeply"):
        SERIALIZER.loads_typed(forged_payload(payload))


ARRAYS: list[list[Any]] = [
    ["O", [1], "C", b"\0" * 8],
    ["<i4", [2**40], "C", b""],
    ["<i4", [-1], "C", b""],
    ["<i4", [2], "C", b"\0" * 7],
    ["<i4", [1], "X", b"\0" * 4],
    ["i4,O", [1], "C", b"\0" * 12],
    [[["a", "O"]], [1], "C", b"\0" * 8],
    [{"names": ["a"], "formats": ["O"]}, [1], "C", b"\0" * 8],
    ["<U0", [2**40, 0], "C", b""],
]


@pytest.mark.parametrize("parts", ARRAYS, ids=str)
def test_arrays_that_are_none(parts: list[Any]) -> None:
    """Objects, shapes and sizes that cannot be are refused before memory is touched."""
    for tree in (Ext(tags.ARRAY, encode(parts)), Ext(tags.ARRAY_SCALAR, encode([parts[0], parts[3]]))):
        try:
            value = SERIALIZER.loads_typed(forged(tree))
        except CorruptDataError:
            continue
        assert not np.asarray(value).dtype.hasobject
        assert np.asarray(value).nbytes == len(parts[3])


@pytest.mark.slow
def test_what_once_broke_is_a_typed_error() -> None:
    """Read in a process that is watched and may use little time and memory, as some of it would end this one."""
    assert dict(zip(CORPUS, outcomes(list(map(forged, CORPUS.values()))), strict=True)) == dict.fromkeys(
        CORPUS, "error CorruptDataError"
    )


def test_texts_of_no_characters_stay_so() -> None:
    """As long as numpy lets them be: its functions make them one longer, its arrays hold them."""
    for dtype in ("<U0", "|S0", "|V0"):
        given = np.ndarray([3], np.dtype(dtype))
        found = SERIALIZER.loads_typed(SERIALIZER.dumps_typed(given))
        assert isinstance(found, np.ndarray)
        assert (found.dtype, found.shape, found.nbytes) == (given.dtype, (3,), 0)


def test_numbers_of_items_are_checked() -> None:
    """A key without a value, an unknown factory, or a path of no known class is damage."""
    trees = [
        Ext(tags.MAPPING, encode([1])),
        Ext(tags.DEFAULT_DICT, encode(["eval"])),
        Ext(tags.DEFAULT_DICT, encode([])),
        Ext(tags.PATH, b"\x09a"),
        Ext(tags.IP, b""),
        Ext(tags.UUID, b"1"),
        Ext(tags.SET, encode([[{}]])),
        Ext(tags.PATTERN, encode(["a", 128])),
        Ext(tags.PATTERN, encode(["(", 0])),
        Ext(tags.SECRET, encode([1])),
        Ext(tags.DECIMAL, b"\xff"),
        Ext(tags.SUBCLASS, encode(["tests.persistence.serde.samples:UserId", 5])),
        Ext(tags.ENUM, encode(["tests.persistence.serde.samples:Color", None, "red"])),
        Ext(tags.NAMED_TUPLE, encode(["tests.persistence.serde.samples:Pair", 1, 2, 3])),
        Ext(tags.EXCEPTION, encode(["builtins:UnicodeDecodeError", [1]])),
        Ext(tags.DATACLASS, encode([["a"], {}])),
        Ext(tags.DATACLASS, encode([])),
    ]
    for tree in trees:
        with pytest.raises(CorruptDataError):
            SERIALIZER.loads_typed(forged([tree]))


def test_reading_leaks_nothing() -> None:
    """Memory stays flat over many reads of every container and of large payloads."""
    values = [
        bytearray(1024), tuple(range(300)), {1, 2, 3}, frozenset({"a"}), {(1, 2): [3]}, Point((1,)), Rec((1,)), ...,
        "\ud800",
    ]  # fmt: skip
    typed = SERIALIZER.dumps_typed(values)

    def read(times: int) -> None:
        for _ in range(times):
            assert len(SERIALIZER.loads_typed(typed)) == len(values)  # type: ignore[arg-type]

    read(50)
    tracemalloc.start()
    try:
        read(50)
        before, _ = tracemalloc.get_traced_memory()
        read(1_000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000


def test_failed_reads_leak_nothing() -> None:
    """Nor over reads that fail half way."""
    typed = forged([bytes(1024), Ext(tags.TUPLE, encode([bytes(1024), Ext(99, bytes(1024))]))])

    def read(times: int) -> None:
        for _ in range(times):
            _load(typed)

    read(50)
    tracemalloc.start()
    try:
        read(50)
        before, _ = tracemalloc.get_traced_memory()
        read(1_000)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 50_000


def test_the_sources_hold_no_pickle() -> None:
    """No module of the package unpickles, evaluates or imports by name."""
    import persistence.serde  # noqa: PLC0415 - only its place is needed

    for source in pathlib.Path(persistence.serde.__path__[0]).glob("*.py"):
        text = source.read_text()
        for word in ("import pickle", "import_module", "__import__", "eval(", "exec(", "marshal"):
            assert word not in text, f"{source.name} has {word}"
