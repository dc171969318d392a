"""How far a streamed run is on disk, so that an effect outside of it can wait for what led to the effect."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from runtime.streaming.change import Change

if TYPE_CHECKING:
    from persistence.contracts.saver import Ack


class Recorder(Protocol):
    """What progress needs of the journal."""

    @property
    def durability(self) -> str:
        """Which mode the run is in."""
        ...

    keeps_exit: bool
    marks: Any
    """Told of each checkpoint that is sent to storage."""

    async def settled(self, ack: Ack) -> None:
        """Return once what was sent is durable. Raises what kept it from being so, as the run's caller is told."""
        ...


class Progress:
    """Counts a run's checkpoints that were sent to storage, and those that are known to be on disk.

    They are stored in the order in which they were sent, so one that is on disk has all before it there as well.
    """

    def __init__(self) -> None:
        self._sent = 0
        self._under_way: deque[tuple[str, Ack]] = deque()
        self._newest: str | None = None
        self._changed = Change()
        self._recorder: Recorder | None = None
        self.over = False
        """Whether the run has ended; what it had to save is saved by then."""

    def follow(self, recorder: Recorder) -> None:
        """Follow a run's journal; a run that begins again has another one, and what the first sent does not count."""
        self._sent = 0
        self._under_way.clear()
        self._recorder = recorder
        recorder.marks = self

    @property
    def follows(self) -> bool:
        """Whether the run itself keeps anything; in ``exit``, most subgraphs leave that to their parent."""
        recorder = self._recorder
        return recorder is not None and (recorder.durability != "exit" or recorder.keeps_exit)

    def sent(self, checkpoint_id: str, ack: Ack) -> None:
        """Note that a checkpoint was sent, with its receipt."""
        self._sent += 1
        self._under_way.append((checkpoint_id, ack))
        self._see()
        self._changed.tell()

    def end(self) -> None:
        """Note that the run has ended."""
        self.over = True
        if self._recorder is not None:
            self._recorder.marks = None  # they refer to each other
        self._changed.tell()

    @property
    def upto(self) -> str | None:
        """The newest checkpoint that is on disk; None before the first."""
        self._see()
        return self._newest

    def due(self, *, recorded: bool = False) -> int:
        """Return how many checkpoints must be on disk before what is told now is.

        ``recorded``: it tells what the newest checkpoint holds; otherwise what the next one will hold.
        """
        held_back = self._recorder is None or self._recorder.durability == "exit"
        return self._sent if recorded and not held_back else self._sent + 1

    async def reach(self, number: int) -> None:
        """Return once so many checkpoints are on disk, or the run has ended. Raises what kept one from being stored."""
        while self._sent < number and not self.over:
            await self._changed.wait()
        self._see()
        behind = self._sent - len(self._under_way)
        if number > behind and self._under_way and self._recorder is not None:
            _, ack = self._under_way[min(number - behind, len(self._under_way)) - 1]
            await self._recorder.settled(ack)

    def _see(self) -> None:
        while self._under_way and self._under_way[0][1].done and self._under_way[0][1].error is None:
            self._newest, _ = self._under_way.popleft()
