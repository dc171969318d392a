"""What every saver and store must do, on MongoDB: with transactions and without."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from persistence.conformance import SAVER_CHECKS, STORE_CHECKS, Check
from persistence.mongo import MongoDBSaver, MongoDBStore

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]  # the emulator looks at every row

KEPT = [check for check in SAVER_CHECKS if check.needs != "alease"]
"""It keeps no leases."""


@pytest.fixture
async def store(mongo: dict[str, Any]) -> AsyncIterator[MongoDBStore]:
    async with MongoDBStore(**mongo) as opened:
        yield opened


@pytest.mark.parametrize("check", KEPT, ids=lambda check: check.title)
async def test_savers(saver: MongoDBSaver, check: Check) -> None:
    await check(saver)


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.title)
async def test_stores(store: MongoDBStore, check: Check) -> None:
    await check(store)
