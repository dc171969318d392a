"""Tasks that the stories of the functional API call."""

from __future__ import annotations

import anyio

from runtime.func import task


@task
async def double(given: int) -> int:
    await anyio.lowlevel.checkpoint()
    return 2 * given


@task
def triple(given: int) -> int:
    return 3 * given


@task
async def fail(given: int) -> int:
    raise ValueError(given)


class Hanging:
    """A task that never ends by itself, and what became of it."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.cancelled = 0

    async def hang(self) -> None:
        self.started.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise
