"""JSON output and sign-in without a terminal."""

import json
from pathlib import Path
from typing import Any

import pytest

from sayso.client import Client
from tests.builders import PASSWORD
from tests.sayso.cli.test_commands import Run, ask, desk, sayso  # noqa: F401

Desk = tuple[str, str, str, str]
HIDDEN = "\x1b[2J\u202e"


def read(sayso: Run, *words: str, **given: Any) -> Any:  # noqa: F811
    """Return the JSON that a command prints."""
    done = sayso(*words, "--json", **given)
    assert done.stderr == "", done.stderr
    return json.loads(done.stdout)


def test_inbox_and_show_print_json(desk: Desk, sayso: Run) -> None:  # noqa: F811
    waiting = ask(desk, "refund", "mail")
    (listed,) = read(sayso, "inbox")
    assert (listed["id"], [item["tool"]["name"] for item in listed["items"]]) == (waiting, ["refund", "mail"])
    shown = read(sayso, "show", waiting)
    assert shown["items"][0]["tool"]["args"] == {"order": "A-1"}
    assert read(sayso, "inbox", "--once")[0]["id"] == waiting


def test_runs_and_events_print_json(desk: Desk, sayso: Run) -> None:  # noqa: F811
    with Client(desk[0], desk[1]) as agent:
        run_id = agent.find(ask(desk)).run.id
    assert [one["id"] for one in read(sayso, "runs")] == [run_id]
    assert read(sayso, "run", "show", run_id)["status"] == "suspended"
    assert read(sayso, "run", "show", run_id[-6:])["id"] == run_id
    lines = sayso("events", run_id, "--json").stdout.splitlines()
    assert [json.loads(line)["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert read(sayso, "run", "cancel", run_id)["status"] == "cancelled"


def test_keys_and_freezes_print_json(desk: Desk, sayso: Run) -> None:  # noqa: F811
    assert [one["name"] for one in read(sayso, "keys", "list", key=desk[3])] == ["bot"]
    assert read(sayso, "freezes") == []
    assert sayso("freeze", "all", "-m", "fire", key=desk[3]).returncode == 0
    assert [(one["scope"], one["reason"]) for one in read(sayso, "freezes")] == [("all", "fire")]


def test_people_and_sessions_print_json(desk: Desk, sayso: Run) -> None:  # noqa: F811
    assert [one["name"] for one in read(sayso, "people", "list", key=desk[3])] == ["anna", "root"]
    (own,) = read(sayso, "sessions", "list")
    assert own["current"] is True
    assert read(sayso, "people", "sessions", "anna", key=desk[3])[0]["id"] == own["id"]


def test_doctor_with_json_keeps_its_status(sayso: Run) -> None:  # noqa: F811
    done = sayso("doctor", "--json")
    found = {one["part"]: one for one in json.loads(done.stdout)}
    assert (done.returncode, found["server"]["ok"], found["workers"]["ok"]) == (1, True, False)
    assert "python -m workers" in found["workers"]["todo"]


def test_json_escapes_control_characters(desk: Desk, sayso: Run) -> None:  # noqa: F811
    ask(desk)
    call: Any = {"tool": "mail", "args": {"text": HIDDEN}, "definition": {}}
    with Client(desk[0], desk[1]) as agent:
        waiting = agent.suspend({"mode": "poll", "calls": [call]}).id
    printed = sayso("show", waiting, "--json").stdout
    assert printed.isascii()
    assert "\x1b" not in printed
    assert json.loads(printed)["items"][0]["tool"]["args"] == {"text": HIDDEN}


def test_run_show_prints_errors_as_text_with_json(sayso: Run) -> None:  # noqa: F811
    done = sayso("run", "show", "run_none", "--json")
    assert (done.returncode, done.stdout, "run_none" in done.stderr) == (1, "", True)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_login_with_a_piped_password(sayso: Run, end: str) -> None:  # noqa: F811
    done = sayso("login", "--name", "anna", "--password-stdin", key=None, typed=f"{PASSWORD}{end}")
    assert (done.returncode, done.stderr) == (0, "")
    assert sayso("inbox", key=None).returncode == 0


@pytest.mark.parametrize(
    ("words", "typed", "message"),
    [
        (("--name", "anna"), "", "Standard input has no password"),
        ((), PASSWORD, "requires --name and excludes --key"),
        (("--name", "anna", "--key"), PASSWORD, "requires --name and excludes --key"),
    ],
)
def test_login_refuses_a_piped_password_without_name_or_text(
    sayso: Run,  # noqa: F811
    words: tuple[str, ...],
    typed: str,
    message: str,
) -> None:
    done = sayso("login", *words, "--password-stdin", key=None, typed=typed)
    assert (done.returncode, message in done.stderr) == (1, True), done.stderr


def test_policy_check_asks_the_desk_after_the_local_check(sayso: Run, tmp_path: Path) -> None:  # noqa: F811
    """Only the desk can check reviewers."""
    file = tmp_path / "rules.yaml"
    rule = "{id: a, tool: pay, action: request_approval, terms: {reviewers: [nobody]}}"
    file.write_text(f"version: 1\ndefault: deny\nrules: [{rule}]\n")
    result = read(sayso, "policy", "check", str(file))
    assert "there is no reviewer 'nobody'" in result["warnings"][0]
    assert read(sayso, "policy", "check", str(file), "--offline")["warnings"] == []
