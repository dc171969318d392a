"""``python -m tests.torture``: run the parts and print the table."""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
import time

from tests.torture.catalog import Part, Report, UnavailableError, parts


def main() -> int:
    """Run what was asked for; return 1 if a promise was broken."""
    known = {each.name: each for each in parts()}
    arguments = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    arguments.add_argument("names", nargs="*", metavar="PART", help=f"one of: {', '.join(known)}; all if none is given")
    arguments.add_argument("--short", action="store_true", help="as few cases as beside the other tests")
    arguments.add_argument("--cases", type=int, help="this many cases of each part")
    arguments.add_argument("--seed", type=int, help="repeat a run; a new seed otherwise")
    given = arguments.parse_args()
    logging.disable(logging.CRITICAL)  # by the thousand, for what is done on purpose: they would bury the table
    if unknown := set(given.names) - known.keys():
        arguments.error(f"unknown part {min(unknown)!r}: use one of {', '.join(known)}")
    seed = secrets.randbelow(2**31) if given.seed is None else given.seed
    broken = False
    _say("| promise | part | cases | violations | time | seed |\n|---|---|---:|---:|---:|---:|")
    for name in given.names or known:
        chosen = known[name]
        cases = given.cases or (chosen.short if given.short else chosen.full)
        started = time.monotonic()
        try:
            report = chosen.try_out(cases, seed)
        except UnavailableError as reason:
            report = Report(0, [], f"(not tried: {reason})")
        _say(_row(chosen, report, time.monotonic() - started, seed))
        for violation in report.violations:
            _say(f"  VIOLATION of {name}: {violation}")
        broken = broken or bool(report.violations)
    return int(broken)


def _row(tried: Part, report: Report, seconds: float, seed: int) -> str:
    promise = f"{tried.promise} {report.note}".strip()
    spent = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    return f"| {promise} | {tried.name} | {report.cases:,} | {len(report.violations)} | {spent} | {seed} |"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
