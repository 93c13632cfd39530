"""Options of the MCP proxy: waiting, hints and the documented configuration."""

import json
from pathlib import Path

import pytest

from tests.frameworks.mcp.desks import Desk, open_client
from tests.pages import find_blocks, read_page
from tests.service.core.auth.signing import sign

pytestmark = pytest.mark.timeout(240)


def test_proxy_continues_a_repeated_call_after_its_timeout(desk: Desk) -> None:
    with open_client(desk, "--wait", "0", mode="legacy") as client:
        assert "Make the same call again" in client.read_error(client.pay("ann"))
        desk.decide("approve")
        assert client.read_result(client.pay("ann"))["is_error"] is False
    assert len(desk.effects()) == 1


def test_parked_call_survives_restarts_and_runs_once(desk: Desk) -> None:
    with open_client(desk, "--wait", "0") as client:
        parked = client.read_result(client.pay("ann", action="once"))
    assert parked["result_type"] == "input_required"
    desk.decide("approve")
    with open_client(desk, "--wait", "0") as client:
        for _ in range(2):
            again = client.read_result(client.pay("ann", action="once", state=parked["request_state"]))
            assert again["structured_content"] == {"sent": 7}
        other = client.read_error(client.pay("eve", action="once", state=parked["request_state"]))
        assert "belongs to another send_money call: args.to differs. It may have run." in other
    assert len(desk.effects()) == 1


def test_hints_count_only_with_trust_hints(desk: Desk) -> None:
    with open_client(desk) as client:
        client.request("call", tool="look_up", args={"what": "secret"})
        assert desk.decide("deny").items[0].tool.idempotent is False
    with open_client(desk, "--trust-hints") as client:
        client.request("call", tool="look_up", args={"what": "secret"})
        assert desk.decide("deny").items[0].tool.idempotent is True


def test_proxy_passes_the_token_of_the_person(desk: Desk, tmp_path: Path) -> None:
    token = tmp_path / "token"
    with open_client(desk, "--on-behalf-of", str(token)) as client:
        assert "The token in" in client.read_error(client.pay("ann"))
        for name in ("mara", "ines"):
            token.write_text(sign(sub=name) + "\n")
            number = client.pay("ann")
            who = desk.decide("approve").run.who
            assert client.read_result(number)["is_error"] is False
            assert who is not None
            assert who.person == name
        number = client.pay("ann", meta={"sayso/on-behalf-of": sign(sub="tom")})
        who = desk.decide("approve").run.who
        assert client.read_result(number)["is_error"] is False
        assert who is not None
        assert who.person == "tom"


@pytest.mark.parametrize("token", ["not.a.token", 7, sign(exp=-600)], ids=["no token", "no text", "expired"])
def test_proxy_refuses_a_call_with_a_false_token(desk: Desk, token: object) -> None:
    with open_client(desk) as client:
        error = client.read_error(client.pay("ann", meta={"sayso/on-behalf-of": token}))
    assert "token" in error
    assert (desk.waiting(), desk.effects()) == ([], [])


@pytest.mark.parametrize("page", ["frameworks", "start/coding-agents"])
def test_documented_configuration_works(desk: Desk, page: str) -> None:
    (written,) = find_blocks(read_page(page), "json")
    assert len(written.splitlines()) <= 15
    (server,) = json.loads(written)["mcpServers"].values()
    assert server["command"] == "sayso"
    options, behind = server["args"][1 : server["args"].index("--")], server["args"][server["args"].index("--") + 1 :]
    assert behind
    assert set(server["env"]) == {"SAYSO_URL", "SAYSO_KEY"}
    with open_client(desk, *options) as client:
        number = client.pay("ann")
        desk.decide("approve")
        assert client.read_result(number)["is_error"] is False
