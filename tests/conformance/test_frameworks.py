"""Each framework's own adapter through the whole of it: pause, exit, be told, resume in another process, run once."""

import json
import socket
import ssl
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from agentapprovalprotocol import Receiver
from agentapprovalprotocol.receiver import new_secret, sign

from tests.conformance.agents.places import Place
from tests.conformance.conftest import CHECKOUT
from tests.conformance.desks import Desk, wait_until
from tests.conformance.receivers import free_port, served

pytestmark = pytest.mark.parametrize("framework", ["langgraph", "pydantic", "openai"])
REFUND = [{"order": "A-1", "amount": 20.5}]


@pytest.fixture
def place(tmp_path: Path, desk: Desk, certificate: tuple[Path, Path], framework: str) -> Place:
    """An agent with a receiver that the desk has verified, told nothing yet."""
    place = Place(
        folder=str(tmp_path),
        base_url=desk.base_url,
        tool=f"refund_{framework}_{uuid.uuid4().hex[:8]}",
        port=free_port(),
        certificate=str(certificate[0]),
        secret=new_secret(),
        registration_id=str(uuid.uuid4()),
    )
    place.save()
    delivery = {
        "type": "webhook",
        "url": f"https://localhost:{place.port}/aap",
        "registration_id": place.registration_id,
        "signing_secret": place.secret,
    }
    receiver = Receiver(secret=place.secret, registration_id=place.registration_id, resumers={})
    with served(receiver.asgi(), place.port, certificate[0]):
        made = desk.provision(instance_name=framework, delivery=delivery)
    place = replace(place, token=made["credential"]["token"])
    place.save()
    return place


@contextmanager
def serving(place: Place, framework: str) -> Iterator[None]:
    """Run the process that receives."""
    child = begin(place, framework, "serve")
    try:
        wait_until(lambda: True if listens(place.port) or child.poll() is not None else None)
        assert child.poll() is None
        yield
    finally:
        child.kill()
        child.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def begin(place: Place, framework: str, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.conformance.agents", framework, place.folder, *words]
    return subprocess.Popen(command, cwd=CHECKOUT)


def run(place: Place, framework: str, mode: str) -> None:
    """Run the agent's own process to its end."""
    assert begin(place, framework, "start", mode).wait(60) == 0


def post_again(place: Place, request_id: str, authority: Path) -> int:
    """Tell the receiver once more, as somebody who knows its secret could."""
    event = str(uuid.uuid4())
    body = json.dumps(
        {"id": event, "type": "request.resolved", "instance_id": "any", "request_id": request_id}
    ).encode()
    at_s = int(time.time())
    headers = {
        "webhook-id": event,
        "webhook-timestamp": str(at_s),
        "webhook-signature": sign(place.secret, event, at_s, body),
    }
    trust = ssl.create_default_context(cafile=str(authority))
    return httpx.post(f"https://localhost:{place.port}/aap", content=body, headers=headers, verify=trust).status_code


def test_a_run_that_waits_goes_on_where_it_was(framework: str, place: Place, desk: Desk) -> None:
    child = begin(place, framework, "start", "sync")
    desk.decide(place.tool, "approve")
    assert child.wait(60) == 0
    assert place.effects() == REFUND
    assert place.ending() == "Result: done"


def test_a_paused_run_is_resumed_by_another_process_and_runs_once_however_often_it_is_told(
    framework: str, place: Place, desk: Desk, certificate: tuple[Path, Path]
) -> None:
    run(place, framework, "async")
    assert (place.effects(), place.ending()) == ([], None)
    waiting = desk.waiting(place.tool)

    desk.decide(place.tool, "approve")
    with serving(place, framework):
        assert wait_until(place.ending) == "Result: done"
        request_id = str(uuid.UUID(hex=waiting["id"].removeprefix("sus_")))
        assert [post_again(place, request_id, certificate[1]) for _ in range(3)] == [204, 204, 204]
        wait_until(lambda: True if place.path("resumes").read_text().split() == [request_id] * 4 else None)
    assert place.effects() == REFUND


def test_a_denial_is_told_to_the_model_and_nothing_runs(framework: str, place: Place, desk: Desk) -> None:
    run(place, framework, "async")
    with serving(place, framework):
        desk.decide(place.tool, "deny", "Never delivered")
        assert "Never delivered" in wait_until(place.ending)
    assert place.effects() == []


def test_a_run_whose_request_was_cancelled_does_not_run_the_call(framework: str, place: Place, desk: Desk) -> None:
    run(place, framework, "async")
    waiting = desk.waiting(place.tool)
    with serving(place, framework):
        desk.reviewer.post(f"/runs/{waiting['run']['id']}/cancel", json={}).raise_for_status()
        assert "cancelled" in wait_until(place.ending)
    assert place.effects() == []


def test_a_run_that_nobody_decides_in_time_does_not_run_the_call(framework: str, place: Place) -> None:
    replace(place, timeout="3s").save()
    run(place, framework, "async")
    with serving(place, framework):
        assert "expired" in wait_until(place.ending)
    assert place.effects() == []
