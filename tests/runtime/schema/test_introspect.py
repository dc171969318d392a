"""What state types stand for."""

# Annotations are evaluated at once here: the classes below are local to their tests.
import dataclasses
import operator
import subprocess
import sys
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

import attrs
import msgspec
import pydantic
import pytest
import typing_extensions as te

from runtime.channels import (
    AnyValue,
    BinaryOperatorAggregate,
    DeltaChannel,
    EphemeralValue,
    LastValue,
    NamedBarrierValue,
    Topic,
    UntrackedValue,
)
from runtime.errors import GraphDefinitionError
from runtime.schema import Schema, introspect, merge_channels
from runtime.types.managed import IsLastStep, IsLastStepManager, RemainingSteps, RemainingStepsManager

T = TypeVar("T")


def keep_last(_: Any, right: Any) -> Any:
    return right


def state(**hints: Any) -> Schema:
    """Return the schema of a TypedDict with these keys."""
    return introspect(typing.TypedDict("State", hints))


def declared(hint: Any) -> Any:
    """Return the channel of a key declared like this."""
    return state(key=hint).channels["key"]


def test_a_plain_annotation_is_a_last_value() -> None:
    channel = declared(list[int])
    assert type(channel) is LastValue
    assert (channel.key, channel.typ) == ("key", list[int])
    assert not channel.is_available()


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (Annotated[list, EphemeralValue(list)], EphemeralValue),
        (Annotated[list, "first", UntrackedValue(list), "last"], UntrackedValue),
        (Annotated[list, Topic], Topic),
        (Annotated[list, "first", AnyValue, keep_last], AnyValue),
        (Annotated[list, EphemeralValue(list), Topic(str)], EphemeralValue),
    ],
)
def test_a_channel_may_stand_anywhere_in_the_metadata(hint: Any, kind: type[Any]) -> None:
    channel = declared(hint)
    assert type(channel) is kind
    assert (channel.key, channel.typ) == ("key", list)


def test_a_function_that_is_last_in_the_metadata_folds() -> None:
    channel = declared(Annotated[list, "what it is", operator.add])
    assert type(channel) is BinaryOperatorAggregate
    assert (channel.operator, channel.typ, channel.key, channel.get()) == (operator.add, list, "key", [])


def test_a_function_that_is_not_last_says_nothing() -> None:
    assert type(declared(Annotated[list, keep_last, "what it is"])) is LastValue
    assert type(declared(list | Annotated[str, keep_last])) is LastValue


class Folding:
    """A reducer that is an object."""

    def __call__(self, left: Any, right: Any) -> Any:
        return left + right


@pytest.mark.parametrize(
    "reducer",
    [
        keep_last,
        Folding(),
        operator.add,
        list.__add__,
        lambda left, right=None: left or right,
        lambda left, right, *, strict=False: (left, right, strict),
        lambda left, right, *rest, **named: (left, right, rest, named),
    ],
)
def test_a_reducer_has_two_positional_parameters(reducer: Callable[..., Any]) -> None:
    assert declared(Annotated[list, reducer]).operator is reducer


@pytest.mark.parametrize("reducer", [lambda left: left, lambda a, b, c: (a, b, c), lambda *all_of_them: all_of_them])
def test_any_other_number_is_refused(reducer: Callable[..., Any]) -> None:
    with pytest.raises(
        GraphDefinitionError, match=r"Invalid reducer signature.*Expected \(a, b\) -> c.*key 'key' of 'State'"
    ):
        declared(Annotated[list, reducer])


@pytest.mark.parametrize("reducer", [max, dict.update, int])
def test_a_reducer_whose_signature_cannot_be_read_is_refused(reducer: Callable[..., Any]) -> None:
    with pytest.raises(GraphDefinitionError, match=r"Invalid reducer signature.*wrap it in a function"):
        declared(Annotated[list, reducer])


def test_qualifiers_are_taken_off_wherever_they_stand() -> None:
    for hint in (
        te.Required[Annotated[list, operator.add]],
        te.NotRequired[te.ReadOnly[Annotated[list, operator.add]]],
        Annotated[te.NotRequired[list], operator.add],
    ):
        assert (declared(hint).typ, declared(hint).operator) == (list, operator.add)


def test_type_aliases_are_looked_through() -> None:
    Log = te.TypeAliasType("Log", Annotated[list[int], operator.add])  # noqa: N806 - it is a type
    assert declared(Log).operator is operator.add


def test_a_batch_reducer_starts_from_the_annotated_type() -> None:
    channel = declared(Annotated[dict, DeltaChannel(lambda value, writes: {**value, **writes[-1]})])
    assert (channel.typ, channel.get()) == (dict, {})


@pytest.mark.parametrize("kind", [BinaryOperatorAggregate, DeltaChannel, NamedBarrierValue])
def test_a_channel_class_that_needs_more_than_a_type_is_refused(kind: type) -> None:
    with pytest.raises(GraphDefinitionError, match=f"{kind.__name__} needs more than a type"):
        declared(Annotated[list, kind])


def test_a_given_channel_is_not_touched_and_may_be_used_twice() -> None:
    given = Topic(int, accumulate=True)
    given.update([1])

    class State(typing.TypedDict):
        a: Annotated[list[int], given]
        b: Annotated[list[int], given]

    channels = introspect(State).channels
    assert [(channel.key, channel.is_available()) for channel in channels.values()] == [("a", False), ("b", False)]
    assert (given.key, given.get()) == ("", [1])


def test_managed_values_are_no_channels() -> None:
    class State(typing.TypedDict):
        last: IsLastStep
        left: te.NotRequired[RemainingSteps]
        n: int

    schema = introspect(State)
    assert schema.managed == {"last": IsLastStepManager, "left": RemainingStepsManager}
    assert list(schema.channels) == ["n"]


def test_a_managed_value_is_no_state() -> None:
    with pytest.raises(GraphDefinitionError, match="managed value"):
        introspect(IsLastStep)


class Parent(typing.TypedDict):
    a: Annotated[list[int], operator.add]


class Child(Parent, total=False):
    b: "te.NotRequired[int]"


class Modern(te.TypedDict, extra_items=int):  # type: ignore[call-arg]
    a: te.ReadOnly[int]


class Empty(typing.TypedDict):
    pass


class Record(dict[str, Any]):
    a: int


@pytest.mark.parametrize(
    ("schema", "keys"),
    [(Child, ["a", "b"]), (Modern, ["a"]), (Empty, []), (Record, ["a"])],
    ids=str,
)
def test_typed_dicts(schema: Any, keys: list[str]) -> None:
    found = introspect(schema)
    assert (found.kind, list(found.channels), found.build, found.rebuild) == ("typeddict", keys, None, None)
    assert found.updates({"a": 1}) is None


@pytest.mark.parametrize("schema", [int, list[int], int | str, Any, type(None), te.NewType("N", int), te.Literal["a"]])
def test_a_type_without_fields_is_one_value(schema: Any) -> None:
    found = introspect(schema)
    assert (found.kind, list(found.channels), found.build) == ("bare", ["__root__"], None)
    assert type(found.channels["__root__"]) is LastValue
    assert found.updates(1) is None


def test_an_annotated_type_is_one_value_that_folds() -> None:
    found = introspect(Annotated[list, operator.add])
    assert found.kind == "bare"
    assert found.channels["__root__"].get() == []
    assert type(introspect(Annotated[list, Topic(int)]).channels["__root__"]) is Topic


@pytest.mark.parametrize("schema", ["State", 5, None, [int]])
def test_what_is_not_a_type_is_refused(schema: object) -> None:
    with pytest.raises(GraphDefinitionError, match="is not a state schema"):
        introspect(schema)


class Unresolvable(typing.TypedDict):
    a: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - what it is about


def test_names_that_cannot_be_resolved_are_named() -> None:
    with pytest.raises(GraphDefinitionError, match=r"'Unresolvable' cannot be resolved.*'Nowhere'"):
        introspect(Unresolvable)


def test_a_dataclass() -> None:
    @dataclasses.dataclass
    class State:
        a: int
        seed: dataclasses.InitVar[int]
        log: Annotated[list[int], operator.add] = dataclasses.field(default_factory=list)
        total: int = dataclasses.field(init=False, default=0)
        limit: ClassVar[int] = 3

        def __post_init__(self, seed: int) -> None:
            self.total = self.a + seed

    schema = introspect(State)
    assert (schema.kind, list(schema.channels)) == ("dataclass", ["a", "seed", "log"])
    assert schema.channels["seed"].typ is int
    assert schema.build is not None
    assert schema.build({"a": 1, "seed": 2, "log": [3]}).total == 3
    with pytest.raises(TypeError, match="seed"):
        schema.build({"a": 1})


class Point(NamedTuple):
    x: int
    y: Annotated[int, operator.add] = 0


class Plain:
    a: int
    limit: ClassVar = 3

    def __init__(self, a: int) -> None:
        self.a = a


class Shape(Protocol):
    a: int


@attrs.define
class Attrs:
    a: int
    log: Annotated[list[int], operator.add] = attrs.Factory(list)


@pytest.mark.parametrize(
    ("schema", "keys"), [(Point, ["x", "y"]), (Plain, ["a"]), (Attrs, ["a", "log"]), (Shape, ["a"])]
)
def test_other_classes_with_annotations(schema: Any, keys: list[str]) -> None:
    """Say which keys there are; nodes get a dict, as nothing tells how an instance is made of some of its fields."""
    found = introspect(schema)
    assert (found.kind, list(found.channels)) == ("annotated", keys)
    assert (found.build, found.rebuild) == (None, None)


@pytest.mark.parametrize("given", [Point(1), Plain(1), Attrs(1)], ids=["named tuple", "plain class", "attrs"])
def test_their_instances_are_writes(given: Any) -> None:
    schema = introspect(type(given))
    writes = schema.updates(given)
    assert writes is not None
    assert writes[0] == (next(iter(schema.channels)), 1)


def test_a_struct() -> None:
    class State(msgspec.Struct, rename="camel"):
        some_key: int
        log: Annotated[list[int], operator.add] = []
        limit: ClassVar[int] = 3

    schema = introspect(State)
    assert (schema.kind, list(schema.channels)) == ("struct", ["some_key", "log"])
    assert schema.build is not None
    assert schema.build({"some_key": 1, "log": [2]}) == State(1, [2])
    with pytest.raises(TypeError, match="some_key"):
        schema.build({})


def test_a_pydantic_model() -> None:
    class State(pydantic.BaseModel):
        a: int = pydantic.Field(ge=3)
        b: Annotated[list[int], operator.add] = []
        c: Annotated[list[int], pydantic.Field(max_length=3), operator.add] = pydantic.Field(default=[], min_length=0)
        _secret: int = 3
        limit: ClassVar[int] = 3

    schema = introspect(State)
    assert (schema.kind, list(schema.channels)) == ("pydantic", ["a", "b", "c"])
    assert [type(channel) for channel in schema.channels.values()] == [
        LastValue,
        BinaryOperatorAggregate,
        BinaryOperatorAggregate,
    ]
    assert schema.channels["c"].typ == list[int]


class Box(typing.TypedDict, Generic[T]):
    item: T
    count: int
    items: Annotated[list[T], operator.add]


@dataclasses.dataclass
class Crate(Generic[T]):
    item: T


class Carton(pydantic.BaseModel, Generic[T]):
    item: T


def test_generics_take_their_arguments() -> None:
    box = introspect(Box[int])
    assert (box.kind, {key: channel.typ for key, channel in box.channels.items()}) == (
        "typeddict",
        {"item": int, "count": int, "items": list[int]},
    )
    crate = introspect(Crate[int])
    assert (crate.kind, crate.channels["item"].typ) == ("dataclass", int)
    assert crate.build is not None
    assert crate.build({"item": 1}) == Crate(1)
    assert crate.updates(Crate(1)) == [("item", 1)]
    assert introspect(Carton[int]).channels["item"].typ is int
    assert introspect(Box).channels["item"].typ is T


class Later(pydantic.BaseModel):
    later: "Late"


class Never(pydantic.BaseModel):
    never: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - what it is about


class Late(pydantic.BaseModel):
    n: int


def test_a_model_that_pydantic_completes_later() -> None:
    assert introspect(Later).channels["later"].typ is Late


def test_a_model_that_cannot_be_completed_is_refused() -> None:
    with pytest.raises(GraphDefinitionError, match="'Never' is not fully defined"):
        introspect(Never)


def local_model() -> Any:
    class Inner(pydantic.BaseModel):
        n: int

    class Outer(pydantic.BaseModel):
        inner: "Annotated[list[Inner], operator.add]"
        plain: "Annotated[Inner, 'what it is']"

    return Outer


def test_a_model_whose_annotations_only_pydantic_can_resolve() -> None:
    channels = introspect(local_model()).channels
    assert type(channels["inner"]) is BinaryOperatorAggregate
    assert channels["plain"].typ.__name__ == "Inner"


def test_a_class_is_taken_apart_once() -> None:
    assert introspect(Child) is introspect(Child)
    assert introspect(list[int]) is not introspect(list[int])


def test_bare_types_with_equal_channels_are_kept_apart() -> None:
    one = Annotated[list, BinaryOperatorAggregate(list, lambda left, right: left + right)]
    other = Annotated[list, BinaryOperatorAggregate(list, lambda _, right: right)]
    results = []
    for schema in (one, other):
        channel = introspect(schema).channels["__root__"].fresh()
        channel.update([[1], [2]])
        results.append(channel.get())
    assert results == [[1, 2], [2]]


def merged(*hints: Any) -> Any:
    return merge_channels(state(key=hint) for hint in hints)["key"]


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (Annotated[list, keep_last], list),
        (Annotated[list, EphemeralValue(list)], list),
        (list, int),
        (Annotated[list, keep_last], Annotated[str, keep_last]),
        (Annotated[list, lambda a, b: a or b], Annotated[list, keep_last]),
    ],
)
def test_the_first_definition_of_a_key_counts(first: Any, later: Any) -> None:
    kept = merged(first, later)
    assert kept == declared(first)
    assert kept.typ == declared(first).typ


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (list, Annotated[list, keep_last]),
        (list, Annotated[list, EphemeralValue(list)]),
        (Annotated[list, keep_last], Annotated[list, operator.add]),
        (Annotated[list, Topic(str)], Annotated[list, Topic(str, accumulate=True)]),
    ],
)
def test_definitions_that_disagree_are_refused(first: Any, later: Any) -> None:
    with pytest.raises(GraphDefinitionError, match="Channel 'key' already exists with a different type"):
        merged(first, later)


def test_merging_keeps_the_keys_of_all_schemas() -> None:
    assert list(merge_channels([state(a=int), state(b=int, a=int), introspect(Point)])) == ["a", "b", "x", "y"]


def test_the_message_of_a_disagreement_names_the_schema() -> None:
    with pytest.raises(GraphDefinitionError, match="in 'Child'"):
        merge_channels([state(a=int), introspect(Child)])
    with pytest.raises(GraphDefinitionError, match=r"in typing\.Annotated"):
        merge_channels([introspect(int), introspect(Annotated[Sequence[int], operator.add])])


def test_optional_libraries_are_imported_only_when_used() -> None:
    program = (
        "import sys, runtime.schema as s, typing\n"
        "s.introspect(s.MessagesState)\n"
        "s.introspect(typing.TypedDict('State', {'n': int}))\n"
        "print([name for name in ('pydantic', 'pydantic_core', 'langchain_core') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
