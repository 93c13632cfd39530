"""Gated functions as routes of FastAPI and commands of Typer."""

import asyncio
from typing import Annotated, Any

import httpx
import pytest
import typer
from fastapi import Depends, FastAPI, Request
from fastapi.testclient import TestClient
from pydantic import BaseModel
from typer.testing import CliRunner

from sayso import Denied, gate
from sayso.errors import InvalidInput
from sayso.testing import InProcessDesk
from tests.frameworks.decorators.gates import BeatingDesk


class Payment(BaseModel):
    """The body of a request."""

    to: str
    amount: float


def find_user(request: Request) -> str:
    """Return the person who is signed in."""
    return request.headers["x-user"]


User = Annotated[str, Depends(find_user)]


def build_app(desk: InProcessDesk, ran: list[Any]) -> FastAPI:
    """Return an app whose routes are gated."""
    app = FastAPI()

    @app.post("/pay")
    @gate(client=desk.client(), quiet=True)
    def pay(payment: Payment, user: User) -> str:
        ran.append((payment.to, user))
        return f"paid {payment.amount:g} to {payment.to}"

    @app.post("/mail/{to}")
    @gate(client=desk.async_client(), quiet=True)
    async def mail(to: str, request: Request, copies: int = 1) -> dict[str, Any]:
        ran.append((to, request.headers["x-user"]))
        return {"to": to, "copies": copies}

    return app


def test_gated_route_of_fastapi_is_asked_about_and_run(desk: InProcessDesk) -> None:
    ran: list[Any] = []
    http = TestClient(build_app(desk, ran), headers={"x-user": "ann"})
    desk.reviewer.approves()
    assert http.post("/pay", json={"to": "bob", "amount": 5}).json() == "paid 5 to bob"
    assert http.post("/mail/cid?copies=2").json() == {"to": "cid", "copies": 2}
    assert ran == [("bob", "ann"), ("cid", "ann")]
    first, second = desk.records.values()
    assert first.items[0].tool.args == {"payment": {"to": "bob", "amount": 5.0}}
    assert second.items[0].tool.args == {"to": "cid", "copies": 2}


@pytest.mark.parametrize(("path", "name"), [("/pay", "pay"), ("/mail/cid", "mail")])
def test_denied_route_of_fastapi_does_not_run(desk: InProcessDesk, path: str, name: str) -> None:
    ran: list[Any] = []
    http = TestClient(build_app(desk, ran), headers={"x-user": "ann"})
    desk.reviewer.denies(name)
    with pytest.raises(Denied):
        http.post(path, json={"to": "bob", "amount": 5})
    assert ran == []


async def test_plain_route_of_fastapi_that_waits_lets_the_event_loop_run() -> None:
    desk, ran = BeatingDesk(), list[Any]()
    desk.reviewer.approves("pay")
    transport = httpx.ASGITransport(build_app(desk, ran))
    async with httpx.AsyncClient(transport=transport, base_url="http://bank.test") as http, desk.watch():
        paid = await http.post("/pay", json={"to": "bob", "amount": 5}, headers={"x-user": "ann"})
    assert paid.json() == "paid 5 to bob"
    assert ran == [("bob", "ann")]
    assert desk.loop_runs is True


@pytest.mark.parametrize("name", ["FastAPI", "Typer"])
def test_gate_above_the_decorator_of_a_web_framework_is_refused(name: str) -> None:
    routes, commands = FastAPI(), typer.Typer()

    def pay(to: str) -> str:
        return to

    async def pay_later(to: str) -> str:
        return to

    for function in (pay, pay_later, staticmethod(pay)):
        with pytest.raises(InvalidInput, match=rf"is registered with {name} already.* Put @gate directly above"):
            gate(routes.post("/pay")(function) if name == "FastAPI" else commands.command()(function))


@pytest.mark.parametrize("verdict", ["approves", "denies"])
def test_gated_coroutine_function_within_a_command_of_typer(desk: InProcessDesk, verdict: str) -> None:
    app = typer.Typer()

    @gate(client=desk.async_client(), quiet=True)
    async def deploy(version: str) -> None:
        typer.echo(f"deployed {version}")

    @app.command()
    def ship(version: str) -> None:
        asyncio.run(deploy(version))

    getattr(desk.reviewer, verdict)("deploy")
    done = CliRunner().invoke(app, ["1.2"])
    assert done.output == ("deployed 1.2\n" if verdict == "approves" else "")
    assert isinstance(done.exception, Denied) is (verdict == "denies")


@pytest.mark.parametrize("verdict", ["approves", "denies"])
def test_gated_command_of_typer_runs_only_if_approved(desk: InProcessDesk, verdict: str) -> None:
    app = typer.Typer()

    @app.command()
    @gate(client=desk.client(), quiet=True)
    def deploy(ctx: typer.Context, version: Annotated[str, typer.Argument()], force: bool = False) -> None:
        typer.echo(f"deployed {version} {force} as {ctx.info_name}")

    getattr(desk.reviewer, verdict)("deploy")
    done = CliRunner().invoke(app, ["1.2", "--force"], prog_name="ship")
    assert done.output == ("deployed 1.2 True as ship\n" if verdict == "approves" else "")
    assert isinstance(done.exception, Denied) is (verdict == "denies")
    (record,) = desk.records.values()
    assert record.items[0].tool.args == {"version": "1.2", "force": True}


def test_gated_function_takes_an_injected_value_by_position(desk: InProcessDesk) -> None:
    @gate(client=desk.client(), quiet=True)
    def mail(request: Request, /, to: str) -> str:
        return f"{request.method} {to}"

    desk.reviewer.approves("mail")
    assert mail(Request({"type": "http", "method": "GET"}), "ann") == "GET ann"
    (record,) = desk.records.values()
    assert record.items[0].tool.args == {"to": "ann"}


def test_gate_refuses_injected_values_without_names_of_their_own(desk: InProcessDesk) -> None:
    def mail(*requests: Request, to: str) -> str:
        return f"{len(requests)} {to}"

    with pytest.raises(InvalidInput, match=r"'\*requests' of tool mail cannot be given by name"):
        gate(client=desk.client())(mail)
