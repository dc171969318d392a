"""What may be rebuilt from a foreign value: by the name that is stored, looked up here and never imported.

Those of the standard library and of LangChain's messages are listed; all others the caller brings.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import ipaddress
import pathlib
import re
import uuid
import zoneinfo
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from persistence.migration.records import Uncarried
from persistence.serde.models import is_model
from persistence.serde.registry import SHARED
from persistence.serde.shapes import is_named_tuple

Name: TypeAlias = tuple[str, str]
"""(module, name) as stored."""
Maker: TypeAlias = Callable[..., Any]

SINGLE, POSITIONAL, NAMED, METHOD, MODEL_1, MODEL_2 = range(6)
"""How the arguments of a constructor are stored: the codes of LangGraph's extensions."""

_PATHS: Final = {"Path": pathlib.Path, "PosixPath": pathlib.Path, "WindowsPath": pathlib.PureWindowsPath}
_ADDRESSES: Final = ("IPv4Address", "IPv4Interface", "IPv4Network", "IPv6Address", "IPv6Interface", "IPv6Network")

STANDARD: Final[Mapping[Name, Maker]] = {
    ("datetime", "date"): dt.date,
    ("datetime", "time"): dt.time,
    ("datetime", "timedelta"): dt.timedelta,
    ("datetime", "timezone"): dt.timezone,
    ("uuid", "UUID"): uuid.UUID,
    ("decimal", "Decimal"): decimal.Decimal,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("collections", "deque"): collections.deque,
    ("zoneinfo", "ZoneInfo"): zoneinfo.ZoneInfo,
    ("re", "compile"): re.compile,
    **{("ipaddress", name): getattr(ipaddress, name) for name in _ADDRESSES},
    **{(module, name): made for module in ("pathlib", "pathlib._local") for name, made in _PATHS.items()},
}

_METHODS: Final[Mapping[tuple[str, str, str], Maker]] = {
    ("datetime", "datetime", "fromisoformat"): dt.datetime.fromisoformat
}

_MESSAGES: Final = ("Human", "AI", "System", "Chat", "Tool", "Function")


@cache
def langchain_types() -> Mapping[str, type]:
    """Return LangChain's message classes and its document by name; none if it is not installed."""
    try:
        from langchain_core import messages  # noqa: PLC0415 - optional package
        from langchain_core.documents import Document  # noqa: PLC0415 - optional package
    except ModuleNotFoundError:
        return {}
    names = [*(f"{kind}Message{part}" for kind in _MESSAGES for part in ("", "Chunk")), "RemoveMessage"]
    found = {name: getattr(messages, name) for name in names}
    return {**found, "Document": Document}


@cache
def _secrets() -> Mapping[Name, Maker]:
    try:
        from pydantic import SecretBytes, SecretStr  # noqa: PLC0415 - optional package
    except ModuleNotFoundError:
        return {}
    return {("pydantic.types", "SecretStr"): SecretStr, ("pydantic.types", "SecretBytes"): SecretBytes}


class Constructors:
    """The names that may be rebuilt."""

    def __init__(self, types: Iterable[type] = (), makers: Mapping[Name, Maker] | None = None) -> None:
        """Allow the caller's classes, and functions for names that are no class here."""
        self._makers = {**STANDARD, **_secrets(), **(makers or {})}
        self._types: dict[Name, type] = {(cls.__module__, cls.__name__): cls for cls in types}
        self._by_name: dict[str, list[type]] = {}
        for cls in self._types.values():
            self._by_name.setdefault(cls.__name__, []).append(cls)

    def make(self, code: int, parts: Any) -> Any:
        """Rebuild an instance. Raises Uncarried if the name is not known or the class refuses."""
        if not SINGLE <= code <= MODEL_2:
            msg = f"an extension of code {code}, which is not known here"
            raise Uncarried(msg)
        module, name, given = _taken_apart(parts)
        if code == METHOD:
            return self._called(self._method(module, name, parts), SINGLE, given, f"{module}:{name}")
        maker = self._makers.get((module, name))
        if maker is not None:
            return self._called(maker, NAMED if code in {MODEL_1, MODEL_2} else code, given, f"{module}:{name}")
        cls = self._class(module, name)
        if cls is None:
            msg = f"class {module}:{name} is not registered"
            raise Uncarried(msg)
        return self._called(_maker_of(cls, code), min(code, NAMED), given, f"{module}:{name}")

    def check(self, parts: Any) -> None:
        """Look only whether the name is known. Raises Uncarried if it is not."""
        module, name, _ = _taken_apart(parts)
        if (module, name) not in self._makers and module != "datetime" and self._class(module, name) is None:
            msg = f"class {module}:{name} is not registered"
            raise Uncarried(msg)

    def make_serialized(self, path: list[str], given: Mapping[str, Any]) -> Any:
        """Rebuild what LangChain's own serialization describes: a path that ends in the class's name."""
        cls = langchain_types().get(path[-1])
        if cls is None or not path[0].startswith("langchain"):
            msg = f"class {'.'.join(path)} is not registered"
            raise Uncarried(msg)
        return self._called(_maker_of(cls, MODEL_2), NAMED, given, path[-1])

    def _class(self, module: str, name: str) -> type | None:
        found = self._types.get((module, name)) or SHARED.lookup(f"{module}:{name}")
        if found is None and module.startswith("langchain_core."):
            found = langchain_types().get(name)
        if found is None and module == "__main__" and len(self._by_name.get(name, ())) == 1:
            found = self._by_name[name][0]  # it was stored by a script, and now comes from the module of that script
        return found

    def _method(self, module: str, name: str, parts: list[Any]) -> Maker:
        method = _METHODS.get((module, name, str(parts[3]) if len(parts) > 3 else ""))  # noqa: PLR2004 - their number
        if method is None:
            msg = f"a call of a method of {module}:{name}"
            raise Uncarried(msg)
        return method

    def _called(self, maker: Maker, code: int, given: Any, name: str) -> Any:
        try:
            if code == SINGLE:
                return maker(given)
            return maker(*given) if code == POSITIONAL else maker(**given)
        except Uncarried:
            raise
        except Exception as error:
            msg = f"class {name} refuses what is stored: {type(error).__name__}: {error}"
            raise Uncarried(msg.splitlines()[0]) from error


def _taken_apart(parts: Any) -> tuple[str, str, Any]:
    """Return module, name and arguments. Raises Uncarried if they are not there."""
    if not isinstance(parts, list) or len(parts) < 3 or not all(isinstance(part, str) for part in parts[:2]):  # noqa: PLR2004
        msg = "a constructor without module, name and arguments"
        raise Uncarried(msg)
    return parts[0], parts[1], parts[2]


def _maker_of(cls: type, code: int) -> Maker:
    """Return what rebuilds an instance of a class that is stored in some way. Raises Uncarried if that does not fit."""
    if code == SINGLE and issubclass(cls, enum.Enum):
        return cls
    if code in {MODEL_1, MODEL_2} and is_model(cls):
        return lambda **fields: _model(cls, fields)
    if code == NAMED and dataclasses.is_dataclass(cls):
        return lambda **fields: _dataclass(cls, fields)
    if code == NAMED and is_named_tuple(cls):
        return cls
    msg = f"class {cls.__module__}:{cls.__qualname__} is of another kind than what is stored"
    raise Uncarried(msg)


def _model(cls: Any, fields: dict[str, Any]) -> Any:
    try:
        return cls(**fields)
    except Exception:  # noqa: BLE001 - stored before the model asked for more, or never validated
        return cls.model_construct(**fields)


def _dataclass(cls: Any, stored: dict[str, Any]) -> Any:
    known = {one.name: one for one in dataclasses.fields(cls)}
    made = cls(**{name: value for name, value in stored.items() if name in known and known[name].init})
    for name, value in stored.items():
        if name in known and not known[name].init:
            object.__setattr__(made, name, value)
    return made
