"""What stores of third parties are made of, beside the records in ``runtime.store``: LangGraph's functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from persistence.contracts.store import ListNamespacesOp, Op, SearchOp, Vector
from persistence.stores.embedding import called, loaded, waited_for
from persistence.stores.namespaces import checked, checked_conditions
from persistence.stores.paths import parsed, texts, tokens

__all__ = ["EmbeddingFunction", "ensure_embeddings", "get_text_at_path", "tokenize_path", "validate_op_namespace"]


class EmbeddingFunction:
    """A function from texts to vectors, sync or async, as an object like LangChain's embeddings."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def embed_documents(self, texts: list[str]) -> Sequence[Vector]:
        """Return a vector for each text; blocks."""
        found: Sequence[Vector] = waited_for(self.function, texts)
        return found

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a text to search for; blocks."""
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> Sequence[Vector]:
        """Return a vector for each text; a sync function runs in a worker thread."""
        found: Sequence[Vector] = await called(self.function, texts)
        return found

    async def aembed_query(self, text: str) -> Vector:
        """Return the vector of a text to search for."""
        return (await self.aembed_documents([text]))[0]


def ensure_embeddings(embed: Any) -> Any:
    """Return an object with LangChain's methods for what a store's index may be given as ``embed``.

    That is such an object, a function from texts to vectors, sync or async, or a name that LangChain knows.

    Raises:
        ValueError: It is None.
        TypeError: It is none of these.
        ImportError: It is a name, and LangChain, or the provider's package, is not installed.
    """
    if embed is None:
        msg = "embed must be given: a function from a list of texts to a list of vectors, or an embeddings object."
        raise ValueError(msg)
    if isinstance(embed, str):
        return loaded(embed)
    if hasattr(embed, "embed_documents") or hasattr(embed, "aembed_documents"):
        return embed
    if not callable(embed):
        msg = f"embed must be a function or an embeddings object, not {embed!r:.80}."
        raise TypeError(msg)
    return EmbeddingFunction(embed)


def tokenize_path(path: str) -> list[str]:
    """Return the parts of a path to a text: ``a.b[*]`` has three. Raises ValueError if it is not well formed."""
    return tokens(path)


def get_text_at_path(obj: Any, path: str | list[str]) -> list[str]:
    """Return the texts that a path, or its parts, lead to in a value; the whole value as JSON for none.

    Raises:
        ValueError: The path is not well formed.
    """
    parts = tokens(path) if isinstance(path, str) else path
    if parts in ([], ["$"]):
        return [json.dumps(obj, ensure_ascii=False, sort_keys=True)]
    return list(texts(obj, tuple(step for part in parts for step in parsed(part))))


def validate_op_namespace(op: Op) -> None:
    """Check the labels of an operation's namespace. Raises InvalidNamespaceError."""
    if isinstance(op, ListNamespacesOp):
        checked_conditions(op.match_conditions)
    else:
        checked(op.namespace_prefix if isinstance(op, SearchOp) else op.namespace)
