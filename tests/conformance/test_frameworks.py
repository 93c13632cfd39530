"""Each framework's adapter suspends, exits, gets a message, resumes in another process and runs the call once."""

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

from tests.conformance.agents.workspaces import Workspace
from tests.conformance.conftest import CHECKOUT
from tests.conformance.desks import Desk, wait_until
from tests.conformance.receivers import free_port, served

pytestmark = pytest.mark.parametrize("framework", ["langgraph", "pydantic", "openai"])
REFUND = [{"order": "A-1", "amount": 20.5}]


@pytest.fixture
def workspace(tmp_path: Path, desk: Desk, certificate: tuple[Path, Path], framework: str) -> Workspace:
    """An agent with a receiver that Sayso has verified."""
    workspace = Workspace(
        folder=str(tmp_path),
        base_url=desk.base_url,
        tool=f"refund_{framework}_{uuid.uuid4().hex[:8]}",
        port=free_port(),
        certificate=str(certificate[0]),
        secret=new_secret(),
        registration_id=str(uuid.uuid4()),
    )
    workspace.save()
    delivery = {
        "type": "webhook",
        "url": f"https://localhost:{workspace.port}/aap",
        "registration_id": workspace.registration_id,
        "signing_secret": workspace.secret,
    }
    receiver = Receiver(secret=workspace.secret, registration_id=workspace.registration_id, resumers={})
    with served(receiver.asgi(), workspace.port, certificate[0]):
        created = desk.provision(instance_name=framework, delivery=delivery)
    workspace = replace(workspace, token=created["credential"]["token"])
    workspace.save()
    return workspace


@contextmanager
def serving(workspace: Workspace, framework: str) -> Iterator[None]:
    """Run the receiving process."""
    child = begin(workspace, framework, "serve")
    try:
        wait_until(lambda: True if listens(workspace.port) or child.poll() is not None else None)
        assert child.poll() is None
        yield
    finally:
        child.kill()
        child.wait()


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def begin(workspace: Workspace, framework: str, *args: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.conformance.agents", framework, workspace.folder, *args]
    return subprocess.Popen(command, cwd=CHECKOUT)


def run(workspace: Workspace, framework: str, mode: str) -> None:
    """Run the agent's process to its end."""
    assert begin(workspace, framework, "start", mode).wait(60) == 0


def post_again(workspace: Workspace, request_id: str, authority: Path) -> int:
    """Send the message once more, signed with the receiver's secret."""
    event = str(uuid.uuid4())
    body = json.dumps(
        {"id": event, "type": "request.resolved", "instance_id": "any", "request_id": request_id}
    ).encode()
    at_s = int(time.time())
    headers = {
        "webhook-id": event,
        "webhook-timestamp": str(at_s),
        "webhook-signature": sign(workspace.secret, event, at_s, body),
    }
    trust = ssl.create_default_context(cafile=str(authority))
    return httpx.post(
        f"https://localhost:{workspace.port}/aap", content=body, headers=headers, verify=trust
    ).status_code


def test_sync_run_waits_and_continues(framework: str, workspace: Workspace, desk: Desk) -> None:
    child = begin(workspace, framework, "start", "sync")
    desk.decide(workspace.tool, "approve")
    assert child.wait(60) == 0
    assert workspace.read_effects() == REFUND
    assert workspace.read_result() == "Result: done"


def test_suspended_run_resumes_once_despite_repeated_messages(
    framework: str, workspace: Workspace, desk: Desk, certificate: tuple[Path, Path]
) -> None:
    run(workspace, framework, "async")
    assert (workspace.read_effects(), workspace.read_result()) == ([], None)
    waiting = desk.waiting(workspace.tool)

    desk.decide(workspace.tool, "approve")
    with serving(workspace, framework):
        assert wait_until(workspace.read_result) == "Result: done"
        request_id = str(uuid.UUID(hex=waiting["id"].removeprefix("sus_")))
        assert [post_again(workspace, request_id, certificate[1]) for _ in range(3)] == [204, 204, 204]
        wait_until(lambda: True if workspace.path("resumes").read_text().split() == [request_id] * 4 else None)
    assert workspace.read_effects() == REFUND


def test_denial_reaches_the_model_and_nothing_runs(framework: str, workspace: Workspace, desk: Desk) -> None:
    run(workspace, framework, "async")
    with serving(workspace, framework):
        desk.decide(workspace.tool, "deny", "Never delivered")
        assert "Never delivered" in wait_until(workspace.read_result)
    assert workspace.read_effects() == []


def test_cancelled_request_does_not_run_the_call(framework: str, workspace: Workspace, desk: Desk) -> None:
    run(workspace, framework, "async")
    waiting = desk.waiting(workspace.tool)
    with serving(workspace, framework):
        desk.reviewer.post(f"/runs/{waiting['run']['id']}/cancel", json={}).raise_for_status()
        assert "cancelled" in wait_until(workspace.read_result)
    assert workspace.read_effects() == []


def test_expired_request_does_not_run_the_call(framework: str, workspace: Workspace) -> None:
    replace(workspace, timeout="3s").save()
    run(workspace, framework, "async")
    with serving(workspace, framework):
        assert "expired" in wait_until(workspace.read_result)
    assert workspace.read_effects() == []
