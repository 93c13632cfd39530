"""The command that says who is asked when."""

from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401


def test_who_refuses_unknown_rules_and_times(sayso: Run) -> None:  # noqa: F811
    assert "There is no rule 'none'" in sayso("who", "--rule", "none").stderr
    assert "is not a time" in sayso("who", "--rule", "none", "--at", "tomorrow").stderr
    assert "cannot be read" in sayso("who", "--rule", "none", "--call", "missing.json").stderr
