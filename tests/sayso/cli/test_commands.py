"""The command line as a program: output, exit status and error messages."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue
from redis import Redis

from launch.stops import wait_until
from sayso.client import Client, requests
from sayso.client.permits import GatedCall, obtain_permit
from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolDefinition
from sayso.errors import NotAuthenticated, Suspended
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from tests.builders import PASSWORD, make_agent, make_person
from tests.sayso.cli.programs import Programs
from tests.service.damages import tear
from tests.service.servers import served

POLICY = """
version: 1
default: request_approval
rules:
  - {id: logins, tool: login, action: request_approval, terms: {secrets: [order]}}
  - {id: twos, tool: wipe, action: request_approval, terms: {quorum: {approve: 2}}}
  - {id: undos, tool: lend, action: request_approval, terms: {undo: 60s}}
  - {id: codes, tool: ask, action: request_user_input, ask: {target_arg: code}}
  - {id: picks, tool: pick, action: request_user_input, ask: {target_arg: code, choices: ["123456", "2"]}}
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def desk(clean_store_url: str, tmp_path: Path) -> Iterator[tuple[str, str, str, str]]:
    """The URL of a running desk, an agent's key, a reviewer's token and an admin's token."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    settings = Settings(redis_url=clean_store_url, policy=policy, pending_per_key=1_000)

    async def prepare() -> tuple[str, str, str]:
        async with assemble(settings) as wiring:
            anna = await make_person(wiring, "anna")
            return await make_agent(wiring, "bot"), anna, await make_person(wiring, "root", "reviewer", "admin")

    with served(settings) as url:
        yield (url, *asyncio.run(prepare()))


@pytest.fixture
def sayso(desk: tuple[str, str, str, str], programs: Programs, tmp_path: Path) -> Run:
    """Run the command line with a credential."""

    def run(
        *words: str, key: str | None = desk[2], url: str | None = desk[0], typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        given = {"SAYSO_URL": url, "SAYSO_KEY": key, "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        return programs.run(words, {name: value for name, value in given.items() if value is not None}, typed)

    return run


def ask(desk: tuple[str, str, str, str], *tools: str) -> str:
    calls = [{"tool": tool, "args": {"order": "A-1"}, "definition": {}} for tool in tools or ("refund",)]
    with Client(desk[0], desk[1]) as agent:
        return agent.suspend({"mode": "poll", "calls": calls}).id  # type: ignore[dict-item]


def test_secrets_are_masked_unless_they_run(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk, "login", "login")
    for words in (("show", waiting), ("show", waiting, "--json"), ("inbox", "--once"), ("inbox", "--json")):
        shown = sayso(*words).stdout
        assert "[secret]" in shown
        assert "A-1" not in shown
    assert "--secrets shows them" in sayso("show", waiting).stdout
    assert "A-1" in sayso("show", waiting, "--secrets").stdout
    assert "A-1" in sayso("show", waiting, "--secrets", "--json").stdout
    assert "A-1" not in sayso("deny", waiting, "--item", "i1", "--yes").stdout
    assert "A-1" in sayso("approve", waiting, "--item", "i2", "--yes").stdout


def test_approve_with_other_arguments(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    assert waiting[-6:] in sayso("inbox").stdout
    done = sayso("approve", waiting, "--args", '{"order": "A-2"}', "--yes")
    assert done.returncode == 0, done.stderr
    assert "refund: approved." in done.stdout
    with Client(desk[0], desk[1]) as agent:
        outcome = agent.find(waiting).items[0].outcome
    assert outcome is not None
    assert (outcome.args, outcome.by.id) == ({"order": "A-2"}, "anna")


@pytest.mark.parametrize(("tool", "text"), [("ask", '"type": "string"'), ("pick", '"123456"\n"2"\n')])
def test_answer_sends_digits_as_text_when_text_is_requested(
    desk: tuple[str, str, str, str], sayso: Run, tool: str, text: str
) -> None:
    parameters: JsonValue = {"properties": {"code": {"type": "string"}}}
    call: JsonValue = {"tool": tool, "args": {}, "definition": {"parameters": parameters}}
    with Client(desk[0], desk[1]) as agent:
        waiting = agent.suspend({"mode": "poll", "calls": [call]}).id
        shown = sayso("show", waiting).stdout
        done = sayso("answer", waiting, "123456", "--yes")
        outcome = agent.find(waiting).items[0].outcome
    assert "the value fills code" in shown
    assert text in shown
    assert outcome is not None, done.stderr
    assert outcome.value == "123456"


def test_answer_accepts_a_negative_number(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    assert "asks for approval, not for a value" in sayso("answer", waiting, "-5", "--yes").stderr
    assert "There is no option --forever." in sayso("answer", waiting, "--forever", "--yes").stderr
    assert sayso("deny", waiting, "-5").stderr == "No such option: -5. See --help.\n"


def test_inbox_lists_more_items_than_one_page(desk: tuple[str, str, str, str], sayso: Run) -> None:
    body: JsonObject = {"mode": "poll", "calls": [{"tool": "refund", "args": {}, "definition": {}}]}
    with Client(desk[0], desk[1]) as agent:
        ids = [agent.suspend(body).id for _ in range(201)]
    listed = sayso("inbox", "--once").stdout
    assert [id_ for id_ in ids if id_[-6:] not in listed] == []
    assert sayso("show", ids[-1][4:30]).returncode == 0


def test_show_flags_a_name_that_resembles_one_in_a_rule(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk, "P1ck")
    assert "This tool name resembles pick in the rules but is not the same." in sayso("show", waiting).stdout
    with Client(desk[0], desk[1]) as agent:
        assert agent.find(waiting).items[0].resembles == ("pick",)


def test_approve_after_another_decision(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    assert sayso("deny", waiting, "-m", "no", "-y").returncode == 0
    late = sayso("approve", waiting, "-y")
    assert (late.returncode, late.stdout) == (1, "")
    assert "has no open item" in late.stderr


def test_approve_requires_an_item_when_several_wait(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk, "refund", "mail")
    assert "Choose one with --item" in sayso("approve", waiting, "-y").stderr
    assert "mail: approved." in sayso("approve", waiting, "--item", "i2", "-y").stdout


def test_approve_requires_yes_without_a_terminal(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    refused = sayso("approve", waiting)
    assert (refused.returncode, "Give --yes" in refused.stderr) == (1, True)
    with Client(desk[0], desk[1]) as agent:
        assert agent.find(waiting).pending


def test_events_stop_at_an_altered_event(desk: tuple[str, str, str, str], sayso: Run, clean_store_url: str) -> None:
    with Client(desk[0], desk[1]) as agent:
        run_id = agent.find(ask(desk)).run.id
    assert sayso("events", run_id).returncode == 0
    with Redis.from_url(clean_store_url) as store:
        trail = TenantKeys(TENANT).trail(run_id)
        judged = store.lindex(trail, 1).decode()
        store.lset(trail, 1, judged.replace("request_approval", "allow"))
    done = sayso("events", run_id)
    assert (done.returncode, "Event 2 does not follow" in done.stderr) == (1, True)
    assert "run_paused" not in done.stdout


@pytest.mark.parametrize("deleted", [False, True], ids=["cut", "deleted"])
def test_events_detect_a_cut_trail(
    desk: tuple[str, str, str, str], sayso: Run, clean_store_url: str, deleted: bool
) -> None:
    with Client(desk[0], desk[1]) as agent:
        run_id = agent.find(ask(desk)).run.id
    with Redis.from_url(clean_store_url) as store:
        trail = TenantKeys(TENANT).trail(run_id)
        store.delete(trail) if deleted else store.rpop(trail)
    done = sayso("events", run_id)
    assert (done.returncode, "run's record names event 3" in " ".join(done.stderr.split())) == (1, True)


def test_inbox_lists_unreadable_suspensions(desk: tuple[str, str, str, str], sayso: Run, clean_store_url: str) -> None:
    broken, whole = ask(desk), ask(desk)
    tear(clean_store_url, broken)
    shown = sayso("inbox", "--once").stdout
    assert f"{broken} cannot be read" in shown
    assert whole[-6:] in shown


def test_keys_create_rotate_and_revoke(desk: tuple[str, str, str, str], sayso: Run) -> None:
    root = desk[3]
    for kind, name in (("provisioner", "fleet"), ("agent", "new-bot"), ("reviewer", "root")):
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
    assert sayso("keys", "list", key=desk[1]).returncode == 1
    assert "new-bot" not in sayso("keys", "list", key=desk[2]).stdout  # nobody sees keys of others
    assert "Only anna can make" in sayso("keys", "create", "anna", "--kind", "reviewer", key=root).stderr


def fails(call: Callable[[], object]) -> bool:
    try:
        call()
    except NotAuthenticated:
        return True
    return False


def test_login_is_saved_until_logout(sayso: Run, tmp_path: Path) -> None:
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


def test_policy_check_by_the_desk(sayso: Run, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("version: 1\ndefault: deny\nrules: []\n")
    bad.write_text("version: 1\ndefault: perhaps\n")
    assert sayso("policy", "check", str(good)).returncode == 0
    done = sayso("policy", "check", str(bad))
    assert (done.returncode, "bad.yaml:2" in done.stdout) == (1, True)
    dead = "rules: [{id: a, action: deny}, {id: b, action: allow}]"
    good.write_text(f"version: 1\ndefault: deny\n{dead}\n")
    warned = sayso("policy", "check", str(good))
    assert (warned.returncode, "warning: rule b: never decides" in warned.stdout) == (0, True)


def test_doctor_reports_failures_and_fixes(sayso: Run) -> None:
    done = sayso("doctor")
    assert done.returncode == 1, "no worker runs in this test"
    for part in ("server", "store", "durability", "time", "clock", "workers", "limits", "rules", "channels"):
        assert part in done.stdout
    assert "python -m workers" in done.stdout
    assert "Secrets lie in the store in clear. SAYSO_KEY_FILE encrypts them." in " ".join(done.stdout.split())
    away = sayso("doctor", url="http://127.0.0.1:9")
    assert (away.returncode, "Start it with `make up`" in away.stdout) == (1, True)


def test_approve_without_an_id(sayso: Run) -> None:
    assert sayso("approve").returncode == 2
    assert "Missing argument" in sayso("approve").stderr


def test_freeze_requires_confirmation_for_an_unknown_name(desk: tuple[str, str, str, str], sayso: Run) -> None:
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
    assert "`sayso unfreeze tool:payout`" in made.stdout
    unknown = sayso("unfreeze", "tool:payot", key=desk[3])
    assert (unknown.returncode, "There is no freeze 'tool:payot' in force." in unknown.stderr) == (1, True)
    ended = sayso("unfreeze", "tool:payout", key=desk[3])
    assert "tool:payout is no longer frozen." in ended.stdout
    assert sayso("freeze", "tool:payot", "--confirm", key=desk[3]).returncode == 0


def test_freeze_shows_in_inbox_show_and_the_waiting_line(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk, "payout")
    assert "is frozen" not in sayso("inbox", "--once").stdout
    assert sayso("freeze", "tool:payout", "-m", "Wrong\namounts", key=desk[3]).returncode == 0
    for words in (("inbox", "--once"), ("show", waiting)):
        shown = sayso(*words).stdout
        assert "tool:payout is frozen by root since" in shown
        assert "Wrong amounts" in shown
    assert json.loads(sayso("show", waiting, "--json").stdout)["items"][0]["freeze"]["by"] == "root"
    lines: list[str] = []
    call = GatedCall(ToolDefinition(name="payout"), {}, "one", notify=lines.append, wait_s=0.1)
    with Client(desk[0], desk[1]) as agent, pytest.raises(Suspended, match="tool:payout is frozen by root"):
        agent.run(obtain_permit(agent.retry_policy, call))
    (line,) = lines
    assert "; tool:payout is frozen by root since 20" in line
    assert line.endswith(": Wrong amounts")
    assert sayso("unfreeze", "tool:payout", key=desk[3]).returncode == 0
    assert "is frozen" not in sayso("show", waiting).stdout


def test_show_marks_a_failed_call(desk: tuple[str, str, str, str], sayso: Run) -> None:
    waiting = ask(desk)
    assert sayso("approve", waiting, "--yes").returncode == 0
    with Client(desk[0], desk[1]) as agent:
        agent.exchange(requests.redeem(waiting, "i1", "once", 60))
        agent.exchange(requests.report_outcome(waiting, "i1", "once", False, None, "payment provider answered 502"))
    shown = sayso("show", waiting).stdout
    assert "failed; anna approved this" in shown
    assert "payment provider answered 502" in shown
    assert "call failed" in sayso("runs").stdout
    assert "completed" not in sayso("runs").stdout


def test_erased_run_is_shown_and_its_trail_still_verifies(
    desk: tuple[str, str, str, str], sayso: Run, clean_store_url: str
) -> None:
    suspension = ask(desk)
    with Client(desk[0], desk[1]) as agent:
        run_id = agent.find(suspension).run.id
    waiting = sayso("erase", run_id, "-m", "Ticket 4711", key=desk[3])
    assert (waiting.returncode, "has not ended" in waiting.stderr) == (1, True)
    assert sayso("run", "cancel", run_id, key=desk[3]).returncode == 0
    refused = sayso("erase", run_id, "-m", "Ticket 4711")
    assert (refused.returncode, "admin" in refused.stderr) == (1, True)
    erased = sayso("erase", run_id, "-m", "Ticket 4711", key=desk[3])
    assert (erased.returncode, "were erased by root" in " ".join(erased.stdout.split())) == (0, True)
    assert "contents were erased by root" in " ".join(sayso("run", "show", run_id).stdout.split())
    assert "contents were erased by root" in " ".join(sayso("show", suspension).stdout.split())
    events = sayso("events", run_id)
    assert (events.returncode, "contents_erased" in events.stdout, "(contents erased by 5)" in events.stdout) == (
        0,
        True,
        True,
    )
    with Redis.from_url(clean_store_url) as store:
        trail = TenantKeys(TENANT).trail(run_id)
        judged = store.lindex(trail, 1).decode()
        store.lset(trail, 1, judged.replace("request_approval", "allow"))
    done = sayso("events", run_id)
    assert (done.returncode, "one of them was altered" in " ".join(done.stderr.split())) == (1, True)
