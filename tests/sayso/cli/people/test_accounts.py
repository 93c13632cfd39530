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
