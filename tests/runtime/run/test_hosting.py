"""Where a detached run lives: it ends when told to, whoever tells it, and whoever waits for that hears of it."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import anyio
import pytest
from anyio import to_thread

from runtime.run.hosting import Host

VARIABLE: ContextVar[str] = ContextVar("variable", default="none")


async def test_it_runs_what_it_was_given_in_the_callers_context() -> None:
    seen: list[str] = []

    async def function() -> None:
        seen.append(VARIABLE.get())
        VARIABLE.set("host's")

    VARIABLE.set("caller's")
    host = Host()
    host.start(function)
    with anyio.fail_after(5):
        await host.ended()
    assert (seen, VARIABLE.get()) == (["caller's"], "caller's")


async def test_it_outlives_the_scope_that_started_it() -> None:
    host, go_on, done = Host(), anyio.Event(), list[str]()

    async def function() -> None:
        await go_on.wait()
        done.append("done")

    with anyio.CancelScope() as scope:
        host.start(function)
        scope.cancel()
        await anyio.sleep(0)
    assert scope.cancelled_caught
    go_on.set()
    with anyio.fail_after(5):
        await host.ended()
    assert done == ["done"]


@pytest.mark.parametrize("begun", [True, False])
async def test_it_ends_when_told_to(begun: bool) -> None:
    host, ended = Host(), list[str]()

    async def function() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("ended")

    host.start(function)
    if begun:
        await anyio.wait_all_tasks_blocked()
    host.cancel()
    host.cancel()
    with anyio.fail_after(5):
        await host.ended()
    assert ended == ["ended"]


async def test_it_can_be_abandoned_from_any_thread() -> None:
    host, order = Host(), list[object]()

    async def function() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            order.append("ended")

    host.start(function)
    await anyio.wait_all_tasks_blocked()
    await to_thread.run_sync(host.abandon, lambda: order.append(threading.get_ident()))
    with anyio.fail_after(5):
        await host.ended()
    assert order == [threading.get_ident(), "ended"]


async def test_abandoning_what_never_began_does_nothing() -> None:
    Host().abandon(lambda: pytest.fail("called"))


def test_abandoning_after_the_loop_is_gone_does_nothing() -> None:
    hosts: list[Host] = []

    async def function() -> None:
        pass

    async def main() -> None:
        hosts.append(Host())
        hosts[0].start(function)
        await hosts[0].ended()

    for backend in ("asyncio", "trio"):
        hosts.clear()
        anyio.run(main, backend=backend)
        hosts[0].abandon(lambda: pytest.fail("called"))


def test_a_host_that_is_cancelled_before_its_first_step_has_ended() -> None:
    """As when an event loop is shut down right after a stream was begun."""

    async def function() -> None:
        pytest.fail("called")

    async def main() -> None:
        host = Host()
        host.start(function)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        async with asyncio.timeout(5):
            await host.ended()

    asyncio.run(main())
