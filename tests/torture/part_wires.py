"""The wire to PostgreSQL is cut, half closed, silent or slow, answers are lost, it crashes: under running clients."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

import anyio

from persistence.writer.limits import Limits
from tests.persistence.postgres.proxy import SOCKET, Wire, wire
from tests.persistence.postgres.server import OWN_URL, StartedServer
from tests.torture.appending.clients import Clients, Work, graph_of
from tests.torture.appending.finding import judged
from tests.torture.appending.kits import OURS
from tests.torture.appending.operations import Log, operations
from tests.torture.appending.places import Place, Places, places
from tests.torture.catalog import Report, UnavailableError, part

MODES: Final = ("sync", "async", "exit")
LOOPS: Final = ("asyncio", "trio")
LIMITS: Final = Limits(attempts=6, first_delay=0.001, longest_delay=0.02)
SETTINGS: Final = {"command_timeout": 0.3, "connect_timeout": 0.5, "pool_size": 3}
END_ALL: Final = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"""
EVERY: Final = 7
"""Nodes that start between one fault and the next."""


@part(
    "wires",
    "Connections to PostgreSQL cut, half closed, silent, slow, answers lost, crashes: nothing is lost, twice or stuck.",
    full=150,
    short=2,
)
def wires(cases: int, seed: int) -> Report:
    """Each case is a history over a wire that meets a fault again and again."""
    violations: list[str] = []
    met = 0
    with places() as made:
        server = made.server
        if not isinstance(server, StartedServer):
            message = f"{OWN_URL} names a server whose wires cannot be cut, and that cannot be crashed"
            raise UnavailableError(message)
        with wire(server.socket_folder / SOCKET, SOCKET) as (between, path):
            for number in range(cases):
                mode, loop = MODES[number % 3], LOOPS[number // 3 % 2]
                with made.watched("postgres", **SETTINGS) as place:
                    faults = Faults(between, server, random.Random(seed + number))
                    there = replace(place, where=place.where.replace(str(server.socket_folder), str(path.parent)))
                    work = Work(seed + number, mode, operations=8, faults=True)
                    said = anyio.run(_history, made, there, place, work, faults, backend=loop)
                    between.sever()  # a server that is never told of an end keeps what such a session has locked
                violations += [f"{mode}, {loop}, case {number}: {each}" for each in said]
                met += faults.met
    return Report(cases, violations, f"{met:,} faults.")


class Faults:
    """Makes one happen every few nodes."""

    def __init__(self, between: Wire, server: StartedServer, dice: random.Random) -> None:
        self.met = 0
        self._passed = 0
        self._wire = between
        self._dice = dice
        self._kinds: Mapping[str, Callable[[], object]] = {
            "cut": between.sever,
            "half closed": between.half_close,
            "an answer lost": lambda: between.lose(1),
            "answers lost": lambda: between.lose(9),
            "silent": between.silence,
            "slow": lambda: between.delay(0.01),
            "hung up on": lambda: between.refuse(True),
            "ended": lambda: server.rows(END_ALL),
            "crashed": server.crash,
        }

    def reached(self, _node: str) -> None:
        """Count a node, and make something happen if it is time."""
        self._passed += 1
        if self._passed % EVERY == 0:
            self.heal()
            self.met += 1
            self._kinds[self._dice.choice(list(self._kinds))]()

    def heal(self) -> None:
        """Let whoever connects from now on have a good wire."""
        self._wire.refuse(False)
        self._wire.delay(0)
        self._wire.lose(0)


async def _history(made: Places, there: Place, place: Place, work: Work, faults: Faults) -> list[str]:
    path = made.file("log")
    log = Log(path)
    async with there.opened(LIMITS) as saver:
        clients = Clients(work, OURS, saver, log)
        clients.reached = faults.reached
        await clients.run()
        clients.reached = lambda _node: None
        faults.heal()
        await clients.finish(tries=5)
    log.close()
    async with place.opened() as saver:
        found = await judged(graph_of(OURS, saver), work.names(), operations([path]), made.epochs(place))
    return [*clients.unexpected, *found]
