"""Asked by a signed event and decided by a signed sender, with the reference library on the other side."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from demo.journeys import REVIEWER
from launch.stops import wait_until
from sayso.client.channels import create_endpoint, create_sender, delete_endpoint, verify_endpoint
from sayso.core.clock import now_ms
from sayso.wire.channels import NewSenderView
from tests.journeys.channels.desks import BANK, ChannelDesk, signed_in
from tests.journeys.channels.offices import Office, check_dashboard, wanted, write_calls
from tests.journeys.stacks import PATIENCE_S
from tests.receivers import Receiver


@pytest.fixture
def secret(office: Office) -> Iterator[str]:
    """Register the receiver as a verified endpoint for all runs; return its secret."""
    admin = office.desk.people[REVIEWER]
    made = admin.exchange(create_endpoint(office.receiver.url, (), "hmac", "A journey"))
    assert admin.exchange(verify_endpoint(made.id)).state == "active"
    yield str(made.secret)
    admin.exchange(delete_endpoint(made.id))


@pytest.fixture
def sender(office: Office) -> NewSenderView:
    """A sender that decides in anna's name."""
    return office.desk.people[REVIEWER].exchange(create_sender("pager", "anna"))


def await_event(receiver: Receiver, secret: str, kind: str, run_id: str) -> dict[str, Any]:
    """Return the data of a run's event once it has arrived; its signature must be valid."""
    found: list[dict[str, Any]] = []

    def arrived() -> bool:
        events = [Webhook(secret).verify(body, headers) for headers, body in receiver.came]
        found[:] = [one["data"] for one in events if one["type"] == kind and one["data"]["run"]["id"] == run_id]
        return bool(found)

    assert wait_until(arrived, PATIENCE_S), receiver.came
    return found[0]


def send(desk: ChannelDesk, sender: NewSenderView, secret: str, body: dict[str, Any]) -> httpx.Response:
    """Send a decision with a signature by this secret."""
    raw, at = json.dumps(body), datetime.fromtimestamp(now_ms() // 1000, UTC)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(round(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("msg_1", at, raw),
    }
    return httpx.post(f"{desk.stack.url}{sender.path}", content=raw, headers=headers, timeout=PATIENCE_S)


def test_edit_of_a_signed_sender_is_executed(office: Office, secret: str, sender: NewSenderView) -> None:
    desk, receiver = office.over("webhook"), office.receiver
    asked = desk.ask(BANK)
    item = await_event(receiver, secret, "item.created", asked.run.id)["item"]
    assert (item["tool"], item["args"]) == (BANK.calls[0].name, BANK.calls[0].arguments)
    decision = {
        "suspension_id": item["suspension_id"],
        "item_id": item["id"],
        "action": "approve",
        "digest": item["digest"],
        "args": {**item["args"], "amount": 12.5},
    }
    assert send(desk, sender, secret, decision).status_code == 401, "the endpoint's secret is not the sender's"
    assert send(desk, sender, str(sender.secret), decision).json()["verdict"] == "approved"
    assert write_calls(desk.await_effects(asked)) == wanted(BANK, amount=12.5)
    outcome = await_event(receiver, secret, "item.decided", asked.run.id)["outcome"]
    assert (outcome["verdict"], outcome["by"], outcome["channel"]) == ("approved", "anna", "webhook")
    assert await_event(receiver, secret, "run.finished", asked.run.id)["status"] == "completed"
    with signed_in(desk.stack.url) as page:
        check_dashboard(page, desk, asked, "anna approved this with 1 change")
