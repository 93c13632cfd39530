"""`POST /policy/would` says what a request would get, and changes nothing."""

from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from service.core.settings import Settings
from tests.builders import make_person
from tests.service.core.auth.signing import row, sign, write_issuers
from tests.service.worlds import World, read_store

POLICY = """
version: 1
default: deny
rules:
  - {id: secret-limit, priority: 300, tool: refund, when: args.amount > 500, action: deny, reason: Hidden words.}
  - {id: within, priority: 200, tool: refund, action: allow, budget: {sum: args.amount, max: 100, per: 1h}}
  - {id: rest, tool: refund, action: request_approval, terms: {reviewers: [anna]}}
  - {id: whose, tool: pay, action: request_user_input, ask: {prompt: Whose account, target_arg: account}}
  - {id: mine, tool: post, action: defer, terms: {confirm_by: who.person}}
  - {id: read, tool: read_web, action: allow}
  - {id: tainted, priority: 200, tool: send, after: [read_web], action: request_approval}
  - {id: sent, tool: send, action: allow}
  - {id: payouts, tool: payout, action: request_approval, grants: {longest: 7d, count: 1, by: [args.customer]}}
  - {id: rated, tool: rate, action: allow, assess: {by: nobody, high: {}}}
  - {id: broken, tool: odd, when: args.amount > 5, action: allow}
"""
VERDICTS = {None: "ask", "denied": "deny", "approved": "allow", "answered": "allow"}
CASES = [
    ({"tool": "refund", "args": {"amount": 501}}, "deny"),
    ({"tool": "refund", "args": {"amount": 100}}, "allow"),
    ({"tool": "refund", "args": {"amount": 101}}, "ask"),
    ({"tool": "pay", "args": {"account": "x"}}, "ask"),
    ({"tool": "post", "args": {}}, "deny"),
    ({"tool": "send", "args": {}}, "ask"),
    ({"tool": "read_web", "args": {}}, "allow"),
    ({"tool": "rate", "args": {}}, "ask"),
    ({"tool": "odd", "args": {"amount": "many"}}, "ask"),
    ({"tool": "unknown", "args": {}}, "deny"),
]


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy, token_issuers=write_issuers(tmp_path, row()))


async def would(world: World, call: dict[str, Any], headers: dict[str, str] | None = None, **fields: Any) -> Response:
    body = {"mode": "poll", "call": {"definition": {}, **call}, **fields}
    async with world.client("demo") as demo:
        return await demo.post("/api/v1/policy/would", json=body, headers=headers or {})


async def ask(
    world: World, call: dict[str, Any], headers: dict[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    body = {"mode": "poll", "calls": [{"definition": {}, **call}], **fields}
    async with world.client("demo") as demo:
        answer = await demo.post("/api/v1/suspensions", json=body, headers=headers or {})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def both(world: World, call: dict[str, Any], **fields: Any) -> tuple[str, str]:
    """Return what would happen to a call, and what happens to it right after."""
    answer = await would(world, call, **fields)
    assert answer.status_code == 200, answer.text
    (item,) = (await ask(world, call, **fields))["items"]
    return answer.json()["verdict"], VERDICTS[item["outcome"] and item["outcome"]["verdict"]]


@pytest.mark.parametrize(("call", "verdict"), CASES)
async def test_would_is_the_verdict_of_a_request(world: World, call: dict[str, Any], verdict: str) -> None:
    assert await both(world, call) == (verdict, verdict)


async def test_would_knows_budgets_and_spends_none(world: World) -> None:
    call = {"tool": "refund", "args": {"amount": 60}}
    assert [(await would(world, call)).json()["verdict"] for _ in range(5)] == ["allow"] * 5
    assert await both(world, call) == ("allow", "allow")
    assert await both(world, call) == ("ask", "ask")


async def test_would_knows_what_ran_in_the_thread(world: World) -> None:
    send = {"tool": "send", "args": {}}
    assert await both(world, send, thread_id="t1") == ("allow", "allow")
    read = await ask(world, {"tool": "read_web", "args": {}}, thread_id="t1")
    async with world.client("demo") as demo:
        path, holder = f"/api/v1/suspensions/{read['id']}/items/i1", {"Idempotency-Key": "me"}
        assert (await demo.post(f"{path}/redeem", headers=holder)).status_code == 200
        assert (await demo.post(f"{path}/outcome", json={"success": True}, headers=holder)).status_code == 200
    assert await both(world, send, thread_id="t1") == ("ask", "ask")
    assert await both(world, send, thread_id="t2") == ("allow", "allow")


async def test_would_counts_no_turn_of_a_thread(world: World) -> None:
    for _ in range(3):
        await would(world, {"tool": "send", "args": {}}, thread_id="t1")
    assert (await ask(world, {"tool": "send", "args": {}}, thread_id="t1"))["step"] == 1


async def test_would_knows_grants_and_uses_none(world: World) -> None:
    call = {"tool": "payout", "args": {"customer": "C-1"}}
    asked = await ask(world, call)
    body = {"action": "approve", "digest": asked["items"][0]["digest"], "grant": {"for_s": 3600, "count": 1}}
    async with world.client("root") as root:
        decided = await root.post(f"/api/v1/suspensions/{asked['id']}/items/i1/decision", json=body)
    assert decided.status_code == 200, decided.text
    assert [(await would(world, call)).json()["verdict"] for _ in range(3)] == ["allow"] * 3
    assert await both(world, call) == ("allow", "allow")
    assert await both(world, call) == ("ask", "ask")


async def test_would_knows_the_person_for_whom_the_agent_acts(world: World) -> None:
    await make_person(world.wiring, "mara")
    call, header = {"tool": "post", "args": {}}, {"Sayso-On-Behalf-Of": sign(sub="Mara")}
    assert (await would(world, call, header)).json() == {"verdict": "ask"}
    assert (await ask(world, call, header))["items"][0]["outcome"] is None
    assert (await would(world, call)).json() == {"verdict": "deny"}


async def test_would_is_the_verdict_of_a_request_under_a_freeze(world: World) -> None:
    """A freeze stops starts, not judgements."""
    async with world.client("root") as root:
        await root.post("/api/v1/freezes", json={"scope": "all", "reason": "odd"})
    assert await both(world, {"tool": "read_web", "args": {}}) == ("allow", "allow")


async def test_would_saves_nothing_and_says_no_more_than_the_verdict(world: World, clean_store_url: str) -> None:
    before = await read_store(clean_store_url)
    for call, verdict in CASES:
        assert (await would(world, call)).json() == {"verdict": verdict}
        assert (await would(world, call, thread_id="t9")).json().keys() == {"verdict"}
    assert await read_store(clean_store_url) == before


async def test_would_of_a_registered_agent_needs_its_tools(world: World) -> None:
    async with world.client("demo") as demo:
        call = {"tool": "refund", "args": {"order": "A-1", "amount": 5}}
        path, body = "/api/v1/policy/would", {"agent": "demo", "call": call}
        assert (await demo.post(path, json=body)).json() == {"verdict": "allow"}
        unknown = await demo.post(path, json={**body, "call": {"tool": "transfer"}})
        assert (unknown.status_code, "has no tool 'transfer'" in unknown.json()["detail"]) == (422, True)
        misfit = await demo.post(path, json={**body, "call": {"tool": "refund", "args": {"order": 1}}})
        assert (misfit.status_code, "calls[0].args" in misfit.json()["detail"]) == (422, True)


async def test_would_counts_against_the_limit_of_requests(world: World) -> None:
    """So the rules cannot be mapped more cheaply than by asking."""
    intake = world.wiring.intake
    intake.limits = intake.limits.model_copy(update={"asks_per_minute_per_key": 3})
    answers = [await would(world, {"tool": "send", "args": {}}) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert "SAYSO_ASKS_PER_MINUTE_PER_KEY" in answers[-1].json()["detail"]
    assert int(answers[-1].headers["retry-after"]) > 0
    async with world.client("demo") as demo:
        refused = await demo.post(
            "/api/v1/suspensions", json={"mode": "poll", "calls": [{"tool": "send", "definition": {}}]}
        )
    assert refused.status_code == 429
