"""The index of a store: which texts of a value stand for it, and how they become vectors."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final

from anyio import to_thread

from persistence import portal
from persistence.contracts.store import IndexConfig, Vector
from persistence.stores.paths import Path, parsed, texts
from persistence.stores.ranking import packed

_KNOWN: Final = frozenset((*IndexConfig.__annotations__, "distance_type"))
_WHOLE: Final = ("$",)


class Index:
    """A checked config."""

    def __init__(self, config: IndexConfig) -> None:
        """Check a config.

        Raises:
            TypeError, ValueError: it lacks something, or says something unknown or impossible.
        """
        given: dict[str, Any] = dict(config)
        _check_known(given)
        dims = given.get("dims")
        if not isinstance(dims, int) or isinstance(dims, bool) or dims < 1:
            message = f"An index needs dims, the length of its vectors, not {dims!r:.80}."
            raise ValueError(message)
        self.dims: Final[int] = dims
        self.embedder = Embedder(given.get("embed"), dims)
        self._fields = _paths(_WHOLE if given.get("fields") is None else given["fields"], "fields")

    def texts(self, value: object, index: Any) -> tuple[str, ...]:
        """Return the texts of a value that are to be found, each once; ``index`` is what the put says about it."""
        if index is False:
            return ()
        paths = self._fields if index is None else _paths(index, "index")
        return tuple(dict.fromkeys(text for path in paths for text in texts(value, path)))


class Embedder:
    """What the user gave to turn texts into vectors, be it sync or async, a function or an object.

    Of an object's methods the sync ones are used, in a worker thread: the async ones of LangChain's classes are often
    the same, sent to a thread of asyncio, and would not run on trio.
    """

    def __init__(self, embed: Any, dims: int) -> None:
        """Find out how to call it. Raises TypeError if it cannot be called at all."""
        embed = loaded(embed) if isinstance(embed, str) else embed
        documents = getattr(embed, "embed_documents", None) or getattr(embed, "aembed_documents", None)
        query = getattr(embed, "embed_query" if hasattr(embed, "embed_documents") else "aembed_query", None)
        if documents is None and not callable(embed):
            message = (
                "An index needs embed: a function from a list of texts to a list of vectors, or an object with "
                f"embed_documents or aembed_documents, not {embed!r:.80}."
            )
            raise TypeError(message)
        self._dims = dims
        self._documents: Callable[[list[str]], Any] = documents or embed
        self._query: Callable[[str], Any] | None = query

    async def vectors(self, documents: Sequence[str], queries: Sequence[str]) -> tuple[list[bytes], list[bytes]]:
        """Return the packed vectors of texts to store, and of texts to search for.

        Raises:
            ValueError: What was returned are not so many vectors of so many numbers.

        Whatever the user's function raises comes through.
        """
        results = [await called(function, argument) for function, argument in self._calls(documents, queries)]
        return self._sorted_out(results, len(documents))

    def vectors_here(self, documents: Sequence[str], queries: Sequence[str]) -> tuple[list[bytes], list[bytes]]:
        """Do the same without an event loop of one's own: sync functions are called in this thread."""
        results = [waited_for(function, argument) for function, argument in self._calls(documents, queries)]
        return self._sorted_out(results, len(documents))

    def _calls(self, documents: Sequence[str], queries: Sequence[str]) -> list[tuple[Callable[[Any], Any], Any]]:
        calls: list[tuple[Callable[[Any], Any], Any]] = [(self._documents, list(documents))] if documents else []
        if self._query is None:
            return calls + [(self._documents, [query]) for query in queries]
        return calls + [(self._query, query) for query in queries]

    def _sorted_out(self, results: list[Any], documents: int) -> tuple[list[bytes], list[bytes]]:
        stored = _counted(results[0], documents) if documents else ()
        searched = results[1:] if documents else results
        if self._query is None:
            searched = [_counted(vectors, 1)[0] for vectors in searched]
        return self._packed(stored), self._packed(searched)

    def _packed(self, vectors: Iterable[Vector]) -> list[bytes]:
        return [packed(vector, self._dims) for vector in vectors]


def _counted(vectors: Sequence[Vector], count: int) -> Sequence[Vector]:
    if len(vectors) != count:
        message = f"The embedding made {len(vectors)} vectors of {count} texts."
        raise ValueError(message)
    return vectors


def loaded(name: str) -> Any:
    """Return the embeddings that LangChain has under a name such as ``openai:text-embedding-3-small``.

    Raises:
        ImportError: The package ``langchain`` is not installed, or that of the provider.
    """
    try:
        from langchain.embeddings import init_embeddings  # noqa: PLC0415 - optional package
    except ImportError as error:
        message = (
            f"What {name!r:.80} stands for, LangChain knows: pip install langchain, and the provider's package. "
            "Or give embed= a function from a list of texts to a list of vectors."
        )
        raise ImportError(message) from error
    return init_embeddings(name)


async def called(function: Callable[[Any], Any], argument: object) -> Any:
    """Call a user's function: an async one here, a sync one in a worker thread, given up on when cancelled."""
    if _is_async(function):
        return await function(argument)
    # In a list, because trio refuses threads that return coroutines.
    (result,) = await to_thread.run_sync(lambda: [function(argument)], abandon_on_cancel=True)
    return await result if inspect.isawaitable(result) else result


def waited_for(function: Callable[[Any], Any], argument: object) -> Any:
    """Call a user's function from where nothing can be awaited."""
    result = function(argument)
    if not inspect.isawaitable(result):
        return result
    pending: Awaitable[Any] = result

    async def wait() -> Any:
        return await pending

    return portal.call(wait, at=None, thread=None, instead="abatch")


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # how it is called, not whether it can be
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _paths(given: Any, what: str) -> tuple[Path, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        message = f"{what} is a list of paths, not {given!r:.80}."
        raise TypeError(message)
    return tuple(parsed(path) for path in given)


def _check_known(given: dict[str, Any]) -> None:
    unknown = given.keys() - _KNOWN
    if unknown:
        message = f"Unknown in an index config: {sorted(unknown)}. There are {', '.join(sorted(_KNOWN))}."
        raise ValueError(message)
    distance = given.get("distance_type", "cosine")
    if distance != "cosine":
        message = f"Vectors are compared by 'cosine' only, not by {distance!r:.80}."
        raise ValueError(message)
