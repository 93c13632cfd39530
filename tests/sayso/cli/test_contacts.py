"""Commands for addresses in channels."""

import json

from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401


def test_contacts_code_list_and_unlink(sayso: Run) -> None:  # noqa: F811
    made = json.loads(sayso("contacts", "code", "telegram", "--json").stdout)
    assert (len(made["code"]), made["channel"]) == (8, "telegram")
    assert "send it to Sayso in telegram within 10 minutes" in sayso("contacts", "code", "telegram").stdout
    assert "No address is linked." in sayso("contacts", "list").stdout
    assert "has no contact" in sayso("contacts", "unlink", "con_none").stderr
    assert "admin" in sayso("contacts", "list", "--person", "root").stderr
