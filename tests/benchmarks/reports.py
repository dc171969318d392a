"""A report with made-up figures: every picture of the page has its cases."""

from __future__ import annotations

from benchmarks.results import BARE, STEP, Answer, Case, Report, Sample, Series

MODES = {BARE: 40.0, "exit": 60.0, "async": 120.0, "sync": 900.0}


def watched(value: float) -> Series:
    """Return three repeats of which each superstep was watched."""
    return Series.of(
        [Sample(value * drift).having([value * drift * (1 + n / 50) for n in range(100)]) for drift in (0.9, 1, 1.2)]
    )


def plain(*values: float) -> Series:
    """Return repeats of one value each."""
    return Series(list(values), [])


def report() -> Report:
    """Return the report."""
    return Report(
        {"date": "2030-01-01", "cpu": "<a processor> & more", "load": "0.1", "sweep": "full"},
        {"actorgraph": ["this tree"], "LangGraph": ["langgraph 1.2", "tracing off"]},
        [_durability(), _crash(), _groups(), _storage(), _growth(), _peers()],
    )


def _durability() -> Answer:
    cases = [
        Case(
            f"{backend}, {state} B, {runs} runs, {node} ms",
            STEP,
            None,
            {f"{whose}{mode}": watched(value * (1 + state / 10_000)) for mode, value in MODES.items()}
            | ({"raw commit": watched(700.0)} if runs == 1 else {}),
            {"backend": backend, "state": state, "node": node, "runs": runs},
        )
        for backend, whose in (("memory", "LangGraph: "), ("sqlite", ""))
        for state, node in ((100, 0), (10_000, 0), (100, 20))
        for runs in (1, 32)
    ]
    return Answer("durability", "latency and throughput", cases=cases, notes=["left out: 1 MB"])


def _crash() -> Answer:
    at: dict[str, str | float] = {"backend": "sqlite"}
    costs = {label: watched(value) for mode, value in MODES.items() for label in (mode, f"LangGraph: {mode}")}
    lost = {
        "exit": plain(3.0, 38.0),
        "async": plain(0.0, 5.0),
        "sync": plain(0.0, 1.0),
        "LangGraph: sync": plain(1.0, 0.0),
    }
    return Answer(
        "crash",
        "what a crash loses",
        cases=[
            Case("cost, sqlite, 1 ms", STEP, None, costs, at),
            Case("lost, sqlite, 1 ms", "supersteps lost", None, lost, at),
        ],
    )


def _groups() -> Answer:
    cases = []
    for runs in (1, 16, 256):
        at: dict[str, str | float] = {"runs": runs}
        cases.append(
            Case(f"{runs} runs", STEP, None, {"sync": watched(900 / runs), "raw batches": watched(500 / runs)}, at)
        )
        for unit in ("units per commit", "deepest channel"):
            cases.append(Case(f"{runs} runs, {unit}", unit, None, {"sync": plain(runs * 0.9)}, at))
    return Answer("group-commit", "commits shared", cases=cases)


def _storage() -> Answer:
    cases = [
        Case(
            f"{steps} appends, {unit}",
            unit,
            None,
            {"actorgraph": plain(500.0), "LangGraph": plain(9.0 * steps)},
            {"steps": steps},
        )
        for steps in (50, 100, 200)
        for unit in ("bytes per step", "µs/read")
    ]
    return Answer("storage", "a long thread", cases=cases)


def _growth() -> Answer:
    sizes = [
        Case(f"{size} nodes", STEP, None, {"actorgraph": plain(30.0 + size / 100)}, {"over": "nodes", "size": size})
        for size in (10, 1_000)
    ]
    return Answer(
        "growth",
        "growth",
        cases=[*sizes, Case("exponent", "n^k", None, {"actorgraph": plain(0.06)}, {"over": "nodes"})],
    )


def _peers() -> Answer:
    series = {"LangGraph": plain(500.0, 520.0), "actorgraph": plain(60.0, 50.0), "<other> & co": plain(900.0, 800.0)}
    return Answer(
        "chain", "no checkpointer", cases=[Case("20 nodes", STEP, "LangGraph", series)], failures=["<bad>: no"]
    )
