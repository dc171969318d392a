"""Runs are killed at every place of their write path, in every mode: nothing that was promised is lost."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from persistence.sqlite import SqliteSaver
from tests.crash.cases import Case
from tests.crash.examining import Quiet, check_acknowledged, check_chain
from tests.crash.killing import Killing
from tests.crash.launching import Launcher
from tests.crash.ledger import Account
from tests.crash.programs import CHAIN, CONFIG, JOKES, NESTED, QUESTION
from tests.crash.stored import Rows

every_mode = pytest.mark.parametrize("durability", ["sync", "async", "exit"])
every_turn = pytest.mark.parametrize("turn", [0, pytest.param(1, marks=pytest.mark.sweep)])
"""In one turn the event loops share the places between them; with the second each meets all."""


@every_mode
@every_turn
async def test_what_was_durable_is_there_and_does_not_run_again(
    launcher: Launcher, folder: Path, durability: str, turn: int, anyio_backend_name: str
) -> None:
    """Two siblings: one of them is on disk while the other runs, except in exit mode."""
    findings = await Killing(launcher, folder, JOKES, durability, anyio_backend_name).sweep(turn)
    nothing, everything = frozenset[str](), frozenset(JOKES.nodes)
    states = {finding.durable for finding in findings}
    assert {nothing, everything} <= states
    if durability == "exit":
        assert states == {nothing, everything}
    else:
        assert {"change_topic", "poem"} in states


@every_mode
@every_turn
async def test_a_chain_is_cut_anywhere_and_never_has_a_hole(
    launcher: Launcher, folder: Path, durability: str, turn: int, anyio_backend_name: str
) -> None:
    findings = await Killing(launcher, folder, CHAIN, durability, anyio_backend_name).sweep(turn)
    lengths = {len(finding.durable) for finding in findings}
    if durability == "exit":
        assert lengths == {0, 4}
    elif durability == "sync":
        assert lengths == {0, 1, 2, 3, 4}
    else:
        assert lengths & {1, 2, 3}


@every_mode
@every_turn
async def test_an_answer_is_kept_or_asked_for_again(
    launcher: Launcher, folder: Path, durability: str, turn: int, anyio_backend_name: str
) -> None:
    findings = await Killing(launcher, folder, QUESTION, durability, anyio_backend_name).sweep(turn)
    assert {finding.asked_again for finding in findings} == {True, False}


@every_mode
@every_turn
async def test_a_subgraph_goes_on_from_its_own_steps(
    launcher: Launcher, folder: Path, durability: str, turn: int, anyio_backend_name: str
) -> None:
    findings = await Killing(launcher, folder, NESTED, durability, anyio_backend_name).sweep(turn)
    inside = [finding.durable & set(NESTED.inner) for finding in findings if "child" not in finding.durable]
    if durability == "exit":
        assert not any(inside)
    else:
        assert {"inner_one"} in inside
        assert {"before", "aside", "inner_one"} in [finding.durable for finding in findings]


@pytest.mark.parametrize("durability", ["sync", "async"])
@pytest.mark.parametrize("seed", range(4))
def test_a_run_that_is_killed_again_and_again_gets_through(
    launcher: Launcher, folder: Path, durability: Any, seed: int
) -> None:
    """Each process dies at a random place, and the next goes on; nothing that was durable ever runs again."""
    dice, program, path = random.Random(seed), (JOKES, CHAIN)[seed % 2], folder / "threads.sqlite"
    backends: tuple[Any, ...] = ("asyncio", "trio")
    deaths = 0
    while True:
        ledger = folder / f"{deaths}.ledger"
        before = Rows.of(path).durable(program) if path.exists() else set()
        backend = dice.choice(backends)
        case = Case(
            str(path), str(ledger), program.name, durability, backend, fatal=dice.randint(1, 60), part="going on"
        )
        killed = launcher.run(case)
        account, rows = Account.of(ledger), Rows.of(path)
        assert not before & set(account.names("start"))
        check_acknowledged(account, rows, program)
        check_chain(rows)
        if not killed:
            break
        deaths += 1
    assert deaths
    assert rows.durable(program) == set(program.nodes)
    assert sorted(step for _, step in rows.root.checkpoints.values()) == list(range(-1, program.last_step + 1))


def test_a_database_whose_making_was_cut_short_is_made_again(launcher: Launcher, folder: Path) -> None:
    """The places of opening an absent file: switching it to write-ahead logging, creating the tables."""

    async def use(path: Path) -> Any:
        async with SqliteSaver(path, synchronous="NORMAL") as saver:
            return await JOKES.build(Quiet()).compile(checkpointer=saver).ainvoke(JOKES.given, CONFIG)

    for fatal in count(1):
        path = folder / f"{fatal}.sqlite"
        case = Case(str(path), str(folder / f"{fatal}.ledger"), "jokes", "sync", "asyncio", fatal, part="opening")
        killed = launcher.run(case)
        assert anyio.run(use, path) == JOKES.result
        Rows.of(path)
        if not killed:
            break
    assert fatal > 10
