"""Some fail-overs under load: nothing runs twice, and what is lost is noticed; with a replica nothing is lost."""

from pathlib import Path

import pytest

from tests.chaos.failovers import run_failovers


@pytest.mark.timeout(300)
@pytest.mark.parametrize("replicas", [0, 1])
async def test_fail_overs_run_nothing_twice(tmp_path: Path, replicas: int) -> None:
    figures = await run_failovers(tmp_path, 5, replicas, seed=7)
    print(figures.describe())
    assert figures.failovers == 5
    assert figures.twice == []
    assert figures.noticed == figures.losing
    if replicas:
        assert figures.lost == set()
