"""Timeouts of one attempt: the whole of it, or its silence."""

from __future__ import annotations

from collections.abc import Awaitable
from math import inf
from typing import TYPE_CHECKING, Any

import anyio
from anyio import from_thread

from persistence.portal import here, is_elsewhere
from runtime.errors import NodeTimeoutError

if TYPE_CHECKING:
    from runtime.context.scope import Scope
    from runtime.engine.plan import NodePlan
    from runtime.types.policy import TimeoutPolicy


async def timed(policy: TimeoutPolicy, node: NodePlan, scope: Scope, work: Awaitable[Any]) -> Any:
    """Await an attempt within its policy. Raises NodeTimeoutError; cancellation of the attempt is cooperative."""
    begun = anyio.current_time()
    run_for, idle_for = policy.run_seconds, policy.idle_seconds
    with anyio.CancelScope(deadline=inf if run_for is None else begun + run_for) as whole:
        with anyio.CancelScope(deadline=inf if idle_for is None else begun + idle_for) as silence:
            if idle_for is not None:
                token, thread = here()

                def restart() -> None:
                    silence.deadline = anyio.current_time() + idle_for

                def beat(*, observable: bool) -> None:
                    if observable and policy.refresh_on != "auto":
                        return
                    if is_elsewhere(thread):  # a call of a sync function that the node waits for
                        from_thread.run_sync(restart, token=token)
                    else:
                        restart()

                scope.beat = beat
            try:
                return await work
            finally:
                scope.beat = None
        raise NodeTimeoutError(node.name, anyio.current_time() - begun, kind="idle", idle_timeout=idle_for or 0.0)
    if whole.cancelled_caught:
        raise NodeTimeoutError(node.name, anyio.current_time() - begun, kind="run", run_timeout=run_for or 0.0)
    raise AssertionError(scope)
