"""The picture in ARCHITECTURE.md, held to: who imports whom, and what is absent."""

from __future__ import annotations

import ast
import importlib
import io
import logging
import re
import tokenize
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

import pytest
from importlinter.cli import EXIT_STATUS_SUCCESS, lint_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT: Final = Path(__file__).parents[1]
PACKAGES: Final = ("runtime", "persistence")
OURS: Final = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
EVERYTHING: Final = sorted([*OURS, *(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")])

EVENT_LOOPS: Final = {"asyncio", "trio", "threading"}
NAMES_AN_EVENT_LOOP: Final = {
    "persistence/portal.py": "starts the thread that blocking calls go through",
    "persistence/memory/cache.py": "any thread may use it, so a lock guards its entries",
    "persistence/memory/store.py": "likewise, for its items",
    "persistence/memory/saver.py": "any thread may use it, so a lock guards its tables",
    "persistence/postgres/connections.py": "works beside its driver, on the driver's own loop",
    "persistence/sqlite/connection.py": "its driver's thread is waited for, on the driver's own loop",
    "persistence/writer/bridge.py": "asyncio drivers under trio: one asyncio loop in one thread",
    "persistence/writer/crossing.py": "the way from any loop to that of an asyncio driver",
    "persistence/writer/home.py": "tells in which thread a saver is open",
    "runtime/actors/cancelling.py": "only asyncio lets a node raise its cancellation error by itself",
    "runtime/run/claiming.py": "runs of several event loops claim threads from one table",
    "runtime/run/hosting.py": "a detached stream's run is a task of the event loop itself",
}

PURE_ROOMS: Final = ("runtime/channels", "runtime/drawing", "runtime/engine", "runtime/schema", "runtime/types")

OPTIONAL: Final = {
    "cryptography",
    "graphlay",
    "langchain",
    "langchain_core",
    "numpy",
    "pydantic",
    "pydantic_core",
    "resvg_py",
    "sqlite_vec",
}

RUNTIME_MAY_SEE: Final = (
    "persistence.contracts",
    "persistence.errors",
    "persistence.outlasting",
    "persistence.portal",
    "persistence.serde.registry",
)

LONGEST_FILE: Final = 500
A_LINE: Final = 100
VAGUE_NAMES: Final = {"base", "common", "helpers", "misc", "shared", "util", "utils"}
FORBIDDEN_IN_PERSISTENCE: Final = {"cloudpickle", "dill", "marshal", "pickle", "pickletools", "shelve"}
FORBIDDEN_CALLS: Final = {"__import__", "eval", "exec", "import_module", "locate", "resolve_name"}

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@cache
def tree(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(path.read_text("utf-8"), str(path))


def place(path: Path) -> str:
    """Return a file's path as it is written in this file."""
    return path.relative_to(ROOT).as_posix()


def imported(node: ast.AST) -> list[str]:
    """Return the modules that a statement imports, by full name."""
    if isinstance(node, ast.Import):
        return [name.name for name in node.names]
    if isinstance(node, ast.ImportFrom):
        assert node.level == 0, "relative imports hide who imports whom"
        return [node.module or ""]
    return []


def imports(path: Path) -> Iterator[str]:
    """Yield every module that a file imports, anywhere in it."""
    for node in ast.walk(tree(path)):
        yield from imported(node)


def in_functions(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports inside of functions."""
    for function in ast.walk(tree(path)):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                yield from imported(node)


def module_name(path: Path) -> str:
    """Return the name a file is imported under."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def overrides(node: Definition) -> bool:
    """Tell whether a method takes the place of a base class's, or is another face of a documented one."""
    names = {getattr(mark, "id", getattr(mark, "attr", "")) for mark in node.decorator_list}
    return bool(names & {"overload", "override", "setter"})


def public_definitions(path: Path) -> Iterator[Definition]:
    """Yield a file's public classes and functions, and the public methods of the former.

    Methods marked as overriding mean what the overridden ones say.
    """

    def within(body: Iterable[ast.stmt]) -> Iterator[Definition]:
        for node in body:
            if isinstance(node, Definition) and not node.name.startswith("_") and not overrides(node):
                yield node
                if isinstance(node, ast.ClassDef):
                    yield from within(node.body)

    return within(tree(path).body)


def offenders(found: Callable[[Path], Iterable[object]], paths: Iterable[Path] = OURS) -> dict[str, list[object]]:
    """Return what a rule finds, by file; files without a finding are left out."""
    return {place(path): offences for path in paths if (offences := list(found(path)))}


def within(*rooms: str) -> list[Path]:
    """Return our files under some folders."""
    return [path for path in OURS if place(path).startswith(rooms)]


def test_there_is_something_to_look_at() -> None:
    """A wrong root would make every other test here pass."""
    assert {"runtime/graph/compiled.py", "persistence/writer/actor.py"} <= set(map(place, OURS))
    assert within(*PURE_ROOMS)


def test_rooms_import_only_what_lies_below_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contracts are in pyproject.toml."""
    monkeypatch.chdir(ROOT)
    report = io.StringIO()
    with redirect_stdout(report):
        status = lint_imports(no_cache=True)
    logging.getLogger("actorgraph").disabled = False  # the linter's own set-up of logging turns others off
    assert status == EXIT_STATUS_SUCCESS, report.getvalue()


def test_the_runtime_sees_of_persistence_what_every_saver_has() -> None:
    """The command line alone may pick a saver."""

    def rule(path: Path) -> Iterator[str]:
        for name in imports(path):
            # `from persistence import portal` imports the package by its own name.
            full = "persistence.portal" if name == "persistence" else name
            if full.startswith("persistence.") and not full.startswith(RUNTIME_MAY_SEE):
                yield name

    assert offenders(rule, [path for path in within("runtime/") if path not in within("runtime/cli/")]) == {}


def test_event_loops_are_named_in_few_files() -> None:
    """Everything else is written once, on anyio."""
    named = {place(path) for path in OURS if {name.split(".")[0] for name in imports(path)} & EVENT_LOOPS}
    assert named - set(NAMES_AN_EVENT_LOOP) == set()


def test_the_core_awaits_nothing() -> None:
    """Deciding is synchronous; only the shell awaits."""
    asynchronous = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)

    def rule(path: Path) -> Iterator[int]:
        return (node.lineno for node in ast.walk(tree(path)) if isinstance(node, asynchronous))

    assert offenders(rule, within(*PURE_ROOMS)) == {}


def test_imports_stand_at_the_top() -> None:
    """Only packages that may be missing are imported where they are used."""

    def rule(path: Path) -> Iterator[str]:
        return (name for name in in_functions(path) if name.split(".")[0] not in OPTIONAL)

    assert offenders(rule) == {}


def test_files_stay_short() -> None:
    """What needs more is two things."""

    def rule(path: Path) -> Iterator[int]:
        lines = len(path.read_text("utf-8").splitlines())
        return (lines for _ in range(lines > LONGEST_FILE))

    assert offenders(rule, EVERYTHING) == {}


def test_files_are_named_for_what_they_hold() -> None:
    """A vague name collects what belongs elsewhere."""
    vague = {place(path) for path in EVERYTHING if VAGUE_NAMES & {*path.relative_to(ROOT).parts, path.stem}}
    assert vague == {"runtime/channels/base.py"}


def test_what_a_module_offers_exists() -> None:
    """``from module import *`` must not fail, nor offer a name twice."""

    def rule(path: Path) -> Iterator[str]:
        module = importlib.import_module(module_name(path))
        offered = getattr(module, "__all__", [])
        yield from (name for name in offered if not hasattr(module, name))
        yield from (name for name in set(offered) if offered.count(name) > 1)

    assert offenders(rule) == {}


def test_everything_public_says_what_it_is_for() -> None:
    """A docstring's first line is a sentence."""

    def rule(path: Path) -> Iterator[str]:
        for node in (tree(path), *public_definitions(path)):
            if not (ast.get_docstring(node) or "").partition("\n")[0].endswith((".", "?", ":")):
                yield "the module" if isinstance(node, ast.Module) else node.name

    assert offenders(rule) == {}


def test_the_public_face_says_what_it_raises() -> None:
    """Whoever reads ``help()`` need not try it out."""

    def rule(path: Path) -> Iterator[str]:
        for node in public_definitions(path):
            raises = any(isinstance(each, ast.Raise) and each.exc is not None for each in ast.walk(node))
            if (
                raises
                and not isinstance(node, ast.ClassDef)
                and not re.search(r"\bRaises?\b", ast.get_docstring(node) or "")
            ):
                yield node.name

    public = ("builder.py", "compiled.py", "functional.py", "message.py", "stream.py")
    assert offenders(rule, within(*(f"runtime/graph/{name}" for name in public))) == {}


def test_stored_bytes_never_become_code() -> None:
    """Nothing is imported, built or run because a stored row names it."""

    def rule(path: Path) -> Iterator[str]:
        yield from {name.split(".")[0] for name in imports(path)} & FORBIDDEN_IN_PERSISTENCE
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call):
                if isinstance(node.func, ast.Name) and node.func.id in {"compile", *FORBIDDEN_CALLS}:
                    yield node.func.id
                # `re.compile` is another thing.
                if isinstance(node.func, ast.Attribute) and node.func.attr in FORBIDDEN_CALLS:
                    yield node.func.attr

    assert offenders(rule, within("persistence/")) == {}


def test_nothing_is_left_for_later() -> None:
    """What is not done is said in README.md, not in the code."""
    unfinished = re.compile(r"\b(TODO|FIXME|XXX|for now|placeholder|not implemented yet)\b", re.IGNORECASE)

    def rule(path: Path) -> Iterator[str]:
        with tokenize.open(path) as file:
            for token in tokenize.generate_tokens(file.readline):
                if token.type in (tokenize.COMMENT, tokenize.STRING) and unfinished.search(token.string):
                    yield token.string
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Raise) and node.exc is not None and "NotImplementedError" in ast.dump(node.exc):
                yield "NotImplementedError"

    assert offenders(rule) == {}


def test_statements_live_in_sql_files() -> None:
    """They have a name and a sentence there; transactions, pragmas and what fits a line may stand in the code."""
    statement = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|WITH)\s")

    def rule(path: Path) -> Iterator[str]:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and statement.match(node.value):
                yield from [node.value] * (len(node.value) > A_LINE)

    assert offenders(rule, within("persistence/")) == {}
