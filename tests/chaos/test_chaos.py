"""A small chaos experiment over real processes: kills break no invariant."""

import os
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.chaos.__main__ import check_home, render
from tests.chaos.evidence.provider_log import CHANNEL
from tests.chaos.experiment import SETTINGS, run_experiment
from tests.chaos.workload.agents import PATHS
from tests.chaos.workload.plans import AGENTS, NOTIFIED, TOOLS, plan_run

RUNS, KILLS = 300, 40


@pytest.mark.timeout(300)
def test_experiment_finds_no_contradiction_after_forty_kills(tmp_path: Path) -> None:
    seed = int.from_bytes(os.urandom(3))
    print(f"Repeat this experiment with: make chaos RUNS={RUNS} KILLS={KILLS} SEED={seed}")

    result = run_experiment(tmp_path / "home", RUNS, KILLS, seed)

    check = check_home(tmp_path / "home")
    print(render(result, check))
    assert [str(found) for found in check.contradictions[:1]] == []
    assert check.runs.total() == RUNS
    assert result.killed.total() == KILLS


def test_plan_run_repeats_with_the_same_seed() -> None:
    assert [plan_run(7, number) for number in range(50)] == [plan_run(7, number) for number in range(50)]
    assert plan_run(7, 1) != plan_run(8, 1)


def test_plans_have_the_stated_shares_of_idempotent_and_slow_calls() -> None:
    calls = [call for number in range(3000) for call in plan_run(1, number).calls.values()]

    assert 0.3 < sum(TOOLS[call.tool].idempotent for call in calls) / len(calls) < 0.4
    assert 0.02 < sum(TOOLS[call.tool].slow for call in calls) / len(calls) < 0.04
    assert len(AGENTS) == len(PATHS.split(","))


def test_rules_name_the_channel_for_the_notified_tools() -> None:
    rules = yaml.safe_load(Path(SETTINGS["SAYSO_POLICY"]).read_text(encoding="utf-8"))["rules"]
    patterns = [rule["tool"] for rule in rules if rule.get("terms", {}).get("channels") == [CHANNEL]]

    assert {name for name in TOOLS if any(fnmatch(name, pattern) for pattern in patterns)} == NOTIFIED
