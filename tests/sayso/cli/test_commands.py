"""The command line as a program: what it prints, what it returns, and what it says when something is wrong."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue
from redis import Redis

from launch.waits import wait_until
from sayso.canonical_json import JsonObject
from sayso.client import Client, requests
from sayso.errors import NotAuthenticated
from service.auth.credentials import TENANT
from service.settings import CHECKOUT, Settings
from service.store.keys import TenantKeys
from service.wiring import assemble
from tests.builders import PASSWORD, make_agent, make_person
from tests.service.damages import tear
from tests.service.servers import served

POLICY = """
version: 1
default: request_approval
rules:
  - {id: codes, tool: ask, action: request_user_input, ask: {target_arg: code}}
  - {id: picks, tool: pick, action: request_user_input, ask: {target_arg: code, choices: ["123456", "2"]}}
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def desk(clean_store_url: str, tmp_path: Path) -> Iterator[tuple[str, str, str, str]]:
    """A running desk's address, an agent's key, a reviewer's token and an admin's."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    settings = Settings(redis_url=clean_store_url, policy=policy, pending_per_key=1_000)

    async def furnish() -> tuple[str, str, str]:
        async with assemble(settings) as wiring:
            anna = await make_person(wiring, "anna")
            return await make_agent(wiring, "bot"), anna, await make_person(wiring, "root", "reviewer", "admin")

    with served(settings) as url:
        yield (url, *asyncio.run(furnish()))


@pytest.fixture
def sayso(desk: tuple[str, str, str, str], tmp_path: Path) -> Run:
    """Run the command line with somebody's credential."""

    def run(
        *words: str, key: str | None = desk[2], url: str | None = desk[0], typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        given = {"SAYSO_URL": url, "SAYSO_KEY": key, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        environ = {name: value for name, value in given.items() if value is not None}
        command = [sys.executable, "-m", "sayso", *words]
        return subprocess.run(
            command, cwd=CHECKOUT, env=environ, input=typed, capture_output=True, text=True, check=False
        )

    return run


def ask(desk: tuple[str, str, str, str], *tools: str) -> str:
    calls = [{"tool": tool, "args": {"order": "A-1"}, "definition": {}} for tool in tools or ("refund",)]
    with Client(desk[0], desk[1]) as agent:
        return agent.suspend({"mode": "poll", "calls": calls}).id  # type: ignore[dict-item]


def test_a_call_is_approved_with_other_arguments(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    assert waiting in sayso("inbox").stdout
    done = sayso("approve", waiting, "--args", '{"order": "A-2"}', "--yes")
    assert done.returncode == 0, done.stderr
    assert "refund: approved." in done.stdout
    with Client(desk[0], desk[1]) as agent:
        outcome = agent.find(waiting).items[0].outcome
    assert outcome is not None
    assert (outcome.args, outcome.by.id) == ({"order": "A-2"}, "anna")


@pytest.mark.parametrize(("tool", "told"), [("ask", '"type": "string"'), ("pick", '"123456"\n"2"\n')])
def test_digits_are_text_where_text_is_asked_for(
    desk: tuple[str, str, str, str], sayso: Run, tool: str, told: str
) -> None:
    parameters: JsonValue = {"properties": {"code": {"type": "string"}}}
    call: JsonValue = {"tool": tool, "args": {}, "definition": {"parameters": parameters}}
    with Client(desk[0], desk[1]) as agent:
        waiting = agent.suspend({"mode": "poll", "calls": [call]}).id
        shown = sayso("show", waiting).stdout
        done = sayso("answer", waiting, "123456", "--yes")
        outcome = agent.find(waiting).items[0].outcome
    assert "goes into code" in shown
    assert told in shown
    assert outcome is not None, done.stderr
    assert outcome.value == "123456"


def test_a_number_below_zero_is_an_answer_and_no_option(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    assert "asks for approval, not for a value" in sayso("answer", waiting, "-5", "--yes").stderr
    assert "There is no option --forever." in sayso("answer", waiting, "--forever", "--yes").stderr
    assert sayso("deny", waiting, "-5").stderr == "No such option: -5. See --help.\n"


def test_all_that_waits_is_listed_and_found_however_much_it_is(desk: tuple[str, str, str, str], sayso: Run) -> None:
    body: JsonObject = {"mode": "poll", "calls": [{"tool": "refund", "args": {}, "definition": {}}]}
    with Client(desk[0], desk[1]) as agent:
        asked = [agent.suspend(body).id for _ in range(201)]
    listed = sayso("inbox", "--once").stdout
    assert [one for one in asked if one not in listed] == []
    assert sayso("show", asked[-1][4:30]).returncode == 0


def test_a_name_that_looks_like_one_in_a_rule_is_flagged_on_the_terminal(
    desk: tuple[str, str, str, str], sayso: Run
) -> None:
    waiting = ask(desk, "P1ck")
    assert "This tool name resembles pick in the rules but is not the same." in sayso("show", waiting).stdout
    with Client(desk[0], desk[1]) as agent:
        assert agent.find(waiting).items[0].resembles == ("pick",)


def test_whoever_comes_second_is_told_who_was_first(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    assert sayso("deny", waiting, "-m", "no", "-y").returncode == 0
    late = sayso("approve", waiting, "-y")
    assert (late.returncode, late.stdout) == (1, "")
    assert "has no open item" in late.stderr


def test_of_several_items_one_is_named(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk, "refund", "mail")
    assert "Choose one with --item" in sayso("approve", waiting, "-y").stderr
    assert "mail: approved." in sayso("approve", waiting, "--item", "i2", "-y").stdout


def test_nothing_is_decided_where_nobody_can_be_asked_once_more(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    refused = sayso("approve", waiting)
    assert (refused.returncode, "Give --yes" in refused.stderr) == (1, True)
    with Client(desk[0], desk[1]) as agent:
        assert agent.find(waiting).pending


def test_events_are_shown_up_to_the_one_that_was_altered(
    desk: tuple[str, str, str, str], sayso: Run, clean_store_url: str
) -> None:
    with Client(desk[0], desk[1]) as agent:
        run_id = agent.find(ask(desk)).run.id
    assert sayso("events", run_id).returncode == 0
    with Redis.from_url(clean_store_url) as store:
        trail = TenantKeys(TENANT).trail(run_id)
        judged = store.lindex(trail, 1).decode()  # type: ignore[union-attr]
        store.lset(trail, 1, judged.replace("request_approval", "allow"))
    told = sayso("events", run_id)
    assert (told.returncode, "Event 2 does not follow" in told.stderr) == (1, True)
    assert "run_paused" not in told.stdout


@pytest.mark.parametrize("deleted", [False, True], ids=["cut", "deleted"])
def test_events_of_a_trail_that_was_cut_are_not_whole(
    desk: tuple[str, str, str, str], sayso: Run, clean_store_url: str, deleted: bool
) -> None:
    with Client(desk[0], desk[1]) as agent:
        run_id = agent.find(ask(desk)).run.id
    with Redis.from_url(clean_store_url) as store:
        trail = TenantKeys(TENANT).trail(run_id)
        store.delete(trail) if deleted else store.rpop(trail)
    told = sayso("events", run_id)
    assert (told.returncode, "run's record names event 3" in " ".join(told.stderr.split())) == (1, True)


def test_the_inbox_names_what_cannot_be_read(desk: tuple[str, str, str, str], sayso: Run, clean_store_url: str) -> None:
    broken, whole = ask(desk), ask(desk)
    tear(clean_store_url, broken)
    shown = sayso("inbox", "--once").stdout
    assert f"{broken} cannot be read" in shown
    assert whole in shown


def test_keys_are_provisioned_rotated_and_revoked_from_the_shell(desk: tuple[str, str, str, str], sayso: Run) -> None:
    root = desk[3]
    for kind, name in (("provisioner", "fleet"), ("agent", "new-bot"), ("reviewer", "anna")):
        made = sayso("keys", "create", name, "--kind", kind, key=root)
        assert made.stdout.startswith(f"sayso_{kind}_"), made.stderr
        assert len(made.stdout.split()) == 1
    agent = sayso("keys", "create", "late-bot", key=root)
    key_id, first = agent.stderr.split(":")[0], agent.stdout.strip()
    second = sayso("keys", "rotate", key_id, "--overlap-s", "600", key=root).stdout.strip()
    for key in (first, second):
        assert sayso("runs", key=key).returncode == 0
    assert "expires " in sayso("keys", "list", key=root).stdout
    assert "is revoked" in sayso("keys", "revoke", key_id, key=root).stdout
    with Client(desk[0], first) as client:
        assert wait_until(lambda: fails(client.runs), 2), "a revoked key fails"
    assert sayso("keys", "list", key=desk[2]).returncode == 1


def fails(call: Callable[[], object]) -> bool:
    try:
        call()
    except NotAuthenticated:
        return True
    return False


def test_a_person_signs_in_once_for_many_commands(sayso: Run, tmp_path: Path) -> None:
    assert "Run `sayso login`" in sayso("inbox", key=None).stderr
    done = sayso("login", "--name", "anna", key=None, typed=f"{PASSWORD}\n")
    assert done.returncode == 0, done.stderr
    kept = tmp_path / ".config" / "sayso" / "login.json"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert json.loads(kept.read_text())["name"] == "anna"
    assert PASSWORD not in kept.read_text()
    assert sayso("inbox", key=None, url=None).returncode == 0
    assert "Nobody is signed in at http://elsewhere" in sayso("inbox", key=None, url="http://elsewhere.test").stderr
    sayso("logout", key=None)
    assert sayso("inbox", key=None).returncode == 1


def test_the_rules_in_a_file_are_checked_by_the_desk(sayso: Run, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("version: 1\ndefault: deny\nrules: []\n")
    bad.write_text("version: 1\ndefault: perhaps\n")
    assert sayso("policy", "check", str(good)).returncode == 0
    told = sayso("policy", "check", str(bad))
    assert (told.returncode, "bad.yaml:2" in told.stdout) == (1, True)
    dead = "rules: [{id: a, action: deny}, {id: b, action: allow}]"
    good.write_text(f"version: 1\ndefault: deny\n{dead}\n")
    warned = sayso("policy", "check", str(good))
    assert (warned.returncode, "warning: rule b: never decides" in warned.stdout) == (0, True)


def test_the_doctor_says_what_does_not_work_and_what_to_do(sayso: Run) -> None:
    told = sayso("doctor")
    assert told.returncode == 1, "no worker runs in this test"
    for part in ("server", "store", "durability", "time", "clock", "workers", "limits", "rules", "channels"):
        assert part in told.stdout
    assert "python -m workers" in told.stdout
    away = sayso("doctor", url="http://127.0.0.1:9")
    assert (away.returncode, "Start it with `make up`" in away.stdout) == (1, True)


def test_a_wrong_command_says_how_it_goes(sayso: Run) -> None:
    assert sayso("approve").returncode == 2
    assert "Missing argument" in sayso("approve").stderr


def test_a_name_that_nobody_knows_is_frozen_only_when_confirmed(desk: tuple[str, str, str, str], sayso: Run) -> None:
    ask(desk, "payout")
    refused = sayso("freeze", "tool:payot", key=desk[3])
    assert refused.returncode == 1
    assert "No tool 'payot' was seen here" in refused.stderr
    assert "Near it: payout." in refused.stderr
    assert "--confirm" in refused.stderr
    assert "Nothing is frozen." in sayso("freezes").stdout
    made = sayso("freeze", "tool:payout", "-m", "Wrong amounts", key=desk[3])
    assert made.returncode == 0, made.stderr
    assert "tool:payout" in sayso("freezes").stdout
    gone = sayso("unfreeze", made.stdout.split("`")[1].rsplit(" ", 1)[1], key=desk[3])
    assert "tool:payout is no longer frozen." in gone.stdout
    assert sayso("freeze", "tool:payot", "--confirm", key=desk[3]).returncode == 0


def test_a_failed_call_is_shown_as_failed(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    assert sayso("approve", waiting, "--yes").returncode == 0
    with Client(desk[0], desk[1]) as agent:
        agent.exchange(requests.redeem(waiting, "i1", "once", 60))
        agent.exchange(requests.report_outcome(waiting, "i1", "once", False, None, "payment provider answered 502"))
    told = sayso("show", waiting).stdout
    assert "failed; anna approved this" in told
    assert "payment provider answered 502" in told
    assert "call failed" in sayso("runs").stdout
    assert "completed" not in sayso("runs").stdout
