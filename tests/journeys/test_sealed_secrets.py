"""Canaries as secrets of every kind pass a whole desk; neither its store, logs and files nor its doors show one."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis

from demo.agents import FILE
from launch.stops import wait_until
from sayso.core.canonical_json import JsonObject
from sayso.core.key_files import create_key_file
from service.core.settings import socket_path, store_url_at
from tests.fakes.slack import FakeSlack, running_slack
from tests.fakes.smtp import MailServer, links_of, serving_mail
from tests.journeys.channels.desks import HOTELS, ChannelDesk, open_desk, rules_over
from tests.journeys.channels.test_mail import link_address
from tests.journeys.stacks import PATIENCE_S
from tests.service.channels.slack.worlds import NAME, fields_of

GIVEN, TYPED, BOT = "canary-given-5b1e7d", "8713-11-29", "xoxb-canary-1f44"
DEFINITION = {
    "description": "Sign in.",
    "parameters": {"type": "object", "properties": {"token": {"type": "string", "writeOnly": True}}},
}
TRUE_ARGUMENTS = re.compile(r"^/api/v1/(suspensions|runs)\b")
"""Where the API returns true arguments and results, to people and to who asked; no typed value is there."""


@dataclass
class Stage:
    """The desk, the providers around it, what its doors answered, and the canaries."""

    desk: ChannelDesk
    slack: FakeSlack
    mail: MailServer
    folder: Path
    canaries: dict[str, str] = field(default_factory=lambda: {"given": GIVEN, "typed": TYPED, "bot": BOT})
    answers: dict[str, str] = field(default_factory=dict)

    def send(self, method: str, path: str, who: str = "anna", **fields: Any) -> Any:
        """Send a request of a person, or of the agent; return the answer's JSON."""
        key = self.desk.stack.agent_key if who == "agent" else self.desk.people[who].key
        headers = {"Authorization": f"Bearer {key}", "Idempotency-Key": path.rpartition("/")[0] or path}
        answer = httpx.request(method, f"{self.desk.stack.url}/api/v1{path}", headers=headers, timeout=60, **fields)
        assert answer.is_success, answer.text
        return answer.json()

    def has_asked(self, suspension_id: str) -> bool:
        """Return whether Slack and anna's mails ask about a suspension."""
        mails = any(suspension_id in "".join(links_of(one)) for one in self.mail.mails)
        return mails and any(suspension_id in repr(one) for one in self.slack.messages)

    def find(self) -> list[str]:
        """Return each place that shows a canary where it may not."""
        places = [*self.answers.items(), *self.list_messages(), *self.list_files(), *self.list_values()]
        return sorted(
            f"{name}: {place}"
            for place, text in places
            for name, canary in self.canaries.items()
            if canary in text and not (name == "given" and TRUE_ARGUMENTS.match(place))
        )

    def list_messages(self) -> Iterator[tuple[str, str]]:
        yield from ((f"Slack {number}", repr(one)) for number, one in enumerate(self.slack.messages))
        yield from ((f"mail {number}", one.as_string()) for number, one in enumerate(self.mail.mails))

    def list_files(self) -> Iterator[tuple[str, str]]:
        """Yield every file of the home: logs, the append-only file and the dump; only the effects are the calls'."""
        for path in sorted(self.desk.stack.home.rglob("*")):
            if path.is_file() and path.name != FILE:
                yield str(path.relative_to(self.folder)), path.read_bytes().decode("latin-1")

    def list_values(self) -> Iterator[tuple[str, str]]:
        """Yield every key of the store with its value."""
        with self.open_store() as store:
            for name in store.scan_iter():
                yield f"key {name.decode()}", repr(read_value(store, name))

    def open_store(self) -> Redis:
        return Redis.from_url(store_url_at(socket_path(self.desk.stack.home)))


def read_value(store: Redis, name: bytes) -> Any:
    """Return the value of a key."""
    match store.type(name):
        case b"string":
            return store.get(name)
        case b"hash":
            return store.hgetall(name)
        case b"list":
            return store.lrange(name, 0, -1)
        case b"set":
            return store.smembers(name)
        case b"zset":
            return store.zrange(name, 0, -1)
        case _:
            return store.xrange(name)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A desk with a key file that asks in Slack and by mail, and checkpoints of its trails."""
    create_key_file(tmp_path / "keys")
    rules: Any = rules_over(NAME, "mail")
    hotels = next(rule for rule in rules["rules"] if rule["id"] == "hotels-in-new-york")
    hotels["ask"]["response_schema"] = {"type": "string", "format": "password"}
    environ = {"SAYSO_KEY_FILE": str(tmp_path / "keys"), "SAYSO_CHECKPOINTS": f"file://{tmp_path}/home/checkpoints"}
    with running_slack() as slack, serving_mail() as mail:
        slack.bot_tokens.add(BOT)
        server: JsonObject = {"kind": "mail", "sender": "desk@sayso.example", "host": "localhost", "port": mail.port}
        channels = {NAME: fields_of(slack, bot_token=BOT), "mail": {**server, "security": "none"}}
        with open_desk(tmp_path, channels, rules, SAYSO_AAP_ALLOW_LOOPBACK="true", **environ) as desk:
            link_address(desk, mail)
            yield Stage(desk, slack, mail, tmp_path)


def test_no_canary_is_in_store_logs_pages_messages_or_exports(stage: Stage) -> None:
    made = stage.send(
        "POST", "/webhooks/endpoints", "admin", json={"url": f"https://127.0.0.1:{stage.desk.stack.port}/nobody"}
    )
    stage.canaries["webhook"] = made["secret"]
    asked, typed = ask_for_token(stage), stage.desk.ask(HOTELS)
    for asking in (asked["id"], typed.id):
        assert wait_until(partial(stage.has_asked, asking), PATIENCE_S)
    crawl(stage, "while it waits")
    decide(stage, asked["id"], "approve")
    redeemed = stage.send("POST", f"/suspensions/{asked['id']}/items/i1/redeem", "agent", json={})
    assert redeemed["args"] == {"token": GIVEN}, "the executed call has the secret"
    report = {"success": True, "output": {"said": f"signed in with {GIVEN}"}}
    stage.send("POST", f"/suspensions/{asked['id']}/items/i1/outcome", "agent", json=report)
    decide(stage, typed.id, "value", value=TYPED)
    for run_id, secret in ((asked["run"]["id"], GIVEN), (typed.run.id, TYPED)):
        said = {"type": "tool_completed", "data": {"tool_name": "x", "output": f"It said {secret}."}}
        sent = {"source_format": "afk", "events": [{"seq": 1, "event": said}]}
        stage.send("POST", f"/runs/{run_id}/events", "agent", json=sent)
    effects = [args for tool, args in stage.desk.await_effects(typed) if tool == "hotel_booking.book"]
    assert TYPED in [args["check_out"] for args in effects], "the executed call has what was typed"
    crawl(stage, "after it ended")
    for run_id in (asked["run"]["id"], typed.run.id):
        stage.answers[f"evidence {run_id}"] = stage.send("GET", f"/evidence?run={run_id}", "admin")["text"]
    with stage.open_store() as store:
        store.config_set("rdbcompression", "no")
        store.save()
    files = " ".join(place for place, _ in stage.list_files())
    assert [name for name in ("dump.rdb", "incr.aof", "service.log", "checkpoints") if name not in files] == []
    assert len(stage.answers) > 500
    assert stage.find() == []


def ask_for_token(stage: Stage) -> Any:
    """Ask for a call whose argument its schema marks as secret."""
    call = {"tool": "log_in", "args": {"token": GIVEN}, "definition": DEFINITION}
    return stage.send("POST", "/suspensions", "agent", json={"mode": "poll", "calls": [call]})


def decide(stage: Stage, suspension_id: str, action: str, **fields: Any) -> None:
    """Decide each open item of a suspension as anna."""
    for item in stage.send("GET", f"/suspensions/{suspension_id}")["items"]:
        body = {"action": action, "digest": item["digest"], **fields}
        stage.send("POST", f"/suspensions/{suspension_id}/items/{item['item_id']}/decision", json=body)


def crawl(stage: Stage, when: str) -> None:
    """Read every page that a link leads to, as an admin, and every address of the API without parameters."""
    url = stage.desk.stack.url
    token = str(stage.desk.people["admin"].key)
    with httpx.Client(
        base_url=url, timeout=60, follow_redirects=True, cookies={f"sayso_session_{stage.desk.stack.port}": token}
    ) as client:
        paths, seen = ["/", "/history/export?format=csv", "/history/export?format=json"], set[str]()
        while paths:
            path = paths.pop()
            if path in seen or len(seen) > 400:
                continue
            seen.add(path)
            answer = client.get(path)
            stage.answers[f"{path} {when}"] = text = answer.text
            paths += [html.unescape(link) for link in re.findall(r'href="(/[^"#]*)', text) if "/static" not in link]
    assert "/history" in seen
    with httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {token}"}) as client:
        schema = client.get("/api/openapi.json").json()
        for path, verbs in schema["paths"].items():
            if "get" in verbs and "{" not in path and "stream" not in path:
                stage.answers[f"{path} {when}"] = client.get(path).text
