"""Running a graph for several inputs at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import anyio

from runtime.errors import ConfigError

Config = Mapping[str, Any]


async def at_once(
    run: Callable[[Any, Config | None], Awaitable[Any]],
    inputs: Sequence[Any],
    configs: Sequence[Config | None],
    limit: int | None,
    *,
    return_exceptions: bool,
) -> list[Any]:
    """Return what the runs return, in the order of their inputs; at most ``limit`` run at once.

    The first failure ends the other runs and is raised, unless exceptions are to be returned.
    """
    outputs: list[Any] = [None] * len(inputs)
    failures: list[Exception] = []
    slots = anyio.Semaphore(limit or max(1, len(inputs)))

    async def one(place: int) -> None:
        async with slots:
            try:
                outputs[place] = await run(inputs[place], configs[place])
            except Exception as error:  # noqa: BLE001 - returned, or raised below without a group around it
                outputs[place] = error
                if not return_exceptions:
                    failures.append(error)
                    nursery.cancel_scope.cancel()

    async with anyio.create_task_group() as nursery:
        for place in range(len(inputs)):
            nursery.start_soon(one, place)
    if failures:
        raise failures[0]
    return outputs


def configs_of(given: Config | Sequence[Config] | None, count: int) -> list[Config | None]:
    """Return a config for each of the inputs. Raises ConfigError if there are not as many."""
    if given is None or isinstance(given, Mapping):
        return [given] * count
    configs = list(given)
    if len(configs) != count:
        msg = f"There are {count} inputs and {len(configs)} configs: give one config for all, or one for each input."
        raise ConfigError(msg)
    return [*configs]
