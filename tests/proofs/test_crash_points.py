"""Crash before and after every commit and call of a run; another process always finishes the run."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.proofs.crashes import CRASHED, IDEMPOTENT

ROOT = Path(__file__).resolve().parents[2]
CALLS = ("look_up", "note", "refund", "tag")


def name(outcome: dict[str, Any]) -> str:
    kind, place, when = outcome["point"]
    return f"{when} {kind} {place}"


def has_ended(outcome: dict[str, Any]) -> bool:
    """Whether the run has ended, and a call in doubt was asked about or ended the run."""
    return outcome["status"] in ("completed", "degraded", "failed")


@pytest.fixture(scope="module")
def outcomes(store_url: str, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The result of every point, first the one without a crash."""
    command = [sys.executable, "-m", "tests.proofs.crashes", store_url, str(tmp_path_factory.mktemp("crashes"))]
    swept = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert swept.returncode == 0, swept.stderr
    return [json.loads(line) for line in swept.stdout.splitlines()]


def test_a_run_without_a_crash_calls_everything_once(outcomes: list[dict[str, Any]]) -> None:
    uncrashed = outcomes[0]
    assert (uncrashed["point"], uncrashed["codes"], uncrashed["status"]) == (None, [0], "completed")
    assert sorted(tool for tool, _, _ in uncrashed["effects"]) == sorted(CALLS)
    assert uncrashed["counts"]["call"] == len(CALLS)


def test_every_crash_point_is_reached(outcomes: list[dict[str, Any]]) -> None:
    points = outcomes[1:]
    missed = [name(outcome) for outcome in points if outcome["codes"][0] != CRASHED]
    print(f"{len(points)} points, {len(missed)} missed: {missed}")
    assert len(points) >= 2 * (len(CALLS) + 6)
    assert len(missed) <= 0.05 * len(points)


def test_every_run_ends_after_a_crash(outcomes: list[dict[str, Any]]) -> None:
    wrong = {name(one): (one["codes"], one.get("status"), one.get("error")) for one in outcomes[1:] if ended_badly(one)}
    assert not wrong


def ended_badly(outcome: dict[str, Any]) -> bool:
    crashed_and_found = outcome["codes"] in ([CRASHED, 0], [0])
    return not (crashed_and_found and has_ended(outcome))


def test_no_call_is_made_twice_unless_it_may_be(outcomes: list[dict[str, Any]]) -> None:
    for outcome in outcomes:
        made = Counter(tool for tool, _, _ in outcome["effects"])
        keys = {tool: {key for one, _, key in outcome["effects"] if one == tool} for tool in made}
        for tool in CALLS:
            if tool in IDEMPOTENT:
                assert made[tool] >= 1 or outcome["status"] != "completed", (outcome["point"], tool)
                assert len(keys.get(tool, ())) <= 1, "an idempotent call has one key, however often it is made"
            else:
                assert made[tool] <= 1, (outcome["point"], tool)
                assert made[tool] == 1 or outcome["in_doubt"] or outcome["status"] != "completed"


def test_call_is_in_doubt_only_after_a_crash_around_it(outcomes: list[dict[str, Any]]) -> None:
    for outcome in outcomes:
        unsure = [tool for tool in outcome["left_begun"] if tool not in IDEMPOTENT]
        assert outcome["in_doubt"] == bool(unsure), (outcome["point"], "begun, and its result was not saved")
    in_doubt = [outcome["point"] for outcome in outcomes[1:] if outcome["in_doubt"]]
    assert sum(kind == "call" for kind, _, _ in in_doubt) == 2 * len(CALLS), "a batch is begun and saved as one"
    assert {when for kind, _, when in in_doubt if kind == "commit"} == {"after", "before"}


def test_every_trail_is_whole_and_every_index_follows_from_its_record(outcomes: list[dict[str, Any]]) -> None:
    for outcome in outcomes:
        assert (outcome["trail_error"], outcome["indexes_differ"]) == (None, False), outcome["point"]
        ends = Counter(call_id for kind, call_id in outcome["trail"] if kind == "tool_completed")
        assert set(ends.values()) == {1}, "the trail records one end for every call"
        kinds = Counter(kind for kind, _ in outcome["trail"])
        assert kinds["run_resumed"] == kinds["run_paused"]
        assert kinds["run_started"] == 1
