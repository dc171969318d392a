"""How exceptions are stored: class, arguments, attributes.

Traceback, cause and context are not part of the stored value, as they are not part of a pickled exception. The class
must be builtin or registered, and its ``__init__`` is not run again: many an exception makes its message there.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any, Final

from persistence.serde import tags
from persistence.serde.parts import attributes_of, exactly
from persistence.serde.shapes import slots_of, solid_base, trimmed
from persistence.serde.writing import Refusal, Writer, pack

if TYPE_CHECKING:
    from msgspec.msgpack import Ext

BUILTIN: Final[dict[str, type[BaseException]]] = {
    f"builtins:{cls.__name__}": cls
    for cls in vars(builtins).values()
    if isinstance(cls, type) and issubclass(cls, BaseException)
}
"""Exceptions that need no registration, by stored name."""

_ATTRIBUTE: Final = "An attribute of a stored exception"
_BUILTIN_NAMES: Final = {cls: name for name, cls in BUILTIN.items()}

_HIDDEN: Final[dict[type[BaseException], tuple[str, ...]]] = {
    ImportError: ("name", "path"),
    NameError: ("name",),
    AttributeError: ("name",),
}
"""Attributes that builtin exceptions keep outside their dict and their arguments."""


def builtin_name(cls: type) -> str | None:
    """Return the stored name of a builtin exception; None for any other class."""
    return _BUILTIN_NAMES.get(cls)


class ExceptionShape:
    """Class, arguments and attributes of an exception."""

    code = tags.EXCEPTION

    def __init__(self, name: str, cls: type[BaseException]) -> None:
        """Find the builtin that lays out the class's instances."""
        self._name = name
        self._cls = cls
        self._base: Any = solid_base(cls)
        self._hidden = tuple(name for base, names in _HIDDEN.items() if issubclass(cls, base) for name in names)
        self._slots = slots_of(cls)

    def write(self, writer: Writer, value: BaseException, depth: int) -> Ext:
        """Return the extension for an instance."""
        args = self._base.__reduce__(value)[1]  # more than value.args for OSError
        attributes = dict(value.__dict__)
        for hidden in self._hidden:
            if (item := getattr(value, hidden)) is not None:
                attributes[hidden] = item
        self._check(args)
        return pack(
            self.code, trimmed([self._name, writer.items(args, depth + 1)], writer.attributes(attributes, depth))
        )

    def read(self, parts: list[Any]) -> object:
        """Return the instance."""
        args, *attributes = parts
        value = self._made(exactly(list, args, "The arguments of a stored exception"))
        for name, item in (attributes_of(attributes[0], _ATTRIBUTE) if attributes else {}).items():
            if name in self._hidden:
                BaseException.__setattr__(value, name, item)
            else:
                value.__dict__[name] = item
        return value

    def _made(self, args: list[object] | tuple[object, ...]) -> BaseException:
        value: BaseException = self._base.__new__(self._cls, *args)
        self._base.__init__(value, *args)
        return value

    def _check(self, args: tuple[object, ...]) -> None:
        """Refuse now what could not be made again later."""
        try:
            again = self._made(args)
        except Exception as error:  # noqa: BLE001 - whatever it is, it would happen on every load
            msg = f"it is a {self._cls.__qualname__} that cannot be made again from its args {args!r}: {error}"
            raise Refusal(msg) from None
        if type(again) is not self._cls or self._slots:
            msg = f"it is a {self._cls.__qualname__} that its args alone do not make again"
            raise Refusal(msg)
