"""Installations for journeys over channels: rules ask over them, and the demo's agent makes the calls."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from playwright.sync_api import Page, expect

from demo.agents import Effects
from demo.journeys import AGENT, REVIEWER
from demo.model import Turn, load_turns
from demo.stacks import Stack
from launch.stops import wait_until
from sayso.client import Client
from sayso.client.administration import change_password, create_contact_code
from sayso.client.requests import Request, new_key
from sayso.core.canonical_json import JsonObject
from sayso.wire.administration import ReviewerView
from sayso.wire.items import ItemView
from sayso.wire.suspensions import SuspensionView
from service.core.settings import CHECKOUT
from tests.browser import running_browser
from tests.journeys.stacks import PATIENCE_S, quick_stack

BANK, MAILS, _, HOTELS, TICKETS = load_turns()
"""What the agent can be asked for: a transfer, two mails, a stay with an open date, two concerts."""

FIRST_PASSWORD = "a password that an admin set"
PASSWORD = "a password of a journey"


@dataclass(frozen=True)
class ChannelDesk:
    """A running installation with a channel, and clients for its agent, its reviewers and `admin`."""

    stack: Stack
    channel: str
    agent: Client
    people: Mapping[str, Client]

    def create_code(self, person: str) -> str:
        """Return the code with which a person links an address in the channel."""
        return self.people[person].exchange(create_contact_code(self.channel)).code

    def ask(self, turn: Turn) -> SuspensionView:
        """Start a run of these calls, and return it once it waits for people."""
        run_id = self.agent.start_run(AGENT, turn.request, title="A journey", context={"channel": self.channel}).id

        def read() -> SuspensionView:
            return self.find(self.agent.find_run(run_id).suspension_id)

        assert wait_until(lambda: bool(read().items), PATIENCE_S)
        return read()

    def find(self, suspension_id: str) -> SuspensionView:
        """Return a suspension as reviewers see it now."""
        return self.people[REVIEWER].find(suspension_id)

    def await_delivery(self, asked: SuspensionView) -> tuple[ItemView, ...]:
        """Return the items once every card of each is sent."""

        def delivered() -> bool:
            return all({one.state for one in item.deliveries} == {"sent"} for item in self.find(asked.id).items)

        assert wait_until(delivered, PATIENCE_S), self.find(asked.id).items
        return self.find(asked.id).items

    def await_effects(self, asked: SuspensionView) -> list[tuple[str, JsonObject]]:
        """Return the calls that a worker executed for the run, once it has completed."""
        run = self.agent.await_run(asked.run.id, PATIENCE_S)
        assert run.status == "completed", run
        return [(one.tool, one.args) for one in Effects(self.stack.home).read() if one.run_id == run.id]


@contextmanager
def open_desk(
    folder: Path,
    channels: Mapping[str, JsonObject],
    rules: JsonObject,
    people: Sequence[str] = ("anna",),
    **environ: str,
) -> Iterator[ChannelDesk]:
    """Run a whole Sayso with these channels, rules and reviewers; the desk's channel is the first one."""
    files = {"SAYSO_CHANNELS": folder / "channels.yaml", "SAYSO_POLICY": folder / "policy.yaml"}
    files["SAYSO_CHANNELS"].write_text(yaml.safe_dump({"channels": {**channels}}))
    files["SAYSO_POLICY"].write_text(json.dumps(rules))
    settings = {**{name: str(file) for name, file in files.items()}, **environ}
    with ExitStack() as open_until_the_end:
        enter = open_until_the_end.enter_context
        stack = enter(quick_stack(folder / "home", **settings))
        admin = enter(Client(stack.url, "-"))
        admin.sign_in(REVIEWER, stack.admin_password)
        clients = {REVIEWER: admin}
        for name in people:
            body: JsonObject = {"name": name, "password": FIRST_PASSWORD}
            admin.exchange(Request("POST", "/api/v1/reviewers", ReviewerView, body=body, key=new_key()))
            clients[name] = enter(Client(stack.url, "-"))
            clients[name].sign_in(name, FIRST_PASSWORD)
            clients[name].exchange(change_password(FIRST_PASSWORD, PASSWORD))
            clients[name].sign_in(name, PASSWORD)
        yield ChannelDesk(stack, next(iter(channels)), enter(Client(stack.url, stack.agent_key)), clients)


def rules_over(*channels: str) -> JsonObject:
    """Return the demo's rules, asked over these channels; concert tickets need two approvals instead of haste."""
    rules: dict[str, Any] = yaml.safe_load((CHECKOUT / "demo" / "policy.yaml").read_text())
    concerts = next(rule for rule in rules["rules"] if rule["id"] == "concerts")
    concerts["terms"] = {"quorum": {"approve": 2}}
    return {**rules, "terms": {"channels": [*channels]}}


@contextmanager
def signed_in(url: str, name: str = "anna", **options: Any) -> Iterator[Page]:
    """Follow a link in a real browser and sign in; yields the page that it leads to."""
    expect.set_options(timeout=PATIENCE_S * 1000)
    with running_browser() as browser:
        page = browser.new_page(**options)
        page.goto(url)
        page.get_by_label("Name").fill(name)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_label("Password")).to_have_count(0)
        yield page
