"""Calls through the MCP proxy that are cancelled, refused, fail or are in doubt."""

import subprocess

import pytest

from demo.stacks import find_ports
from service.core.settings import CHECKOUT
from tests.frameworks.mcp.desks import PATIENCE_S, PYTHON, Desk, open_client, running_http_server

pytestmark = pytest.mark.timeout(240)


def test_proxy_cancels_the_suspension_of_a_cancelled_call(desk: Desk) -> None:
    with open_client(desk) as client:
        number = client.pay("ann")
        waits = desk.await_suspension()
        client.send({"id": number, "action": "cancel"})
        assert desk.reviewer.await_run(waits.run.id, PATIENCE_S).status == "cancelled"
        assert client.read_result(client.request("list"))
    assert desk.effects() == []


def test_call_cancelled_while_running_is_in_doubt(desk: Desk) -> None:
    with open_client(desk) as client:
        number = client.pay("slow")
        waits = desk.decide("approve")
        while client.lines.get(timeout=PATIENCE_S)["progress"] != "half way":
            pass
        client.send({"id": number, "action": "cancel"})
        assert client.read_result(client.request("list"))
    (item,) = desk.reviewer.find(waits.id).items
    assert item.permit is not None
    assert item.permit.report is None
    assert len(desk.effects()) == 1


def test_call_is_in_doubt_if_the_server_dies(desk: Desk) -> None:
    with open_client(desk) as client:
        number = client.pay("die")
        waits = desk.decide("approve")
        assert "may have run" in client.read_error(number)
        assert "did not run" in client.read_error(client.pay("ann"))
    (item,) = desk.reviewer.find(waits.id).items
    assert item.permit is not None
    assert item.permit.report is None


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_call_is_in_doubt_if_an_http_server_dies(desk: Desk, mode: str) -> None:
    with running_http_server(desk) as server, open_client(desk, mode=mode, server=server) as client:
        number = client.pay("die")
        waits = desk.decide("approve")
        assert "may have run" in client.read_error(number)
    (item,) = desk.reviewer.find(waits.id).items
    assert item.permit is not None
    assert item.permit.report is None


def test_proxy_reports_a_failed_call(desk: Desk) -> None:
    with open_client(desk) as client:
        number = client.pay("nobody")
        waits = desk.decide("approve")
        assert client.read_error(number) == "no such person"
    permit = desk.reviewer.find(waits.id).items[0].permit
    assert permit is not None
    assert permit.report is not None
    assert (permit.report.success, permit.report.error) == (False, "no such person")


def test_call_is_in_doubt_after_an_ambiguous_error(desk: Desk) -> None:
    with open_client(desk) as client:
        number = client.pay("broke")
        desk.decide("approve")
        assert "returned no result of send_money (no money left). It may have run" in client.read_error(number)


def test_proxy_names_the_place_of_invalid_arguments(desk: Desk) -> None:
    with open_client(desk) as client:
        assert client.read_error(client.pay("ann", 10**4000)).startswith(
            "$.args.amount is an integer of more than 4000 d"
        )
    assert desk.effects() == []


def test_proxy_refuses_a_tool_with_an_invalid_name(desk: Desk) -> None:
    with open_client(desk, "--name", "my bank") as client:
        results = client.read_error(client.pay("ann"))
    assert results.startswith("The tool name 'my bank.send_money' has ' ' (U+0020) as character 3.")
    assert (desk.effects(), desk.waiting()) == ([], [])


def test_proxy_refuses_a_tool_that_changed_after_its_review(desk: Desk) -> None:
    with open_client(desk) as client:
        number = client.pay("ann")
        desk.await_suspension()
        (desk.home / "changed").touch()
        desk.decide("approve")
        assert "The server changed send_money" in client.read_error(number)
    assert desk.effects() == []


def test_proxy_runs_nothing_while_sayso_is_unavailable(desk: Desk) -> None:
    with open_client(desk, SAYSO_URL=f"http://127.0.0.1:{find_ports()}") as client:
        assert "cannot be reached" in client.read_error(client.request("call", tool="look_up", args={"what": "x"}))
    assert desk.effects() == []


@pytest.mark.parametrize("server", [["--", "false"], ["--", "cat"], ["--url", "http://127.0.0.1:9/mcp"]])
def test_proxy_reports_a_missing_server(desk: Desk, server: list[str]) -> None:
    command = [PYTHON, "-m", "sayso", "mcp", *server]
    done = subprocess.run(
        command, cwd=CHECKOUT, env=desk.environ(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("The MCP server is unreachable")


def test_proxy_runs_nothing_without_a_key(desk: Desk) -> None:
    with open_client(desk, SAYSO_KEY="wrong") as client:
        assert "SAYSO_KEY" in client.read_error(client.pay("ann"))
    assert desk.effects() == []
