"""The blocking API of a graph: thin doors to the async methods, through one portal."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from functools import partial, wraps
from inspect import getdoc, signature
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from runtime.context.scope import SCOPE
from runtime.graph.blocking_stream import BlockingStream, waited

if TYPE_CHECKING:
    from runtime.graph.blocking_stream import Home
    from runtime.graph.stream import GraphStream
    from runtime.run.program import Program

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")


class BlockingDoor:
    """What ``invoke``, ``get_state``, ``stream`` and so on are made of, by ``waiting``, ``iterating``, ``streaming``.

    They run where the saver is open, or else the cache, or else on the process's portal; so they work in plain scripts,
    in worker threads and in a notebook whose loop is running. Where waiting would deadlock they raise BlockingCallError
    at once, naming the async method.
    """

    program: Program

    def _wait(self, method: str, *args: Any, **options: Any) -> Any:
        bound: Callable[..., Any] = getattr(self, method)

        async def run() -> Any:
            return await bound(*args, **options)

        return self._through(run, method)

    def _through(self, run: Callable[[], Any], method: str) -> Any:
        return waited(run, self._home(), method)

    def _home(self) -> Home:
        # A node's call takes its place in the run around it, so it runs where that run does.
        around = SCOPE.get(None)
        home: Any = self._keeper() if around is None else around.run
        return getattr(home, "home_token", None), getattr(home, "home_thread", None)

    def _keeper(self) -> Any:
        """Return the saver; where that is open nowhere, the cache."""
        saver, caching = self.program.saver, self.program.caching
        return saver if caching is None or getattr(saver, "home_token", None) is not None else caching.cache

    def _iterate(self, method: str, *args: Any, **options: Any) -> Iterator[Any]:
        make: Callable[..., Any] = getattr(self, method)
        made: list[Any] = []
        done = object()

        async def following() -> Any:
            if not made:
                made.append(make(*args, **options))
            return await anext(made[0], done)

        async def close() -> None:
            if made:
                await made[0].aclose()

        try:
            while (item := self._through(following, method)) is not done:
                yield item
        finally:
            # Where it cannot be waited for, because the event loop has ended and the run with it, or because this is
            # its thread, collecting garbage: the run ends all the same, as its stream is dropped.
            with suppress(RuntimeError):
                self._through(close, method)


S = TypeVar("S", bound=BlockingDoor)


def waiting(method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[S, P], R]:
    """Return the blocking form of an async method: same arguments, same documentation."""
    name = method.__name__

    @wraps(method)
    def blocking(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        result: R = self._wait(name, *args, **kwargs)
        return result

    first_line, _, rest = (getdoc(method) or "").partition("\n")
    return _door(blocking, method, first_line, rest, signature(method).return_annotation)


def iterating(
    first_line: str,
) -> Callable[[Callable[Concatenate[S, P], AsyncIterator[R]]], Callable[Concatenate[S, P], Iterator[R]]]:
    """Return what makes the blocking form of a method that returns an async iterator; it begins with the first item."""

    def make(method: Callable[Concatenate[S, P], AsyncIterator[R]]) -> Callable[Concatenate[S, P], Iterator[R]]:
        name = method.__name__

        @wraps(method)
        def blocking(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
            return self._iterate(name, *args, **kwargs)

        return _door(blocking, method, first_line, _sections(method), f"Iterator[{_item(method)}]")

    return make


def streaming(
    first_line: str,
) -> Callable[[Callable[Concatenate[S, P], GraphStream]], Callable[Concatenate[S, P], BlockingStream]]:
    """Return what makes the blocking form of a method that returns a stream."""

    def make(method: Callable[Concatenate[S, P], GraphStream]) -> Callable[Concatenate[S, P], BlockingStream]:
        name = method.__name__

        @wraps(method)
        def blocking(self: S, /, *args: P.args, **kwargs: P.kwargs) -> BlockingStream:
            return BlockingStream(partial(getattr(self, name), *args, **kwargs), self._home, name)

        return _door(blocking, method, first_line, _sections(method), BlockingStream.__name__)

    return make


def _sections(method: Callable[..., Any]) -> str:
    """Return what an async method says of arguments and errors; not what it says of leaving its iterator."""
    found = re.search(r"^(Args|Raises):.*", getdoc(method) or "", re.MULTILINE | re.DOTALL)
    return f"\n{found[0]}" if found else ""


def _item(method: Callable[..., Any]) -> str:
    """Return what an async iterator yields, as its annotation says."""
    return str(signature(method).return_annotation).partition("[")[2].removesuffix("]") or "Any"


def _door(
    blocking: Callable[Q, T], method: Callable[..., Any], first_line: str, rest: str, returned: Any
) -> Callable[Q, T]:
    """Give a blocking method a name of its own, and documentation in the words of the async one."""
    door: Any = blocking
    door.__name__ = method.__name__.removeprefix("a")
    door.__qualname__ = method.__qualname__.replace(method.__name__, door.__name__)
    door.__signature__ = signature(method).replace(return_annotation=returned)
    door.__doc__ = f"{first_line}\n\nBlocks; see ``{method.__name__}``.\n{rest}".rstrip()
    return blocking
