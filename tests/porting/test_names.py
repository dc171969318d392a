"""Every public name of LangGraph is here, where README's table says, and takes what it takes there.

What is missing on purpose is named in README, or stands in ``places`` as the insides of LangGraph.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import re
import warnings
from enum import Enum
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, Final, TypeVar

import langgraph.cache
import pytest
import typing_extensions

from tests.porting.places import ATTRIBUTES, INSIDES, PARAMETERS, PLACES, RENAMED

README: Final = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
NOT_OFFERED: Final = re.findall(r"`([\w.]+)`", README.partition("- Not offered:")[2].partition("\n\n")[0])
TOLD_BESIDE: Final = {"astream_events", "runtime.graph"}
"""What the passage mentions otherwise."""
ROWS: Final = re.findall(r"^\| `from (\S+) import (.+?)` \| `from (\S+) import (.+?)` \|$", README, re.MULTILINE)

_OF_NO_USE: Final = (TypeVar, typing_extensions.TypeVar, logging.Logger)
"""What modules define for themselves."""


def modules() -> list[str]:
    """Return the public modules of all of LangGraph's installed packages, those without an ``__init__`` too."""
    found = set()
    for root in map(Path, importlib.import_module("langgraph").__path__):
        for file in root.rglob("*.py"):
            parts = file.relative_to(root).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            found.add(".".join(("langgraph", *parts)))
    return sorted(name for name in found if "._" not in name)


def place_of(module: str) -> str | None:
    """Return the listed module that a module belongs to; None if there is none."""
    while module and module not in PLACES:
        module = module.rpartition(".")[0]
    return module or None


def left_out(module: str) -> bool:
    """Tell whether README names the module, or one that it lies in, among what is not offered."""
    parts = module.split(".")
    return any(".".join(parts[:length]) in NOT_OFFERED for length in range(1, len(parts) + 1))


@cache
def there(module: str) -> dict[str, Any]:
    """Return a module's public names: those that it declares, or those that its text defines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        imported = importlib.import_module(module)
    names = getattr(imported, "__all__", None)
    if names is None:
        names = [name for name in _defined(Path(str(imported.__file__))) if not name.startswith("_")]
    found = {name: getattr(imported, name, None) for name in names}
    return {name: value for name, value in found.items() if not isinstance(value, _OF_NO_USE)}


def _defined(file: Path) -> list[str]:
    body = ast.parse(file.read_text("utf-8")).body
    names = [one.name for one in body if isinstance(one, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))]
    for one in body:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        names += [target.id for target in targets if isinstance(target, ast.Name) and not target.id.isupper()]
    return names


def here(module: str, name: str) -> Any:
    """Return what bears a name here, or None."""
    for place in PLACES[module]:
        found = getattr(importlib.import_module(place), RENAMED.get(name, name), None)
        if found is not None:
            return found
    return None


OFFERED: Final = [(module, place) for module in modules() if not left_out(module) and (place := place_of(module))]
SHARED: Final = sorted(
    {
        name: (theirs, ours)
        for module, place in OFFERED
        for name, theirs in there(module).items()
        if (ours := here(place, name)) is not None
    }.items()
)
"""Names that both have, each once."""


@pytest.mark.parametrize("module", modules())
def test_every_module_has_a_place_or_is_left_out(module: str) -> None:
    """A new module of LangGraph is to be offered, or to be named in README."""
    assert left_out(module) or place_of(module) or not there(module).keys() - {"__version__"}


@pytest.mark.parametrize(("module", "place"), OFFERED)
def test_every_name_is_here_or_said_to_be_missing(module: str, place: str) -> None:
    """No gap that nobody knows of."""
    inside = {name for known, names in INSIDES.items() if f"{module}.".startswith(f"{known}.") for name in names}
    missing = {name for name in there(module) if here(place, name) is None}
    assert missing <= {*NOT_OFFERED, *inside}


@pytest.mark.parametrize("module", sorted(INSIDES))
def test_insides_are_there_and_not_here(module: str) -> None:
    """What is listed as inside is still so."""
    below = [one for one in modules() if one == module or one.startswith(f"{module}.")]
    place = place_of(module)
    assert place is not None
    for name in INSIDES[module]:
        assert any(name in there(one) for one in below), name
        assert here(place, name) is None, name


@pytest.mark.parametrize("name", sorted({*NOT_OFFERED} - TOLD_BESIDE))
def test_what_is_said_to_be_missing_is_missing_and_is_there_in_langgraph(name: str) -> None:
    """A name that is offered one day is no longer told to be missing."""
    graph = importlib.import_module("langgraph.graph.state").CompiledStateGraph
    if name.startswith("langgraph."):
        assert name in modules()
        return
    assert hasattr(graph, name) or any(name in there(module) for module in modules() if "conformance" not in module)
    assert not hasattr(importlib.import_module("runtime.graph").CompiledStateGraph, name)
    assert not any(here(place, name) for place in PLACES)


@pytest.mark.parametrize("module", sorted(PLACES))
def test_readme_has_a_row_for_each_module(module: str) -> None:
    """Who looks for an import finds it."""
    assert {target for source, _, target, _ in ROWS if source == module} <= set(PLACES[module])
    assert any(source == module for source, *_ in ROWS)


@pytest.mark.parametrize("name", [name for name, (theirs, _) in SHARED if inspect.isclass(theirs)])
def test_classes_have_the_same_attributes(name: str) -> None:
    """Methods and properties that LangGraph's own classes define."""
    theirs, ours = dict(SHARED)[name]
    known = {*ATTRIBUTES.get(name, ()), *NOT_OFFERED}
    missing = {one for one in _attributes(theirs) if not hasattr(ours, one)} - known
    assert not missing
    assert {one for one in ATTRIBUTES.get(name, ()) if hasattr(ours, one) and one in dir(theirs)} <= {"serde"}


def _attributes(theirs: type) -> list[str]:
    """Return the public attributes, without those of LangChain's runnables, and without constants such as SQL."""
    own = {name for base in theirs.__mro__ if not base.__module__.startswith("langchain") for name in vars(base)}
    return sorted(name for name in own if not name.startswith("_") and not name.isupper() and name not in vars(Enum))


def _calls(name: str) -> dict[str, tuple[Any, Any]]:
    """Return a function, or a class with its methods, by their names: those there and here."""
    theirs, ours = dict(SHARED)[name]
    if not inspect.isclass(theirs):
        return {name: (theirs, ours)} if inspect.isfunction(theirs) else {}
    pairs = {method: (getattr(theirs, method, None), getattr(ours, method, None)) for method in _attributes(theirs)}
    called = {f"{name}.{method}": pair for method, pair in pairs.items() if all(map(inspect.isroutine, pair))}
    return {name: (theirs, ours), **called}


@pytest.mark.parametrize("name", [name for name, (theirs, _) in SHARED if callable(theirs)])
def test_a_call_that_is_right_there_is_right_here(name: str) -> None:
    """Each parameter is here, can be given in the same way, at the same place, and means the same if left out."""
    for called, pair in _calls(name).items():
        theirs, ours = map(_parameters, pair)
        problems = {parameter.name for place, parameter in enumerate(theirs) if not _taken(parameter, place, ours)}
        assert problems == PARAMETERS.get(called, set()), called


def test_what_is_listed_as_different_is_there() -> None:
    """A class or function that LangGraph no longer has leaves the lists."""
    assert PARAMETERS.keys() <= {called for name, (theirs, _) in SHARED if callable(theirs) for called in _calls(name)}
    assert ATTRIBUTES.keys() <= dict(SHARED).keys()


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # builtins
        return []


def _taken(wanted: inspect.Parameter, place: int, ours: list[inspect.Parameter]) -> bool:
    several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if wanted.kind in several or wanted.name.startswith("__"):
        return True
    same = [(at, one) for at, one in enumerate(ours) if one.name == wanted.name]
    if not same:
        return False
    at, found = same[0]
    if wanted.kind in by_position and (found.kind not in by_position or at != place):
        return False
    if wanted.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and found.kind is inspect.Parameter.POSITIONAL_ONLY:
        return False
    if wanted.default is inspect.Parameter.empty:
        return True
    return repr(found.default) == repr(wanted.default)


def test_the_finder_finds() -> None:
    """Packages without an ``__init__`` are several directories; all of them are looked through."""
    assert PathFinder.find_spec("langgraph") is not None
    assert langgraph.cache.__path__
    assert {"langgraph.cache.sqlite", "langgraph.checkpoint.postgres.aio", "langgraph.types"} <= set(modules())
    assert len(SHARED) > 120
