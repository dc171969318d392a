"""Names that are not known: what is, and what was meant."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from runtime.types.constants import END, START

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONSTANTS: Final = {START: "START", END: "END"}


def known_nodes(name: object, nodes: Iterable[str], *, besides: str | None = END) -> str:
    """Return the sentences that follow on "there is no such node".

    Args:
        name: what was given.
        nodes: what may be given.
        besides: START or END, where that may be given too; None: neither.

    """
    known = list(nodes)
    told = f"Known nodes: {', '.join(known) or 'none'}."
    if not isinstance(name, str):
        return told
    constant = None if besides is None else _CONSTANTS[besides]
    plain = {each.casefold(): each for each in reversed(known)}
    meant = get_close_matches(name.casefold(), plain, n=1)
    if constant is not None and name.strip("_").upper() == constant:
        return f"{told} {constant} is a constant, not its name: from runtime.graph import {constant}."
    return f"{told} Did you mean {plain[meant[0]]!r}?" if meant else told
