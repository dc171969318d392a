"""Two processes recover at once what a killed one left: each thread is continued by one, and by one only."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Final

import anyio

from tests.crash.ledger import Account
from tests.crash.recovering import NAME, NODES, THREADS, die_in, recover, saver_at
from tests.crash.zygote import Zygote
from tests.stories.graphs import chain, thread
from tests.torture.appending.places import SHARED, Kind, Places, places
from tests.torture.appending.processes import StartingLine
from tests.torture.catalog import Report, part
from tests.torture.seeded import LOOPS

MODULES: Final = ("tests.crash.recovering",)


@part(
    "recovery",
    "Two processes recover at once after a kill: every thread ends, and no node runs again whose end was acknowledged.",
    full=20,
    short=2,
)
def recovery(cases: int, seed: int) -> Report:
    """Each case is a kill at a node that the seed names, on one backend after the other."""
    violations: list[str] = []
    told: Counter[str] = Counter()
    with places() as made, Zygote(made.file("errors"), MODULES) as zygote:
        for number, kind in enumerate(itertools.islice(itertools.cycle(SHARED), cases)):
            said, account = _round(made, zygote, kind, random.Random(seed + number))
            violations += [f"{kind}, round {number}: {each}" for each in said]
            told.update(status for _, status in account.all("told"))
    return Report(cases, violations, f"{told['finished']} were continued; {told['taken']} times another was faster.")


def _round(made: Places, zygote: Zygote, kind: Kind, dice: random.Random) -> tuple[list[str], Account]:
    """Kill, recover from two processes, and return what broke the promise."""
    ledger, line = made.file("ledger"), StartingLine(made.file("line"))
    with made.place(kind) as place:
        given = {"where": place.where, "ledger": str(ledger)}
        name, node, loop = dice.choice(THREADS), dice.choice(NODES), dice.choice(LOOPS)
        if not zygote.start(die_in, **given, name=name, node=node, loop=loop).was_killed():
            return [f"it did not come to {node} of {name}"], Account.of(ledger)
        with line.kept(2):
            running = [zygote.start(recover, **given, line=str(line.path), loop=loop) for loop in LOOPS]
        for each in running:
            each.succeed()
        account = Account.of(ledger)
        return [*_judged(account, name), *anyio.run(_left, place.where)], account


def _judged(account: Account, killed: str) -> list[str]:
    """In ``sync``, a node begins when the end of the one before it was acknowledged: that one may not run again."""
    wrong = []
    for name in THREADS:
        ran = [node for where, node in account.all("ran") if where == name]
        again = len(ran) - len(set(ran))
        if sorted(ran, key=NODES.index) != ran or set(ran) != set(NODES) or again > 1:
            wrong.append(f"thread {name} ran {ran}")
        said = sorted(status for where, status in account.all("told") if where == name)
        # Another thread may have ended before the kill: then nobody has to say anything.
        if said not in (["finished"], ["finished", "taken"]) and (said or name == killed):
            wrong.append(f"of thread {name} was said {said}")
    return wrong


async def _left(where: str) -> list[str]:
    """Return the threads that are not at their end, or still held."""
    async with saver_at(where) as saver:
        graph = chain(*NODES).compile(saver, name=NAME)
        states = {name: await graph.aget_state(thread(name)) for name in THREADS}
        held = [f"thread {row.thread_id} is still held" for row in await saver.aheld_leases()]
    ended = ({"log": list(NODES)}, ())
    return held + [
        f"thread {name} is at {state.next} with {state.values}"
        for name, state in states.items()
        if (state.values, state.next) != ended
    ]
