"""Commands for groups, contacts, absences and preferences."""

import json

from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401

Desk = tuple[str, str, str, str]


def test_groups_create_change_and_delete(desk: Desk, sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    assert "There are no groups." in sayso("groups", "list").stdout
    made = sayso("groups", "create", "payments", "root", "--editor", "anna", key=root)
    assert "The group payments has 1 member." in made.stdout, made.stderr
    assert "has 2 members." in sayso("groups", "add", "payments", "anna").stdout
    assert "has 1 member." in sayso("groups", "remove", "payments", "root").stdout
    assert "Only an admin" in sayso("groups", "add", "payments", "root", "--editor").stderr
    (group,) = json.loads(sayso("groups", "list", "--json").stdout)
    assert (group["members"], group["editors"]) == (["anna"], ["anna"])
    assert "is deleted" in sayso("groups", "delete", "payments", key=root).stdout
