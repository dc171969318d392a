"""What every saver and store must do, on MongoDB: with transactions and without."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from persistence.conformance import SAVER_CHECKS, STORE_CHECKS, Check
from persistence.mongo import MongoDBSaver, MongoDBStore
from persistence.serde.encrypted import EncryptedSerializer

pytestmark = pytest.mark.anyio
KEY = b"0123456789abcdef"


@pytest.fixture(params=["plain", "encrypted"])
async def any_saver(request: pytest.FixtureRequest, mongo: dict[str, Any]) -> AsyncIterator[MongoDBSaver]:
    serde = EncryptedSerializer(KEY) if request.param == "encrypted" else None
    async with MongoDBSaver(**mongo, serde=serde) as opened:
        yield opened


@pytest.fixture(params=["plain", "encrypted"])
async def any_store(request: pytest.FixtureRequest, mongo: dict[str, Any]) -> AsyncIterator[MongoDBStore]:
    serde = EncryptedSerializer(KEY) if request.param == "encrypted" else None
    async with MongoDBStore(**mongo, serde=serde) as opened:
        yield opened


@pytest.mark.parametrize("check", SAVER_CHECKS, ids=lambda check: check.title)
async def test_savers(any_saver: MongoDBSaver, check: Check) -> None:
    await check(any_saver)


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.title)
async def test_stores(any_store: MongoDBStore, check: Check) -> None:
    await check(any_store)
