"""Commands for second looks."""

import json

from tests.sayso.cli.test_channels import Desk
from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401


def test_calls_that_wait_are_listed_and_judged(desk: Desk, sayso: Run) -> None:  # noqa: F811
    assert "No call waits for a second look." in sayso("second-looks", "list").stdout
    assert json.loads(sayso("second-looks", "list", "--json").stdout) == []
    refused = sayso("second-looks", "agree", "run_none", "3")
    assert (refused.returncode, "Run 'run_none' has no call with the event 3." in refused.stderr) == (1, True)
    refused = sayso("second-looks", "disagree", "run_none", "3", "--reason", "too much")
    assert refused.returncode == 1
    assert sayso("second-looks", "disagree", "run_none", "3").returncode == 2
