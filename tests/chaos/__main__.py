"""`make chaos RUNS=1000 KILLS=100 SEED=1`: run one chaos experiment, check its evidence and print the figures.

The exit code is 0 without contradictions. Otherwise it is 1, the first contradiction is printed with the history of its
run, and the evidence is kept.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from launch.stops import catch_stop_signals
from sayso.core.clock import now_ms
from sayso.errors import InvalidInput
from tests.chaos.checking.checker import CheckResult, check_evidence
from tests.chaos.evidence.client_log import read_log
from tests.chaos.evidence.effects import read_effects
from tests.chaos.evidence.freezes import read_freezes
from tests.chaos.evidence.provider_log import read_provider
from tests.chaos.evidence.trails import read_trails
from tests.chaos.experiment import ExperimentResult, run_experiment
from tests.chaos.failovers import run_failovers


def main() -> int:
    """Run the experiment that the environment describes, and return its exit code."""
    try:
        runs, kills = _read_number("RUNS", 300), _read_number("KILLS", 40)
        seed = _read_number("SEED", now_ms() % 1_000_000)
        failovers, replicas = _read_number("FAILOVERS", 0), _read_number("REPLICAS", 1)
    except InvalidInput as error:
        print(error.message, file=sys.stderr)
        return 2
    if failovers:
        return _fail_over(failovers, replicas, seed)
    home = Path(tempfile.mkdtemp(prefix="sayso-chaos-"))
    print(f"{runs} runs, {kills} kills, seed {seed}.", flush=True)
    try:
        with catch_stop_signals():
            result = run_experiment(home, runs, kills, seed)
    except KeyboardInterrupt:
        shutil.rmtree(home)
        return 130
    check = check_home(home)
    print(render(result, check))
    if check.contradictions:
        print(f"\nThe first contradiction:\n{check.contradictions[0]}\n\nThe evidence is in {home}.", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


def _fail_over(failovers: int, replicas: int, seed: int) -> int:
    print(f"{failovers} fail-overs, SAYSO_REPLICAS={replicas}, seed {seed}.", flush=True)
    with tempfile.TemporaryDirectory(prefix="sayso-failovers-") as home:
        figures = asyncio.run(run_failovers(Path(home), failovers, replicas, seed))
    print(figures.describe())
    is_wrong = figures.twice or figures.noticed < figures.losing or (replicas and figures.lost)
    return 1 if is_wrong else 0


def _read_number(name: str, default: int) -> int:
    given = os.environ.get(name) or str(default)
    if not re.fullmatch(r"[0-9]{1,9}", given):
        raise InvalidInput(f"{name} must be a whole number such as {default}, not '{given}'.")
    return int(given)


def check_home(home: Path) -> CheckResult:
    """Check the evidence that an experiment left in its folder."""
    return check_evidence(
        read_log(home), read_trails(home), read_effects(home), read_freezes(home), read_provider(home)
    )


def render(result: ExperimentResult, check: CheckResult) -> str:
    """Return the figures of an experiment as text."""
    total = check.runs.total()
    in_doubt = check.in_doubt.total()
    rows = {
        "runs": f"{total} in {result.took_s:.0f} s: {_list(check.runs)}",
        "kills": f"{result.killed.total()}: {_list(result.killed)}",
        "freezes": str(result.frozen),
        "requests": _list(check.answers),
        "cards": _list({name: check.cards[name] for name in ("sent", "updated", "left")}),
        "presses": _list({name: check.cards[name] for name in ("pressed", "late", "replied", "answered", "refused")}),
        "in doubt": f"{in_doubt} runs ({100 * in_doubt / max(1, total):.2f} %)",
        "their calls": _list(check.causes) or "none",
        "contradictions": str(len(check.contradictions)),
    }
    return "\n".join(f"{name:<15}{text}" for name, text in rows.items())


def _list(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda pair: -pair[1]))


if __name__ == "__main__":
    raise SystemExit(main())
