"""The engine does what a reference of a few lines says, whatever graph, whatever is done to a thread, in any order."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from persistence.memory import InMemorySaver
from tests.model.playing import MODES, Play
from tests.model.shapes import NAMES, shape_by
from tests.torture.seeded import LOOPS, run_seeded

modes = st.sampled_from(MODES)
places = st.none() | st.integers(0, 30)
"""The newest checkpoint, or one of those there are."""

one_name = st.sets(st.sampled_from(NAMES), max_size=1)
stops: st.SearchStrategy[dict[str, Any]] = st.just({}) | st.fixed_dictionaries({"before": one_name})
"""Breakpoints."""


class Threads(RuleBasedStateMachine):
    """One thread. Every operation is compared as it is done, and runs on a loop of its own."""

    play: Play
    loop: str
    seed: int

    @initialize(chance=st.randoms(use_true_random=False), loop=st.sampled_from(LOOPS), seed=st.integers(0, 1000))
    def start(self, chance: Random, loop: str, seed: int) -> None:
        self.play = Play(shape_by(chance), InMemorySaver())
        self.loop, self.seed = loop, seed

    @rule(mode=modes, at=places, stops=stops)
    def begin(self, mode: str, at: int | None, stops: dict[str, Any]) -> None:
        self._do(lambda: self.play.begin(mode, at, **self._known(stops)))

    @precondition(lambda self: self.play.reference.thread)
    @rule(mode=modes, stops=stops)
    def go_on(self, mode: str, stops: dict[str, Any]) -> None:
        self._do(lambda: self.play.go_on(mode, **self._known(stops)))

    @precondition(lambda self: self.play.reference.thread and self.play.reference.thread[-1].asked)
    @rule(mode=modes, which=st.integers(1, 15), stops=stops)
    def answer(self, mode: str, which: int, stops: dict[str, Any]) -> None:
        self._do(lambda: self.play.answer(mode, which, **self._known(stops)))

    @precondition(lambda self: self.play.reference.thread)
    @rule(mode=modes, at=st.integers(0, 30), stops=stops)
    def replay(self, mode: str, at: int, stops: dict[str, Any]) -> None:
        self._do(lambda: self.play.replay(mode, at, **self._known(stops)))

    @rule(name=st.sampled_from([*NAMES, "__start__"]), at=places)
    def update(self, name: str, at: int | None) -> None:
        assume(name == "__start__" or name in self.play.reference.shape.nodes)
        self._do(lambda: self.play.update(name, at))

    def _known(self, stops: dict[str, Any]) -> dict[str, Any]:
        known = self.play.reference.shape.nodes
        return {when: [name for name in names if name in known] for when, names in stops.items()}

    def _do(self, call: Callable[[], Any]) -> None:
        run_seeded(self.loop, self.seed, call)


TestThreads = pytest.mark.slow(Threads.TestCase)
TestThreads.settings = settings(
    max_examples=40, stateful_step_count=6, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow]
)
