"""Pydantic models and pydantic dataclasses, field by field.

Pydantic validates whole models. A write is one field, often of a model that is not complete yet, and what a field
validator made of it must not go through that validator again at every read. So the model's core schema, which pydantic
publishes for such uses, is taken apart: one validator per field, with its constraints and field validators, and one for
the model in which fields known to be valid are taken as they are. A model whose core schema has an unknown form is
validated as a whole, and only when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from runtime.errors import GraphDefinitionError

CoreSchema = dict[str, Any]

_INSTANCES: Final = frozenset({"model", "dataclass", "definition-ref"})
"""Core schema nodes whose valid values are taken as they are, and whose validators see their own fields."""


class Model:
    """A pydantic class, and the validators made from its core schema."""

    def __init__(self, cls: Any) -> None:
        self.cls = cls
        if hasattr(cls, "model_rebuild"):
            _complete(cls)
        core: CoreSchema = cls.__pydantic_core_schema__
        self._definitions: dict[str, CoreSchema] = {entry["ref"]: entry for entry in core.get("definitions", ())}
        path = list(self._path(core))
        kinds = [node["type"] for node in path]
        self._config: Any = None
        self._inner: CoreSchema | None = None
        self._fields: Mapping[str, CoreSchema] = {}
        self._declared: Mapping[str, CoreSchema] = {}
        self._has_after = "function-after" in kinds
        if kinds[-1] == "dataclass-args" and "dataclass" in kinds:
            self._config = path[kinds.index("dataclass")].get("config", {})
            self._fields = {field["name"]: _as_model_field(field) for field in path[-1]["fields"]}
            self._declared = {field["name"]: field for field in path[-1]["fields"]}
        elif kinds[-1] == "model-fields" and "model" in kinds:
            at = kinds.index("model")
            self._config = path[at].get("config", {})
            if not _is_validated_whole(kinds[:at], path[at]):
                self._inner = path[at]["schema"]
                self._fields = path[-1]["fields"]
            self._declared = path[-1]["fields"]

    def validator(self, name: str) -> Callable[[Any], Any] | None:
        """Return what validates a single field; None where that cannot be done apart from the rest.

        That is so for validators that look at other fields, and in a dataclass, which validates whatever it is made
        of, for all functions: they would then run twice.
        """
        field = self._fields.get(name)
        if field is None:
            return None
        functions = list(_functions(field["schema"]))
        if functions and (self._inner is None or any(function.get("type") == "with-info" for function in functions)):
            return None
        run = self._compiled({"type": "model-fields", "fields": {name: _by_name(field)}})

        def validate(value: Any) -> Any:
            return run({name: value})[0][name]

        return validate

    def aliases(self) -> dict[str, list[str]]:
        """Return by field the names that it may have in input; those inside other values are left out."""
        return {name: [path[0] for path in _paths(field) if len(path) == 1] for name, field in self._declared.items()}

    def builder(self, valid: frozenset[str] = frozenset()) -> Callable[[dict[str, Any]], Any]:
        """Return what makes an instance from values by field name.

        Fields in ``valid`` do not go through their validator functions again. What pydantic itself checks is checked
        again, as it leaves valid values alone.
        """
        trusted = {name for name in valid if any(_functions(self._fields[name]["schema"]))}
        if self._inner is None or not (trusted or any("validation_alias" in field for field in self._fields.values())):
            return self._whole()
        fields = {
            name: _trusting(_by_name(field)) if name in trusted else _by_name(field)
            for name, field in self._fields.items()
        }
        run = self._compiled(_with_fields(self._inner, fields))
        construct = self.cls.model_construct
        whole = self.cls.__pydantic_validator__.validate_python if self._has_after else None

        def build(values: dict[str, Any]) -> Any:
            checked, _, given = run(values)
            instance = construct(_fields_set=given, **checked)
            return instance if whole is None else whole(instance)  # an instance: only the model's validators run

        return build

    def spelling(self) -> dict[str, str]:
        """Return what pydantic wants fields to be called by who makes an instance, where that is not their names."""
        return {name: aliases[0] for name, aliases in self.aliases().items() if aliases}

    def _whole(self) -> Callable[[dict[str, Any]], Any]:
        validate: Callable[[dict[str, Any]], Any] = self.cls.model_validate
        spelling = self.spelling()
        if not spelling:
            return validate
        return lambda values: validate({spelling.get(key, key): value for key, value in values.items()})

    def _path(self, node: CoreSchema) -> Iterator[CoreSchema]:
        """Yield the nodes from the root of the core schema down to the list of fields."""
        while True:
            yield node
            if node["type"] == "definition-ref":
                node = self._definitions[node["schema_ref"]]
            elif node["type"] == "model-fields" or not isinstance(node.get("schema"), dict):
                return
            else:
                node = node["schema"]

    def _compiled(self, node: CoreSchema) -> Callable[[Any], Any]:
        from pydantic_core import SchemaValidator  # noqa: PLC0415 - optional; a model was given, so it is there

        if self._definitions:
            node = {"type": "definitions", "schema": node, "definitions": list(self._definitions.values())}
        return SchemaValidator(node, self._config).validate_python


def _complete(cls: Any) -> None:
    """Let pydantic do what it put off until a name that the model mentions exists."""
    try:
        cls.model_rebuild()
    except NameError as error:
        msg = f"The pydantic model {cls.__qualname__!r} is not fully defined: {error}. Define what it mentions first."
        raise GraphDefinitionError(msg) from error


def _as_model_field(field: CoreSchema) -> CoreSchema:
    return {"type": "model-field", "schema": field["schema"]}


def _is_validated_whole(above: list[str], model: CoreSchema) -> bool:
    """Tell whether a model has something that cannot be kept when its fields are validated apart from it."""
    return (
        not {"definitions", "definition-ref", "function-after"}.issuperset(above)
        or model.get("custom_init", False)
        or model.get("root_model", False)
        or model.get("config", {}).get("revalidate_instances", "never") != "never"
    )


def _with_fields(node: CoreSchema, fields: Mapping[str, CoreSchema]) -> CoreSchema:
    if node["type"] == "model-fields":
        return {**node, "fields": fields}
    return {**node, "schema": _with_fields(node["schema"], fields)}


def _paths(field: CoreSchema) -> list[list[str]]:
    alias: Any = field.get("validation_alias", [])
    if isinstance(alias, str):
        return [[alias]]
    return [alias] if alias and not isinstance(alias[0], list) else alias


def _by_name(field: CoreSchema) -> CoreSchema:
    return {key: value for key, value in field.items() if key != "validation_alias"}


def _trusting(field: CoreSchema) -> CoreSchema:
    schema = field["schema"]
    if schema["type"] != "default":
        return {**field, "schema": {"type": "any"}}
    if schema.get("validate_default"):
        return field
    return {**field, "schema": {**schema, "schema": {"type": "any"}}}


def _functions(node: Any) -> Iterator[CoreSchema]:
    """Yield the validator functions that run on a field's value."""
    if isinstance(node, dict):
        if isinstance(node.get("function"), dict):
            yield node["function"]
        if node.get("type") not in _INSTANCES:
            for key, part in node.items():
                if key not in ("function", "metadata", "serialization", "default"):
                    yield from _functions(part)
    elif isinstance(node, (list, tuple)):
        for part in node:
            yield from _functions(part)
