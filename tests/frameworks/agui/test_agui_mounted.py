"""The AG-UI proxy within another ASGI app, and headers that are sent to the agent."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI

from sayso.adapters.agui import AgUiOptions, make_app
from sayso.client import AsyncClient
from sayso.core.clock import new_id
from tests.fakes.serving import serving
from tests.frameworks.agui.chats import Chat, Setup, read_error
from tests.frameworks.mcp.desks import Desk

pytestmark = pytest.mark.timeout(240)

KEY = {"AGENT_KEY": "secret"}
AUTHORIZATION = "Authorization: Bearer secret"


@pytest.fixture
def closed(desk: Desk) -> Iterator[Setup]:
    """An agent that serves nobody without its key, behind a proxy that has it."""
    with Setup(desk, "pydantic_ai", KEY, ("--name", "bank", "--header", AUTHORIZATION)) as started:
        yield started


def test_mounted_proxy_holds_calls(closed: Setup) -> None:
    headers = dict([AUTHORIZATION.split(": ")])
    client = AsyncClient(closed.desk.stack.url, closed.desk.stack.agent_key)
    outer = FastAPI()
    outer.mount("/agents/bank", make_app(closed.agent_url, AgUiOptions("bank"), desk=client, headers=headers))
    with serving(outer) as url:
        chat = Chat(f"{url}/agents/bank/", new_id("thread"))
        chat.ask(("ann", 5))
        assert closed.desk.decide("approve").items[0].tool.name == "bank.send_money"
        chat.resume()
    assert closed.desk.effects() == [{"to": "ann", "amount": 5}]


def test_agent_gets_the_headers_of_the_command(closed: Setup) -> None:
    chat = closed.ask(("ann", 5))
    closed.desk.decide("approve")
    chat.resume()
    assert closed.desk.effects() == [{"to": "ann", "amount": 5}]


def test_agent_that_wants_a_key_refuses_a_proxy_without_one(desk: Desk) -> None:
    with Setup(desk, "pydantic_ai", KEY) as setup:
        assert "The agent answered 401" in read_error(setup.chat().ask(("ann", 5)))
