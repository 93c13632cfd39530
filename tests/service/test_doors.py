"""The same act has the same right at each door: API, page, and a channel's card. `tests/architecture` has the table."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest
from httpx import ASGITransport, AsyncClient

from sayso.core.clock import HOUR_MS, iso_utc
from service.core.settings import Settings
from service.edge.web.sessions import cookie_name
from tests.builders import make_person
from tests.service.edge.web.sites import OWN
from tests.service.worlds import World

RULES = """
version: 1
default: request_approval
rules:
  - {id: legal, tool: sue, action: request_approval, terms: {reviewers: [lena], extend_by_s: 86400}}
  - {id: shared, tool: share, action: request_approval, terms: {reviewers: [lena, root]}}
  - {id: choice, tool: pick, action: request_user_input, ask: {target_arg: court}, terms: {reviewers: [lena]}}
"""
DONE, REFUSED = {200, 201, 204, 303, 409}, {403}  # 409: the act is not possible now, but the person may do it


class Asked(NamedTuple):
    """A suspended call, as paths and forms name it."""

    suspension: str
    run: str
    digest: str
    until: int


class Act(NamedTuple):
    """A request to the API and a form of a page for one act, and who may do it and who may not."""

    may: str
    may_not: str
    request: Callable[[Asked], tuple[str, dict[str, Any]]]
    form: Callable[[Asked], tuple[str, dict[str, str]]]
    tool: str = "sue"


def item(asked: Asked, act: str = "") -> str:
    return f"suspensions/{asked.suspension}/items/i1/{act}"


def page(asked: Asked, act: str = "") -> str:
    return f"/items/{asked.suspension}/i1{act}"


def decision(action: str) -> Act:
    return Act(
        "lena",
        "anna",
        lambda asked: (item(asked, "decision"), {"action": action, "digest": asked.digest}),
        lambda asked: (page(asked), {"answer": action, "digest": asked.digest}),
    )


ACTS = {
    "approve": decision("approve"),
    "deny": decision("deny"),
    "answer": Act(
        "lena",
        "anna",
        lambda asked: (item(asked, "decision"), {"action": "value", "digest": asked.digest, "value": "Bonn"}),
        lambda asked: (page(asked), {"answer": "value", "digest": asked.digest, "v0": "Bonn"}),
        tool="pick",
    ),
    "ask the requester": Act(
        "lena",
        "anna",
        lambda asked: (item(asked, "inquiries"), {"text": "Why?"}),
        lambda asked: (page(asked), {"part": "ask", "text": "Why?"}),
    ),
    "extend": Act(
        "lena",
        "anna",
        lambda asked: (item(asked, "extend"), {"until": iso_utc(asked.until)}),
        lambda asked: (page(asked), {"until": str(asked.until)}),
    ),
    "claim": Act("lena", "anna", lambda asked: (item(asked, "claim"), {}), lambda asked: (page(asked, "/claim"), {})),
    "forward": Act(
        "lena",
        "anna",
        lambda asked: (item(asked, "forward"), {"to": "root", "digest": asked.digest}),
        lambda asked: (page(asked), {"part": "forward", "to": "root", "digest": asked.digest}),
        tool="share",
    ),
    "ask for a preview": Act(
        "lena",
        "anna",
        lambda asked: (item(asked, "preview"), {}),
        lambda asked: (page(asked, "/preview"), {}),
    ),
    "write to the agent": Act(
        "lena",
        "anna",
        lambda asked: (f"runs/{asked.run}/notes", {"text": "Use the other court."}),
        lambda asked: (f"/runs/{asked.run}/notes", {"text": "Use the other court."}),
    ),
    "cancel": Act(
        "lena",
        "anna",
        lambda asked: (f"runs/{asked.run}/cancel", {}),
        lambda asked: (f"/runs/{asked.run}/cancel", {"reason": ""}),
    ),
    "erase": Act(
        "root",
        "lena",
        lambda asked: (f"runs/{asked.run}/erase", {"reason": "Asked for"}),
        lambda asked: (f"/runs/{asked.run}/erase", {"reason": "Asked for"}),
    ),
    "freeze": Act(
        "root",
        "lena",
        lambda _: ("freezes", {"scope": "tool:sue", "reason": "Odd"}),
        lambda _: ("/operate", {"scope": "tool:sue", "reason": "Odd", "confirm": "tool:sue"}),
    ),
    "unfreeze": Act(
        "root",
        "lena",
        lambda _: ("freezes/tool:refund/unfreeze", {}),
        lambda _: ("/operate/tool:refund/unfreeze", {}),
    ),
    "add a person": Act(
        "root",
        "lena",
        lambda _: ("reviewers", {"name": "ben", "password": "correct horse battery", "roles": ["reviewer"]}),
        lambda _: ("/people", {"name": "ben"}),
    ),
    "set a password": Act(
        "root",
        "lena",
        lambda _: ("reviewers/anna/password", {"password": "another horse battery"}),
        lambda _: ("/people/anna", {"act": "password"}),
    ),
}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Any) -> Settings:
    (tmp_path / "policy.yaml").write_text(RULES)
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml")


async def ask(world: World, tool: str) -> Asked:
    """Let the agent ask about a call that lena decides, and freeze another tool."""
    world.tokens["lena"] = await make_person(world.wiring, "lena")
    body = {"mode": "poll", "calls": [{"tool": tool, "definition": {}}]}
    async with world.client("demo") as demo:
        made = (await demo.post("/api/v1/suspensions", json=body)).json()
    await world.wiring.freezes.freeze("tool:refund", "Odd", await world.wiring.reviewers.find_actor("root", "web"))
    record = (await world.wiring.desk.suspensions.read(made["id"])).record
    return Asked(record.id, record.run.id, record.items[0].digest, record.items[0].terms.deadline_at_ms + HOUR_MS)


async def send_request(world: World, who: str, act: Act, asked: Asked) -> int:
    path, body = act.request(asked)
    async with world.client(who) as client:
        return (await client.post(f"/api/v1/{path}", json=body)).status_code


async def send_form(world: World, who: str, act: Act, asked: Asked) -> int:
    path, fields = act.form(asked)
    cookies = {cookie_name(world.wiring.settings): world.tokens[who]}
    transport = ASGITransport(world.app)
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1:8321", cookies=cookies) as client:
        (csrf, *_) = re.findall(r'name="csrf" value="([^"]+)"', (await client.get("/me")).text)
        return (await client.post(path, data={"csrf": csrf, **fields}, headers=OWN)).status_code


@pytest.mark.parametrize("send", [send_request, send_form], ids=["API", "page"])
@pytest.mark.parametrize("name", ACTS)
async def test_act_needs_the_same_right_at_each_door(
    world: World, send: Callable[[World, str, Act, Asked], Awaitable[int]], name: str
) -> None:
    act = ACTS[name]
    asked = await ask(world, act.tool)
    assert await send(world, act.may_not, act, asked) in REFUSED
    assert await send(world, act.may, act, asked) in DONE
