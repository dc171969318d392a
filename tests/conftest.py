"""What every test shares: each async test runs on asyncio and on trio."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(params=[pytest.param(("asyncio", {}), id="asyncio"), pytest.param(("trio", {}), id="trio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Name the event loop a test runs on."""
    return request.param
