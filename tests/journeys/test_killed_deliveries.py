"""The process that delivers webhooks is killed while messages are under way: each arrives, always under one id."""

import json
from pathlib import Path
from typing import Any

from starlette.responses import Response

from demo.journeys import REVIEWER
from launch.stops import wait_until
from sayso.client import Client
from sayso.client.channels import create_endpoint, verify_endpoint
from sayso.core.canonical_json import JsonObject
from tests.journeys.stacks import PATIENCE_S, kill, quick_stack
from tests.receivers import Receiver, echo

MESSAGES, KILLED_AT = 40, (5, 15, 25)


def test_every_webhook_arrives_although_its_sender_is_killed(tmp_path: Path, receiver: Receiver) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\ndefault: request_approval\nrules: []\n")
    with (
        quick_stack(tmp_path / "home", SAYSO_AAP_ALLOW_LOOPBACK="true", SAYSO_POLICY=str(policy)) as stack,
        Client(stack.url, stack.agent_key) as agent,
        Client(stack.url) as reviewer,
    ):
        reviewer.sign_in(REVIEWER, stack.admin_password)
        endpoint = reviewer.exchange(create_endpoint(receiver.url, ("item.created",), "hmac", "A journey"))
        assert reviewer.exchange(verify_endpoint(endpoint.id)).state == "active"
        receiver.came.clear()

        def kill_before_some_answers(message: dict[str, Any]) -> Response:
            if len(receiver.came) in KILLED_AT:
                assert kill(stack, "clock")
            return echo(message)

        receiver.say = kill_before_some_answers
        call: JsonObject = {"tool": "pay", "args": {"amount": 10}, "definition": {}}
        asked = {agent.suspend({"mode": "poll", "calls": [call]}).id for _ in range(MESSAGES)}
        assert wait_until(lambda: read_arrivals(receiver).keys() >= asked, 2 * PATIENCE_S)
    arrived = read_arrivals(receiver)
    assert {suspension_id: len(ids) for suspension_id, ids in arrived.items()} == dict.fromkeys(asked, 1)
    assert len(receiver.came) >= MESSAGES + len(KILLED_AT), "a killed attempt is made again"


def read_arrivals(receiver: Receiver) -> dict[str, set[str]]:
    """Return the ids of the messages that came, by the suspension that they name."""
    arrivals: dict[str, set[str]] = {}
    for headers, body in tuple(receiver.came):
        named = json.loads(body)["data"]["item"]["suspension_id"]
        arrivals.setdefault(named, set()).add(headers["webhook-id"])
    return arrivals
