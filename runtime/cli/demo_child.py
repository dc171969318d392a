"""One run of the demo's graph in a process of its own, so that it can be killed.

It tells its parent on standard output, one JSON object a line, what became durable and how it goes on; and it notes
every execution of a node in the ledger, a file that is forced to disk line by line and so outlives the kill.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from typing import Any, Final

import anyio
import msgspec

from persistence.contracts.backend import Request, Rows
from persistence.contracts.saver import Ack
from persistence.sqlite import SqliteSaver
from runtime.cli.demo_graph import GIVEN, Moment, describe_graph
from runtime.cli.triggers import task_name
from runtime.errors import EmptyInputError

VICTIM: Final = "joke"
"""The node that the kill hits."""
SURVIVOR: Final = "poem"
"""The node beside it, which has finished by then."""


class TellingSaver(SqliteSaver):
    """An ordinary saver that tells when what it was sent is durable."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._told, self._untold = anyio.create_memory_object_stream[tuple[Request, Ack]](math.inf)

    def send_nowait(self, request: Request) -> Any:
        """Queue a request, and remember it until it is acknowledged."""
        receipt = super().send_nowait(request)
        self._told.send_nowait((request, receipt))
        return receipt

    async def send(self, request: Request) -> Any:
        """Queue a request, waiting while the channel is full."""
        receipt = await super().send(request)
        self._told.send_nowait((request, receipt))
        return receipt

    async def tell(self) -> None:
        """Tell of every acknowledgement as it comes."""
        async for request, receipt in self._untold:
            await receipt.wait()
            if isinstance(request, Rows):
                say("acknowledged", step=_step(request), tasks=sorted({task_name(row[8]) for row in request.writes}))

    def close_telling(self) -> None:
        """Let ``tell`` end once everything was told."""
        self._told.close()


def _step(rows: Rows) -> int | None:
    if rows.checkpoint is None:
        return None
    step: int = msgspec.json.decode(rows.checkpoint[6])["step"]
    return step


def say(event: str, **facts: Any) -> None:
    """Write a line to the parent."""
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


class Ledger:
    """Notes what ran, durably; and, if it is to hang, holds ``joke`` inside once ``poem`` has finished."""

    def __init__(self, path: str, *, hang: bool) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._hang = hang
        self._survivor_ended = anyio.Event()

    async def witness(self, node: str, moment: Moment) -> None:
        """Note that a node's code begins or ends; returns once the note is on the disk, whoever waits meanwhile."""
        os.write(self._file, f"{os.getpid()} {node} {moment}\n".encode())
        os.fsync(self._file)
        if not self._hang:
            return
        if node == SURVIVOR and moment == "end":
            self._survivor_ended.set()
        if node == VICTIM and moment == "start":
            await self._survivor_ended.wait()
            say("hanging")
            await anyio.sleep_forever()


async def run(args: argparse.Namespace) -> None:
    """Run or resume the thread."""
    ledger = Ledger(args.ledger, hang=args.hang)
    config: Any = {"configurable": {"thread_id": args.thread}}
    async with TellingSaver(args.db) as saver, anyio.create_task_group() as nursery:
        nursery.start_soon(saver.tell)
        graph = describe_graph(ledger.witness).compile(checkpointer=saver)
        if not args.resume:
            await graph.ainvoke(GIVEN, config, durability=args.mode)
        else:
            try:
                await graph.ainvoke(None, config, durability=args.mode)
                say("resumed")
            except EmptyInputError:
                await graph.ainvoke(GIVEN, config, durability=args.mode)
                say("started over")
        saver.close_telling()


def main() -> None:
    """Read the parent's wishes and run."""
    parser = argparse.ArgumentParser()
    for name in ("--db", "--thread", "--mode", "--ledger"):
        parser.add_argument(name, required=True)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--hang", action="store_true")
    anyio.run(run, parser.parse_args())


if __name__ == "__main__":
    main()
