"""What goes in comes out: same type, same value, wherever it stands."""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tests.persistence.serde.samples import (
    SAMPLES,
    Box,
    Color,
    FrozenRec,
    Inner,
    Level,
    Model,
    Pair,
    Point,
    Rec,
    Slotted,
    Stack,
    is_hashable,
    registered_serializer,
    same,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from persistence.serde.serializer import Serializer


@pytest.fixture(scope="module")
def serializer() -> Serializer:
    """Return a serializer that knows the sample classes."""
    return registered_serializer()


def _model(value: Any) -> Model:
    model = Model.model_construct(name="n", anything=value, more=value)
    model._private = value
    return model


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "alone": lambda value: value,
    "in a list": lambda value: [0, value, "x"],
    "in a tuple": lambda value: (value, value),
    "in a dict": lambda value: {"a": {"b": value}},
    "beside odd keys": lambda value: {(1,): value},
    "in an ordered dict": lambda value: OrderedDict(a=value),
    "in a default dict": lambda value: defaultdict(list, a=value),
    "in a deque": lambda value: deque([value], maxlen=3),
    "in a dataclass": lambda value: Point(value, [value]),
    "in slots": Slotted,
    "in a struct": lambda value: Rec(value, [value]),
    "in a frozen struct": lambda value: FrozenRec(a=value),
    "in a named tuple": lambda value: Pair(value, (value,)),
    "in a model": _model,
    "in a generic": Box,
    "in a list subclass": lambda value: Stack([value]),
    "in an exception": lambda value: ValueError("bad", value),
    "in a group": lambda value: ExceptionGroup("g", [KeyError(value)]),
}

KEYS: dict[str, Callable[[Any], Any]] = {
    "as a key": lambda value: {value: 1, "other": 2},
    "as an element": lambda value: {value},
    "as a frozen element": lambda value: frozenset({(value,)}),
    "as a counted key": lambda value: Counter({value: 2}),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_kind_comes_back_from_every_container(serializer: Serializer, name: str) -> None:
    """A value is the same after a round trip, alone and inside everything that can hold it."""
    value = SAMPLES[name]
    places = CONTAINERS | (KEYS if is_hashable(value) else {})
    for place, wrap in places.items():
        before = wrap(value)
        after = serializer.loads_typed(serializer.dumps_typed(before))
        assert same(before, after), f"{name} {place}: {before!r} came back as {after!r}"


def test_sameness_sees_what_equality_does_not() -> None:
    """The comparison that these tests rest on tells apart what ``==`` does not."""
    assert not same([1], [True])
    assert not same({"a": Level.LOW}, {"a": 1})
    assert not same(0.0, -0.0)
    assert not same({"a": 1, "b": 2}, {"b": 2, "a": 1})
    assert not same(Color.RED, "red")
    assert same(Point(float("nan")), Point(float("nan")))


def test_post_init_and_validators_do_not_run_again(serializer: Serializer) -> None:
    """Values come back as they were, not as their class would make them."""
    FrozenRec.runs.clear()
    struct = FrozenRec(a=1)
    model = Model(name="ada")
    model.name = "Ada"
    again, model_again = _again(serializer, [struct, model])
    assert FrozenRec.runs == [1]
    assert (again, type(again)) == (struct, FrozenRec)
    assert model_again.name == "Ada"


def test_fields_set_survive(serializer: Serializer) -> None:
    """A model still knows which of its fields were set."""
    assert _again(serializer, Inner()).model_fields_set == set()
    assert _again(serializer, Inner(n=1)).model_fields_set == {"n"}


def test_the_decoded_value_is_a_new_one(serializer: Serializer) -> None:
    """Changing what was loaded changes nothing that was stored."""
    value = {"a": [1, (2,)]}
    typed = serializer.dumps_typed(value)
    loaded: Any = serializer.loads_typed(typed)
    loaded["a"].append(3)
    assert value == {"a": [1, (2,)]}
    assert serializer.loads_typed(typed) == value


def test_instance_dict_of_an_object_is_written_like_any_dict(serializer: Serializer) -> None:
    """The dict of an instance, whose keys are kept elsewhere, is no exception."""
    plain, tagged = Point(1).__dict__, Point((1,)).__dict__
    assert same(_again(serializer, plain), plain)
    assert same(_again(serializer, tagged), tagged)


def test_types_of_the_stored_form(serializer: Serializer) -> None:
    """The stored type is short; None carries no data."""
    assert serializer.dumps_typed(None) == ("null", b"")
    assert serializer.dumps_typed(b"x")[0] == "bytes"
    assert serializer.dumps_typed(1)[0] == "msgpack"


def test_stored_data_may_come_as_any_buffer(serializer: Serializer) -> None:
    """Drivers hand over bytes, bytearrays and memoryviews."""
    for value in (b"x", {"a": (1,)}):
        kind, data = serializer.dumps_typed(value)
        for buffer in (bytearray(data), memoryview(data)):
            assert serializer.loads_typed((kind, buffer)) == value  # type: ignore[arg-type]


def test_large_plain_values(serializer: Serializer) -> None:
    """Wide and mixed values take the fast path and come back; one tag at the far end takes the slow one."""
    rows: list[Any] = [{"id": i, "tags": ["a", None], "f": i / 3, "m": {str(i): [True]}} for i in range(200)]
    assert same(_again(serializer, rows), rows)
    rows[-1]["m"]["199"].append((1,))
    assert same(_again(serializer, rows), rows)


def test_unset_struct_fields(serializer: Serializer) -> None:
    """A field that holds UNSET is not one that was left out."""
    assert _again(serializer, Rec(1)).b is msgspec.UNSET


def test_messages_of_langchain(serializer: Serializer) -> None:
    """Chat messages come back with calls, usage and ids."""
    messages = pytest.importorskip("langchain_core.messages")
    serializer.register_types(
        [
            messages.HumanMessage,
            messages.AIMessage,
            messages.AIMessageChunk,
            messages.ToolMessage,
            messages.SystemMessage,
        ]
    )
    call = {"name": "f", "args": {"x": [1]}, "id": "c1", "type": "tool_call"}
    usage = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    value = [
        messages.SystemMessage("s"),
        messages.HumanMessage([{"type": "text", "text": "hi"}], id="1", name="u"),
        messages.AIMessage("", id="2", tool_calls=[call], usage_metadata=usage, response_metadata={"m": (1,)}),
        messages.AIMessageChunk("ch", tool_call_chunks=[{"name": "f", "args": "{", "id": "c", "index": 0}]),
        messages.ToolMessage("out", tool_call_id="c1", artifact={"raw": (1, 2)}, status="error"),
    ]
    assert same(_again(serializer, value), value)


def _again(serializer: Serializer, value: Any) -> Any:
    return serializer.loads_typed(serializer.dumps_typed(value))
