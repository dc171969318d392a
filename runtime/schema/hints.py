"""Reading annotations: what a class declares, with qualifiers and type aliases taken off."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, Literal, NewType, TypeGuard, TypeVar, cast

import msgspec
import typing_extensions as te

from runtime.errors import GraphDefinitionError
from runtime.types.attributes import attribute

Kind = Literal["typeddict", "dataclass", "struct", "pydantic", "annotated", "bare"]

_NONE: Final = object()
_QUALIFIERS: Final = frozenset({te.Required, te.NotRequired, te.ReadOnly, te.Final})


def unwrap(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type an annotation names and all metadata of its ``Annotated`` layers, inner ones first."""
    metadata: tuple[Any, ...] = ()
    while True:
        if isinstance(hint, te.TypeAliasType):
            hint = hint.__value__
        elif isinstance(hint, dataclasses.InitVar):
            hint = hint.type
        elif (origin := te.get_origin(hint)) is Annotated:
            metadata = (*hint.__metadata__, *metadata)
            hint = hint.__origin__
        elif origin in _QUALIFIERS:
            hint = te.get_args(hint)[0]
        else:
            return hint, metadata


def class_of(schema: Any) -> type | None:
    """Return the class behind a schema (the class itself, or that of a parametrised generic), or None."""
    origin = te.get_origin(schema) or schema
    return origin if isinstance(origin, type) else None


def kind_of(cls: type | None) -> Kind:
    """Tell how a class keeps its fields.

    NamedTuples and other classes with annotations are ``annotated``: they say what the fields are, and nodes get a
    dict, for nothing tells how an instance is made of some of its fields.
    """
    if cls is None or cls.__module__ in ("builtins", "typing", "collections.abc"):
        return "bare"
    if te.is_typeddict(cls):
        return "typeddict"
    if issubclass(cls, msgspec.Struct):
        return "struct"
    if is_pydantic(cls):
        return "pydantic"
    if is_dataclass(cls):
        return "dataclass"
    if not issubclass(cls, Enum) and any(map(_is_annotated, cls.__mro__)):
        return "typeddict" if issubclass(cls, dict) else "annotated"
    return "bare"


def is_pydantic(cls: type) -> bool:
    """Tell whether a class is a pydantic model, without importing pydantic."""
    return all(attribute(cls, name, _NONE) is not _NONE for name in ("__pydantic_validator__", "model_fields"))


def is_dataclass(cls: type) -> TypeGuard[Any]:
    """Tell whether a class is a dataclass, whatever its metaclass makes of being asked."""
    return attribute(cls, "__dataclass_fields__") is not None


def is_pydantic_dataclass(cls: type) -> bool:
    """Tell whether a class is a dataclass that validates itself with pydantic."""
    return is_dataclass(cls) and hasattr(cls, "__pydantic_core_schema__")


@functools.lru_cache(maxsize=1024)
def field_names(cls: type) -> tuple[str, ...]:
    """Return the fields of an annotated class; class variables, private attributes and computed fields are none."""
    return tuple(fields_of(cls))


def fields_of(schema: Any) -> dict[str, Any]:
    """Return the annotations of a schema's fields, ``Annotated`` kept. Raises GraphDefinitionError."""
    cls = cast("type", class_of(schema))
    if is_pydantic(cls):
        hints = _pydantic_hints(cls)
    else:
        hints = _hints(cls)
        if issubclass(cls, msgspec.Struct):
            hints = {name: hints[name] for name in cls.__struct_fields__}
        elif is_dataclass(cls):
            computed = {field.name for field in dataclasses.fields(cls) if not field.init}
            declared = cls.__dataclass_fields__
            hints = {name: hint for name, hint in hints.items() if name in declared and name not in computed}
    hints = {name: hint for name, hint in hints.items() if not _is_class_variable(hint)}
    arguments = _type_arguments(schema, cls)
    return {name: _substituted(hint, arguments) for name, hint in hints.items()} if arguments else hints


def try_fields_of(schema: Any) -> dict[str, Any]:
    """Return the annotations of a schema's fields; none where it has none, or where they cannot be resolved."""
    if kind_of(class_of(schema)) == "bare":
        return {}
    try:
        return fields_of(schema)
    except GraphDefinitionError:
        return {}


def first_parameter_schema(function: Callable[..., Any]) -> Any | None:
    """Return the annotation of a function's first parameter if it is a class with fields, else None.

    Looks through partials, bound methods and callable objects, and resolves annotations given as text. What cannot be
    resolved counts as not annotated.
    """
    if isinstance(function, type):
        return None
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    if not parameters or parameters[0].annotation is inspect.Parameter.empty:
        return None
    hint = _resolved(parameters[0].annotation, _written_in(function))
    if hint is None:
        return None
    hint = unwrap(hint)[0]
    return hint if try_fields_of(hint) else None


def annotations_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return a function's annotations by parameter, its result's as ``return``.

    Those that cannot be resolved are left out. Looks through partials, bound methods and callable objects, as
    ``first_parameter_schema`` does.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return {}
    written = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    written["return"] = signature.return_annotation
    namespace = _written_in(function)
    return {
        name: hint
        for name, annotation in written.items()
        if annotation is not inspect.Parameter.empty and (hint := _resolved(annotation, namespace)) is not None
    }


def is_schema(schema: Any) -> bool:
    """Tell whether something is a type at all: a class or a typing construct."""
    return (
        isinstance(schema, (type, NewType, TypeVar, te.TypeAliasType))
        or te.get_origin(schema) is not None
        or schema is Any
    )


def _is_annotated(cls: type) -> bool:
    try:
        return bool(inspect.get_annotations(cls))
    except NameError:  # there are some, and Python evaluates them only now
        return True


def _hints(cls: type) -> dict[str, Any]:
    try:
        return te.get_type_hints(cls, include_extras=True)
    except Exception as error:
        _require_attributes(cls)
        msg = (
            f"The annotations of {cls.__qualname__!r} cannot be resolved: {error}. Names in them must exist at the top "
            "of the module that defines the class; one defined inside a function is found only without "
            "`from __future__ import annotations`."
        )
        raise GraphDefinitionError(msg) from error


def _require_attributes(cls: Any) -> None:
    """Raise GraphDefinitionError for a class that cannot be asked what it has: Python's own tools do so, too."""
    try:
        getattr(cls, "__no_type_check__", None)
    except Exception as error:
        msg = (
            f"The annotations of {cls.__qualname__!r} cannot be read. Asked for an attribute that it has not, its "
            f"metaclass {type(cls).__qualname__!r} raises {type(error).__name__}: {error}. Let it raise AttributeError."
        )
        raise GraphDefinitionError(msg) from error


def _pydantic_hints(cls: Any) -> dict[str, Any]:
    fields: Mapping[str, Any] = cls.model_fields
    try:
        hints = te.get_type_hints(cls, include_extras=True)
    except Exception:  # noqa: BLE001 - pydantic itself has resolved them, from more namespaces than we can see
        hints = {}
    return {name: hints[name] if name in hints else _pydantic_annotation(field) for name, field in fields.items()}


def _pydantic_annotation(field: Any) -> Any:
    hint = field.annotation
    for meta in field.metadata:
        hint = Annotated[hint, meta]
    return hint


def _is_class_variable(hint: Any) -> bool:
    return hint is ClassVar or te.get_origin(hint) is ClassVar


def _type_arguments(schema: Any, cls: Any) -> dict[Any, Any]:
    generic = getattr(cls, "__pydantic_generic_metadata__", None)
    if generic and generic["origin"]:
        return dict(zip(generic["origin"].__pydantic_generic_metadata__["parameters"], generic["args"], strict=False))
    parameters = getattr(cls, "__parameters__", ())
    return dict(zip(parameters, te.get_args(schema), strict=False)) if isinstance(parameters, tuple) else {}


def _substituted(hint: Any, arguments: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return arguments.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ())
    if not isinstance(parameters, tuple) or not parameters or isinstance(hint, type):
        return hint
    return hint[tuple(arguments.get(parameter, parameter) for parameter in parameters)]


def _written_in(function: Any) -> dict[str, Any]:
    """Return the namespace that a callable's annotations were written in."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.FunctionType):
            enclosed = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            return {**function.__globals__, **{name: cell.cell_contents for name, cell in enclosed if _is_full(cell)}}
        elif isinstance(call := getattr(type(function), "__call__", None), types.FunctionType):
            function = call
        else:
            return {}


def _is_full(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _resolved(annotation: Any, namespace: dict[str, Any]) -> Any | None:
    holder = types.SimpleNamespace(__annotations__={"hint": annotation})
    try:
        return te.get_type_hints(holder, globalns=namespace, include_extras=True)["hint"]
    except Exception:  # noqa: BLE001 - evaluating text can raise anything; it then says nothing about the input
        return None
