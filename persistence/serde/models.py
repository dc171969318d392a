"""How pydantic's models and secrets are stored.

A model's whole state is kept: fields, extra and private attributes, and which fields were set. It is put back as it
was, without validation. pydantic is never imported here unless a value needs it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from persistence.serde import tags
from persistence.serde.parts import attributes_of, exactly
from persistence.serde.shapes import divided, lacking, trimmed
from persistence.serde.writing import Write, Writer, pack

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec.msgpack import Ext
    from pydantic import BaseModel
    from typing_extensions import TypeIs

    from persistence.serde.reading import Reader


_OTHERS: Final = "An attribute of a stored model"


def is_model(cls: type) -> TypeIs[type[BaseModel]]:
    """Whether a class is a pydantic 2 model; if so, pydantic has been imported."""
    main = sys.modules.get("pydantic.main")
    return main is not None and issubclass(cls, main.BaseModel)


class ModelShape:
    """The four attributes that make up the state of a model."""

    code = tags.MODEL

    def __init__(self, name: str, cls: type[BaseModel]) -> None:
        """Look at the class's fields."""
        self._name = name
        self._cls = cls
        self._fields = cls.model_fields

    def write(self, writer: Writer, value: BaseModel, depth: int) -> Ext:
        """Return the extension for an instance."""
        fields, others, absent = divided(value.__dict__, self._fields)
        was_set = value.__pydantic_fields_set__
        extra, private = value.__pydantic_extra__, value.__pydantic_private__
        parts = trimmed(
            [self._name, writer.attributes(fields, depth), True if was_set == fields.keys() else sorted(was_set)],
            None if extra is None else [writer.attributes(extra, depth)],
            None if private is None else [writer.attributes(private, depth)],
            writer.attributes(others, depth),
            absent,
        )
        return pack(self.code, parts)

    def read(self, parts: list[Any]) -> object:
        """Return the instance."""
        fields, was_set, *rest = parts
        extra, private, others, absent = (*rest, None, None, None, None)[:4]
        attributes_of(fields, "A field of a stored model")
        was_set = set(fields) if was_set is True else set(exactly(list, was_set, "The list of set fields of a model"))
        if absent is not None:
            exactly(list, absent, "The list of unset fields of a stored model")
        others = attributes_of(others, _OTHERS) if others else {}
        if fields.keys() != self._fields.keys():
            fields = self._evolved(fields, absent or ())
            was_set &= fields.keys()
        cls: type[BaseModel] = self._cls
        value = object.__new__(cls)
        object.__setattr__(value, "__dict__", {**fields, **others} if others else fields)
        object.__setattr__(value, "__pydantic_fields_set__", was_set)
        if not cls.__pydantic_root_model__:  # which has neither, and would keep them as fields
            object.__setattr__(value, "__pydantic_extra__", _held(extra))
            object.__setattr__(value, "__pydantic_private__", self._private(_held(private)))
        return value

    def _evolved(self, stored: Mapping[str, object], absent: list[str] | tuple[()]) -> dict[str, object]:
        state = {name: item for name, item in stored.items() if name in self._fields}
        for name, field in self._fields.items():
            if name in state or name in absent:
                continue
            if field.is_required():
                raise lacking(self._cls, name)
            if getattr(field, "default_factory_takes_validated_data", False):  # since pydantic 2.10
                state[name] = field.get_default(call_default_factory=True, validated_data=state)
            else:
                state[name] = field.get_default(call_default_factory=True)
        return state

    def _private(self, stored: dict[str, object] | None) -> dict[str, object] | None:
        """Give a model stored before its class had private attributes their defaults."""
        declared = self._cls.__private_attributes__
        if stored is not None or not declared:
            return stored
        from pydantic_core import PydanticUndefined  # noqa: PLC0415 - loaded with the class

        defaults = ((name, private.get_default()) for name, private in declared.items())
        return {name: default for name, default in defaults if default is not PydanticUndefined}


def _held(part: Any) -> dict[str, object] | None:
    """Return attributes that a model may have or not; a list around them tells none from empty."""
    if not part:
        return None
    (attributes,) = exactly(list, part, _OTHERS)
    return attributes_of(attributes, _OTHERS)


def secret_writer(cls: type) -> Write | None:
    """Return how a secret of pydantic is written; None for any other class."""
    types = sys.modules.get("pydantic.types")
    if types is not None and cls in {types.SecretStr, types.SecretBytes}:
        return _write_secret
    return None


def _write_secret(writer: Writer, value: Any, depth: int) -> Ext:
    return pack(tags.SECRET, writer.convert(value.get_secret_value(), depth))


def read_secret(reader: Reader, data: memoryview) -> object:
    """Return the secret, which is text or bytes as what was stored."""
    from pydantic import SecretBytes, SecretStr  # noqa: PLC0415 - optional package

    secret = reader.value(data)
    return SecretBytes(secret) if isinstance(secret, bytes) else SecretStr(_text(secret))


def _text(secret: object) -> str:
    if not isinstance(secret, str):
        msg = f"A stored secret is a {type(secret).__name__}."
        raise TypeError(msg)
    return secret
