"""``python -m tests.torture``: run the parts and print the table."""

from __future__ import annotations

import argparse
import logging
import secrets
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.torture.catalog import Part, Report, UnavailableError, parts
from tests.torture.failing import told


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
    commit = _commit()
    broken = False
    _say("| part | what must hold, and what was seen | cases | violations | time | seed |")
    _say("|---|---|---:|---:|---:|---:|")
    for name in given.names or known:
        chosen = known[name]
        cases = given.cases or (chosen.short if given.short else chosen.full)
        started = time.monotonic()
        report = _tried(chosen, cases, seed)
        _say(_row(chosen, report, time.monotonic() - started, seed))
        for violation in report.violations:
            _say(f"  VIOLATION of {name}: {violation}")
        broken = broken or bool(report.violations)
    _say(f"\nOf commit {commit}.")  # an empty line ends the table
    return int(broken)


def _tried(chosen: Part, cases: int, seed: int) -> Report:
    """Try a part. An error of the part itself is a violation of it, and no end of the others."""
    try:
        return chosen.try_out(cases, seed)
    except UnavailableError as reason:
        return Report(0, [], f"(Not tried: {reason}.)")
    except Exception as error:  # noqa: BLE001 - whatever it is, the part did not hold
        return Report(0, [f"the part itself, of seed {seed}: {told(error)}"])


def _row(tried: Part, report: Report, seconds: float, seed: int) -> str:
    promise = f"{tried.promise} {report.note}".strip()
    spent = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    violations = len(report.violations) if report.cases or report.violations else "not tried"
    return f"| {tried.name} | {promise} | {report.cases:,} | {violations} | {spent} | {seed} |"


def _commit() -> str:
    """Return the commit that is tried, and whether there are changes on top of it."""
    try:
        return _git("rev-parse", "--short", "HEAD") + ("+changes" if _git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError) as error:
        return f"unknown ({error})"


def _git(*words: str) -> str:
    command = [shutil.which("git") or "git", *words]
    ended = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
