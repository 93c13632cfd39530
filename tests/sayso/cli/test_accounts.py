"""Commands for passwords, sessions and reviewers."""

from sayso.client import Client
from tests.builders import PASSWORD
from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401

NEW = "a much better battery"


def test_password_changes_and_keeps_the_login(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    assert sayso("login", "--name", "anna", key=None, typed=f"{PASSWORD}\n").returncode == 0
    changed = sayso("password", key=None, typed=f"{PASSWORD}\n{NEW}\n{NEW}\n")
    assert changed.returncode == 0, changed.stderr
    assert "All other sessions have ended." in changed.stdout
    assert sayso("inbox", "--once", key=None).returncode == 0, "the login was renewed"
    with Client(desk[0], "-") as client:
        assert client.sign_in("anna", NEW).name == "anna"


def test_sessions_list_and_end(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    with Client(desk[0], "-") as client:
        client.sign_in("anna", PASSWORD)
    listed = sayso("sessions", "list").stdout
    assert listed.count("ses_") == 2
    assert "(this one)" in listed
    assert "1 ended." in sayso("sessions", "end", "--others").stdout
    assert sayso("sessions", "list").stdout.count("ses_") == 1
    assert "Name one session" in sayso("sessions", "end").stderr


def test_people_deactivate_and_activate(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    assert "anna is deactivated." in sayso("people", "deactivate", "anna", key=root).stdout
    assert "deactivated" in sayso("people", "list", key=root).stdout
    assert "anna is active" in sayso("people", "activate", "anna", key=root).stdout
    with Client(desk[0], "-") as client:
        client.sign_in("anna", PASSWORD)
    assert sayso("people", "sessions", "anna", key=root).stdout.count("ses_") == 1
    assert "1 ended." in sayso("people", "end-sessions", "anna", key=root).stdout
    assert sayso("people", "list").returncode == 1, "not for reviewers"


def test_people_roles_are_set(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    _, _, _, root = desk
    assert "anna is auditor, operator." in sayso("people", "roles", "anna", "auditor", "operator", key=root).stdout
    refused = sayso("people", "roles", "anna", "boss", key=root)
    assert refused.returncode == 1
    assert "Roles are reviewer" in refused.stderr


def test_roles_are_saved_listed_and_deleted(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    saved = sayso("roles", "save", "refunds", "read_items", "decide", "--tool", "refund*", key=root)
    assert "The role refunds is saved: read_items, decide." in saved.stdout
    assert "refund*" in sayso("roles", "list", key=root).stdout
    assert "is deleted" in sayso("roles", "delete", "refunds", key=root).stdout


def test_people_manager_is_set_and_removed(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    assert "anna is managed by root." in sayso("people", "manager", "anna", "root", key=root).stdout
    assert "root" in sayso("people", "list", key=root).stdout.split("anna")[1].splitlines()[0]
    assert "cannot manage themselves" in sayso("people", "manager", "anna", "anna", key=root).stderr
    assert "anna is managed by nobody." in sayso("people", "manager", "anna", key=root).stdout


def test_key_is_created_with_its_owner(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    assert sayso("keys", "create", "crm", "--owner", "anna", key=desk[3]).stdout.startswith("sayso_agent_")
    listed = sayso("keys", "list", key=desk[3]).stdout
    assert "anna" in next(line for line in listed.splitlines() if "crm" in line)
    assert "to own the key" in sayso("keys", "create", "erp", "--owner", "nobody", key=desk[3]).stderr


def test_added_person_signs_in_with_the_printed_password(
    desk: tuple[str, str, str, str],  # noqa: F811
    sayso: Run,  # noqa: F811
) -> None:
    added = sayso("people", "add", "ben", "--auditor", key=desk[3])
    assert "ben is added. Until they change it, decisions with it count as yours, too." in added.stdout, added.stderr
    with Client(desk[0], "-") as client:
        opened = client.sign_in("ben", added.stdout.split()[-1])
    assert (opened.roles, opened.password_by) == (("reviewer", "auditor"), "root")
    assert "ben" in sayso("people", "add", "ben", key=desk[3]).stderr, "a name is given once"


def test_reset_password_replaces_the_earlier_one(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    reset = sayso("people", "reset-password", "anna", key=desk[3])
    assert "anna has a new password." in reset.stdout, reset.stderr
    with Client(desk[0], "-") as client:
        client.sign_in("anna", reset.stdout.split()[-1])
    assert "nobody" in sayso("people", "reset-password", "nobody", key=desk[3]).stderr
    assert sayso("people", "reset-password", "root").returncode == 1, "not for reviewers"
