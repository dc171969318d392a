"""What the cancellation tests share with the crash tests: places in memory for databases."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.cancellation.cancelling", "tests.cancellation.trials")

from tests.crash.conftest import folder, short_logs  # noqa: E402 - the rewriting is asked for first

__all__ = ["folder", "short_logs"]
