"""`make chaos RUNS=1000 KILLS=100 SEED=1`: let a storm pass over a Sayso of its own, judge it, print what it came to.

Exit code 0 when nothing contradicts; else 1, with the first contradiction's whole history, and the evidence is kept.
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from launch.stops import catch_stop_signals
from sayso.clock import now_ms
from sayso.errors import InvalidInput
from tests.chaos.checker import Judgement, check_storm
from tests.chaos.effects import read_effects
from tests.chaos.freezes import read_freezes
from tests.chaos.logs import read_log
from tests.chaos.storms import Passed, pass_over
from tests.chaos.trails import read_trails


def main() -> int:
    """Run one storm as the environment says, and return its exit code."""
    try:
        runs, kills = _read_number("RUNS", 300), _read_number("KILLS", 40)
        seed = _read_number("SEED", now_ms() % 1_000_000)
    except InvalidInput as error:
        print(error.message, file=sys.stderr)
        return 2
    home = Path(tempfile.mkdtemp(prefix="sayso-storm-"))
    print(f"A storm of {runs} runs and {kills} kills, seed {seed}.", flush=True)
    try:
        with catch_stop_signals():
            passed = pass_over(home, runs, kills, seed)
    except KeyboardInterrupt:
        shutil.rmtree(home)
        return 130
    judged = judge(home)
    print(render(passed, judged))
    if judged.contradictions:
        print(f"\nThe first contradiction:\n{judged.contradictions[0]}\n\nThe evidence is in {home}.", file=sys.stderr)
        return 1
    shutil.rmtree(home)
    return 0


def _read_number(name: str, default: int) -> int:
    given = os.environ.get(name) or str(default)
    if not re.fullmatch(r"[0-9]{1,9}", given):
        raise InvalidInput(f"{name} is a whole number, such as {default}; '{given}' is none.")
    return int(given)


def judge(home: Path) -> Judgement:
    """Return what the evidence of a storm comes to."""
    return check_storm(read_log(home), read_trails(home), read_effects(home), read_freezes(home))


def render(passed: Passed, judged: Judgement) -> str:
    """Return the storm's figures as text."""
    total = judged.runs.total()
    doubted = judged.doubted.total()
    rows = {
        "runs": f"{total} in {passed.took_s:.0f} s: {_list(judged.runs)}",
        "kills": f"{passed.killed.total()}: {_list(passed.killed)}",
        "freezes": str(passed.frozen),
        "requests": _list(judged.answers),
        "in doubt": f"{doubted} runs ({100 * doubted / max(1, total):.2f} %)",
        "their calls": _list(judged.causes) or "none",
        "contradictions": str(len(judged.contradictions)),
    }
    return "\n".join(f"{name:<15}{text}" for name, text in rows.items())


def _list(counts: "dict[str, int]") -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items(), key=lambda pair: -pair[1]))


if __name__ == "__main__":
    raise SystemExit(main())
