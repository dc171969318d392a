"""Checks at the write, and what a node receives."""

# Annotations are evaluated at once here: the classes below are local to their tests.
import dataclasses
import operator
import uuid
from datetime import UTC, datetime
from enum import Enum
from typing import Annotated, Any, Generic, Self, TypeVar

import msgspec
import pydantic
import pydantic.dataclasses
import pytest

from runtime.errors import GraphDefinitionError
from runtime.schema import introspect

T = TypeVar("T")


class Part(pydantic.BaseModel):
    n: int


class Model(pydantic.BaseModel):
    """A model with every kind of field."""

    required: int
    limited: int = pydantic.Field(default=5, ge=3, alias="Limited")
    words: list[str] = []
    doubled: Annotated[int, pydantic.AfterValidator(lambda value: value * 2)] = 0
    part: Part | None = None
    log: Annotated[list[int], operator.add] = []
    repeated: str = ""

    @pydantic.field_validator("words", mode="before")
    @classmethod
    def split(cls, value: str) -> list[str]:
        """Fail on its own result."""
        return value.split(",")

    @pydantic.field_validator("repeated")
    @classmethod
    def same_as_words(cls, value: str, info: pydantic.ValidationInfo) -> str:
        """Look at another field."""
        assert info.data["words"] is not None
        return value


def written(schema: Any, key: str, value: Any) -> Any:
    return introspect(schema).validators[key](value)


def built(schema: Any, values: dict[str, Any], *, again: bool = True) -> Any:
    found = introspect(schema)
    build = found.rebuild if again else found.build
    assert build is not None
    return build(values)


def test_a_written_value_is_what_pydantic_makes_of_it() -> None:
    assert written(Model, "required", "3") == 3
    assert written(Model, "words", "a,b") == ["a", "b"]
    assert written(Model, "doubled", 4) == 8
    assert written(Model, "part", {"n": "1"}) == Part(n=1)
    part = Part(n=1)
    assert written(Model, "part", part) is part


@pytest.mark.parametrize(("key", "value"), [("required", "x"), ("limited", 1), ("part", {"n": "x"}), ("words", "")])
def test_a_value_that_is_not_allowed_raises_pydantics_error_with_the_key(key: str, value: Any) -> None:
    class Strict(Model):
        words: Annotated[list[Annotated[str, pydantic.Field(min_length=1)]], "what it is"] = []

    with pytest.raises(pydantic.ValidationError) as caught:
        written(Strict, key, value)
    assert caught.value.errors()[0]["loc"][0] == key
    assert caught.value.title == "Strict"


def test_reducer_keys_and_fields_that_look_at_others_are_not_checked_at_the_write() -> None:
    assert set(introspect(Model).validators) == {"required", "limited", "words", "doubled", "part"}


def test_the_config_of_the_model_counts() -> None:
    class Strict(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(strict=True, str_strip_whitespace=True)
        n: int = 0
        text: str = ""

    assert written(Strict, "text", " a ") == "a"
    with pytest.raises(pydantic.ValidationError):
        written(Strict, "n", "1")


def test_a_node_receives_an_instance() -> None:
    model = built(Model, {"required": 1, "limited": 4, "log": [2]})
    assert model == Model(required=1, Limited=4, log=[2])
    assert model.model_fields_set == {"required", "limited", "log"}


def test_values_that_were_validated_are_not_validated_again() -> None:
    values = {"required": 1, "words": ["a", "b"], "doubled": 8, "repeated": "x"}
    model = built(Model, values)
    assert (model.words, model.doubled, model.repeated) == (["a", "b"], 8, "x")


def test_values_from_elsewhere_are_validated() -> None:
    model = built(Model, {"required": "1", "words": "a,b", "doubled": 4}, again=False)
    assert (model.required, model.words, model.doubled) == (1, ["a", "b"], 8)


@pytest.mark.parametrize(
    "values", [{}, {"required": 1, "log": ["x"]}, {"required": "x"}, {"required": 1, "limited": 1}]
)
def test_an_input_that_is_not_valid_raises_pydantics_error(values: dict[str, Any]) -> None:
    for again in (True, False):
        with pytest.raises(pydantic.ValidationError):
            built(Model, values, again=again)


def test_reducer_keys_are_validated_when_they_are_read() -> None:
    assert built(Model, {"required": 1, "log": ["2"]}).log == [2]


class Checked(pydantic.BaseModel):
    """A model that checks itself as a whole, and counts how often."""

    low: int = 0
    high: int = 0
    word: str = ""
    _checks: int = 0

    @pydantic.field_validator("word")
    @classmethod
    def louder(cls, value: str) -> str:
        """Change at each validation."""
        return value + "!"

    @pydantic.model_validator(mode="before")
    @classmethod
    def named(cls, values: Any) -> Any:
        """Accept another spelling."""
        return {("low" if key == "lowest" else key): value for key, value in values.items()}

    @pydantic.model_validator(mode="after")
    def ordered(self) -> Self:
        """Compare two fields."""
        self._checks += 1
        if self.low > self.high:
            msg = "low is above high"
            raise ValueError(msg)
        return self


def test_checks_of_the_whole_model_run_when_it_is_read_and_not_at_the_write() -> None:
    assert written(Checked, "low", 9) == 9
    model = built(Checked, {"low": 1, "high": 2, "word": written(Checked, "word", "hey")})
    assert (model.word, model._checks) == ("hey!", 1)
    for again in (True, False):
        with pytest.raises(pydantic.ValidationError, match="low is above high"):
            built(Checked, {"low": 9}, again=again)


def test_a_validator_of_one_choice_of_a_union_runs_once() -> None:
    class State(pydantic.BaseModel):
        either: Annotated[int, pydantic.AfterValidator(lambda value: value + 1)] | str = ""

    assert built(State, {"either": written(State, "either", 1)}).either == 2
    assert built(State, {"either": written(State, "either", "a")}).either == "a"


class Tree(pydantic.BaseModel):
    """A model that contains itself."""

    label: Annotated[str, pydantic.BeforeValidator(lambda value: value.upper())] = ""
    labels: Annotated[list[str], pydantic.BeforeValidator(lambda value: value.split())] = []
    children: "list[Tree]" = []


def test_recursive_models() -> None:
    children = written(Tree, "children", [{"label": "a", "labels": "x y"}])
    assert (children[0].label, children[0].labels) == ("A", ["X".lower(), "y"])
    tree = built(Tree, {"label": "b", "labels": ["x"], "children": children})
    assert (tree.label, tree.labels, tree.children) == ("b", ["x"], children)


def test_private_attributes_and_post_init() -> None:
    class State(pydantic.BaseModel):
        words: Annotated[list[str], pydantic.BeforeValidator(lambda value: value.split())] = []
        _seen: list[int] = pydantic.PrivateAttr(default_factory=list)

        def model_post_init(self, _: Any, /) -> None:
            self._seen.append(len(self.words))

    assert built(State, {"words": ["a", "b"]})._seen == [2]


def test_a_default_that_is_to_be_validated_is() -> None:
    class State(pydantic.BaseModel):
        n: Annotated[int, pydantic.AfterValidator(abs)] = pydantic.Field(default=-3, validate_default=True)
        words: Annotated[list[str], pydantic.BeforeValidator(lambda value: value.split())]

    assert built(State, {"words": ["a"]}).n == 3
    with pytest.raises(pydantic.ValidationError, match="words"):
        built(State, {})


def test_models_that_can_only_be_validated_whole_are_so_when_they_are_read() -> None:
    class Own(pydantic.BaseModel):
        n: int = 0

        def __init__(self, **values: Any) -> None:
            super().__init__(**{**values, "n": 7})

    class Wrapped(pydantic.BaseModel):
        n: int = 0

        @pydantic.model_validator(mode="wrap")
        @classmethod
        def around(cls, values: Any, handler: Any) -> Self:
            return handler({**values, "n": 7})  # type: ignore[no-any-return]

    class Revalidated(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(revalidate_instances="always")
        n: Annotated[int, pydantic.AfterValidator(lambda value: value + 1)] = 0

    for model in (Own, Wrapped, Revalidated):
        assert introspect(model).validators == {}
        assert built(model, {"n": "6"}).n == 7


def test_root_models_are_validated_whole() -> None:
    class Numbers(pydantic.RootModel[list[int]]):
        pass

    assert introspect(Numbers).validators == {}


def test_generic_models() -> None:
    class Carton(pydantic.BaseModel, Generic[T]):
        item: T

    assert written(Carton[int], "item", "3") == 3
    assert built(Carton[int], {"item": 3}) == Carton[int](item=3)


def test_a_pydantic_dataclass_is_checked_at_the_write_where_that_is_harmless() -> None:
    @pydantic.dataclasses.dataclass
    class State:
        n: Annotated[int, pydantic.Field(ge=3)]
        words: Annotated[list[str], pydantic.BeforeValidator(lambda value: value.split())] = dataclasses.field(
            default_factory=list
        )

    assert set(introspect(State).validators) == {"n"}
    assert written(State, "n", "3") == 3
    with pytest.raises(pydantic.ValidationError):
        written(State, "n", 1)
    assert built(State, {"n": 3, "words": "a b"}).words == ["a", "b"]


def aliased(base: Any = pydantic.BaseModel, **config: Any) -> Any:
    class State(base):  # type: ignore[misc]
        model_config = pydantic.ConfigDict(**config)  # type: ignore[typeddict-item]
        name: str = pydantic.Field("nobody", alias="Name")
        size: int = pydantic.Field(
            0, validation_alias=pydantic.AliasChoices("Size", "width", pydantic.AliasPath("sizes", 0))
        )

    return State


class Wrapping(pydantic.BaseModel):
    @pydantic.model_validator(mode="wrap")
    @classmethod
    def around(cls, values: Any, handler: Any) -> Self:
        return handler(values)  # type: ignore[no-any-return]


@pydantic.dataclasses.dataclass
class Dated:
    name: str = pydantic.Field("nobody", alias="Name")
    size: int = pydantic.Field(0, validation_alias="Size")


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        (aliased(), {"width": "size"}),
        (aliased(populate_by_name=True), {"width": "size"}),
        (aliased(revalidate_instances="always"), {"width": "size"}),
        (aliased(Wrapping), {"width": "size"}),
        (Dated, {}),
    ],
    ids=["model", "by name", "revalidated", "wrapped", "dataclass"],
)
def test_fields_go_by_their_names_and_programs_may_use_their_aliases(schema: Any, more: dict[str, str]) -> None:
    found = introspect(schema)
    assert found.aliases == {"Name": "name", "Size": "size", **more}
    for again in (False, True):
        state = built(schema, {"name": "Ann", "size": 3}, again=again)
        assert (state.name, state.size) == ("Ann", 3)


def test_structs_renamed_fields_are_aliases() -> None:
    class State(msgspec.Struct, rename="camel"):
        first_name: str = ""
        n: int = 0

    assert introspect(State).aliases == {"firstName": "first_name"}
    assert built(State, {"first_name": "Ann"}).first_name == "Ann"


def test_an_alias_that_is_another_fields_name_is_refused() -> None:
    """What is written under that name would reach the one field in the state and the other in what nodes see."""

    class State(pydantic.BaseModel):
        a: int = pydantic.Field(0, alias="b")
        b: int = pydantic.Field(0, alias="c")

    with pytest.raises(GraphDefinitionError, match="State: 'b' is an alias of 'a' and another field as well"):
        introspect(State)


class Color(Enum):
    RED = 1


class Widget:
    """A class that msgspec knows nothing of."""


class Size(msgspec.Struct):
    width: int


class Wide(Size):
    pass


class Record(msgspec.Struct):
    """A struct with every kind of field."""

    n: int
    limited: Annotated[int, "what it is", msgspec.Meta(ge=3)] = 5
    size: Size | None = None
    base: Size = msgspec.field(default_factory=lambda: Size(0))
    sizes: list[Size] = []
    color: Color = Color.RED
    widget: Widget | None = None
    any_: Any = None
    either: Size | Part | None = None
    pair: tuple[int, str] = (0, "")
    when: datetime | None = None
    ident: uuid.UUID | None = None
    log: Annotated[list[int], operator.add] = []


def test_structs_are_checked_at_the_write() -> None:
    assert set(introspect(Record).validators) == set(Record.__struct_fields__) - {"log", "either"}


@pytest.mark.parametrize(
    ("key", "value", "stored"),
    [
        ("n", 1, 1),
        ("size", {"width": 1}, Size(1)),
        ("size", None, None),
        ("sizes", ({"width": 1}, Size(2)), [Size(1), Size(2)]),
        ("color", Color.RED, Color.RED),
        ("color", 1, Color.RED),
        ("pair", [1, "a"], (1, "a")),
        ("when", datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC)),
        ("ident", uuid.UUID(int=1), uuid.UUID(int=1)),
        ("any_", object, object),
    ],
)
def test_a_struct_stores_what_msgspec_makes_of_a_value(key: str, value: Any, stored: Any) -> None:
    found = written(Record, key, value)
    assert (type(found), found) == (type(stored), stored)


@pytest.mark.parametrize(("key", "value"), [("size", Size(1)), ("base", Wide(1)), ("widget", Widget())])
def test_instances_are_taken_as_they_are(key: str, value: object) -> None:
    assert written(Record, key, value) is value


@pytest.mark.parametrize(
    ("key", "value"),
    [("n", "1"), ("limited", 1), ("size", 3), ("sizes", [{"width": "x"}]), ("widget", "x"), ("color", 9)],
)
def test_a_value_that_is_not_allowed_raises_msgspecs_error_with_the_key(key: str, value: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match=rf"\$\.{key}"):
        written(Record, key, value)


def test_types_without_checks_have_none() -> None:
    @dataclasses.dataclass
    class State:
        n: int

    assert introspect(State).validators == {}
    assert introspect(State).rebuild is introspect(State).build
