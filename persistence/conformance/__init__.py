"""The suite that every saver and store must pass, for those who write one.

``await check_saver(open_saver)`` and ``await check_store(open_store)`` run all of it, on asyncio or trio; each returns
a ``Report``. For one test a check, parametrize over ``SAVER_CHECKS`` or ``STORE_CHECKS`` and await ``check(subject)``.
"""

from persistence.conformance.checkpoints import CHECKS as _CHECKPOINTS
from persistence.conformance.hostile import CHECKS as _HOSTILE
from persistence.conformance.injection import CHECKS as _INJECTION
from persistence.conformance.items import CHECKS as _ITEMS
from persistence.conformance.items_injection import CHECKS as _ITEMS_INJECTION
from persistence.conformance.leases import CHECKS as _LEASES
from persistence.conformance.suite import Check, ConformanceError, OpenSaver, OpenStore, Report, run_checks
from persistence.conformance.units import CHECKS as _UNITS
from persistence.conformance.upkeep import CHECKS as _UPKEEP

SAVER_CHECKS: tuple[Check, ...] = (*_CHECKPOINTS, *_UPKEEP, *_HOSTILE, *_INJECTION, *_UNITS, *_LEASES)
STORE_CHECKS: tuple[Check, ...] = (*_ITEMS, *_ITEMS_INJECTION)


async def check_saver(open_saver: OpenSaver) -> Report:
    """Run every check on a saver: ``open_saver()`` is an async context manager that gives one.

    It is opened once. All threads have names of their own, so storage that is in use may be given. A method that raises
    UnsupportedOperationError (NotImplementedError) is reported as missing; the first five of the contract must
    be there.
    """
    async with open_saver() as saver:
        return await run_checks(SAVER_CHECKS, saver)


async def check_store(open_store: OpenStore) -> Report:
    """Run every check on a store: ``open_store()`` is an async context manager that gives one."""
    async with open_store() as store:
        return await run_checks(STORE_CHECKS, store)


__all__ = ["SAVER_CHECKS", "STORE_CHECKS", "Check", "ConformanceError", "Report", "check_saver", "check_store"]
