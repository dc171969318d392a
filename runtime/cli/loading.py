"""``MODULE:GRAPH`` to a compiled graph that writes to the chosen saver."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from runtime.cli.failing import CommandError, UsageError
from runtime.graph import CompiledStateGraph, StateGraph
from runtime.graph.recovery import with_saver
from runtime.types.strangers import is_of_langgraph


async def load_graph(target: str, saver: Any, name: str | None = None) -> CompiledStateGraph:
    """Import a graph, or call the function that makes it, and compile it with the saver.

    A graph that is compiled already keeps everything it was compiled with, but for the saver, and its name if one is
    given. Without a saver here, it keeps its own.

    Raises:
        UsageError: the target does not have the form ``MODULE:GRAPH``.
        CommandError: it cannot be imported, or is no graph.

    """
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        msg = f"{target!r} does not name a graph: write MODULE:GRAPH, such as app:graph or package.module:build."
        raise UsageError(msg)
    found = _attribute(_module(module_name), module_name, path)
    if not isinstance(found, (StateGraph, CompiledStateGraph)) and callable(found) and not isinstance(found, type):
        found = await _made(found, target)
    if isinstance(found, StateGraph):
        try:
            return found.compile(checkpointer=saver, name=name)
        except Exception as error:
            raise _failed(f"{target} does not compile", error) from error
    if isinstance(found, CompiledStateGraph):
        found = found if saver is None else with_saver(found, saver)
        return found if name is None else _named(found, name)
    what = type(found)
    there = f" of LangGraph's ({what.__module__})" if is_of_langgraph(what) else ""
    msg = (
        f"{target} is a {what.__name__}{there}, not a graph: it must be a StateGraph of runtime.graph, a compiled "
        "graph, or a function that takes no arguments and returns one."
    )
    raise CommandError(msg, kind="NotAGraph")


def _named(graph: CompiledStateGraph, name: str) -> CompiledStateGraph:
    program = copy(graph.program)
    program.plan = replace(program.plan, name=name)
    return type(graph)(graph.builder, program)


def _module(name: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Only if the missing module is the one that was asked for, or a package on the way to it.
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise CommandError(_missing(name), kind="ModuleNotFoundError") from error
        raise _failed(f"Module {name!r} cannot be imported", error) from error
    except Exception as error:
        raise _failed(f"Module {name!r} cannot be imported", error) from error


def _missing(name: str) -> str:
    if name.endswith(".py") or "/" in name:
        module = name.removesuffix(".py").replace("/", ".").strip(".")
        return f"{name!r} is a file, not a module: write {module}:GRAPH, from the directory that holds it."
    return f"There is no module {name!r} in {Path.cwd()} or on sys.path."


def _attribute(module: Any, module_name: str, path: str) -> Any:
    found = module
    for part in path.split("."):
        if not hasattr(found, part):
            graphs = sorted(
                name for name, value in vars(module).items() if isinstance(value, (StateGraph, CompiledStateGraph))
            )
            known = f"It has these graphs: {', '.join(graphs)}." if graphs else "It has no graph at its top level."
            msg = f"Module {module_name!r} has no {path!r}. {known}"
            raise CommandError(msg, kind="AttributeError")
        found = getattr(found, part)
    return found


async def _made(function: Any, target: str) -> Any:
    try:
        made = function()
        return await made if inspect.isawaitable(made) else made
    except Exception as error:
        raise _failed(f"{target} was called to make the graph and failed", error) from error


def _failed(what: str, error: Exception) -> CommandError:
    return CommandError(
        f"{what}: {type(error).__name__}: {error}",
        kind=type(error).__name__,
        hint=raised_at(error),
        at=raised_at(error),
    )


def raised_at(error: BaseException) -> str | None:
    """Return where an error was raised, as file, line and function."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else None
