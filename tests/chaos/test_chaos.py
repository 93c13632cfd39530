"""A small storm over real processes: whatever is killed, nothing that was promised is broken."""

import os
from pathlib import Path

import pytest

from tests.chaos.__main__ import judge, render
from tests.chaos.agents import PATHS
from tests.chaos.plans import AGENTS, TOOLS, plan_run
from tests.chaos.storms import pass_over

RUNS, KILLS = 300, 40


@pytest.mark.timeout(300)
def test_nothing_contradicts_after_forty_kills(tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(3))
    print(f"The storm's seed is {seed}; make chaos RUNS={RUNS} KILLS={KILLS} SEED={seed} makes the same one.")

    passed = pass_over(tmp_path / "home", RUNS, KILLS, seed)

    judged = judge(tmp_path / "home")
    print(render(passed, judged))
    assert [str(found) for found in judged.contradictions[:1]] == []
    assert judged.runs.total() == RUNS
    assert passed.killed.total() == KILLS


def test_the_same_seed_makes_the_same_storm() -> None:
    assert [plan_run(7, number) for number in range(50)] == [plan_run(7, number) for number in range(50)]
    assert plan_run(7, 1) != plan_run(8, 1)


def test_a_third_of_the_calls_may_run_twice_and_three_in_a_hundred_outlast_their_lease() -> None:
    calls = [call for number in range(3000) for call in plan_run(1, number).calls.values()]

    assert 0.3 < sum(TOOLS[call.tool].idempotent for call in calls) / len(calls) < 0.4
    assert 0.02 < sum(TOOLS[call.tool].slow for call in calls) / len(calls) < 0.04
    assert len(AGENTS) == len(PATHS.split(","))
