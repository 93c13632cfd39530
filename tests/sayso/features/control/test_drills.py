"""Commands for fire drills."""

import json

from tests.sayso.cli.test_channels import Desk
from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401


def test_drills_are_listed_and_planted_by_admins(desk: Desk, sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    assert "There are no templates." in sayso("drills", "list", key=root).stdout
    assert json.loads(sayso("drills", "list", "--json", key=root).stdout) == []
    refused = sayso("drills", "plant", "unknown-recipient", "anna", key=root)
    assert (refused.returncode, "There is no drill 'unknown-recipient'." in refused.stderr) == (1, True)
