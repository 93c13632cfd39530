"""Mandates over HTTP: proposed by an agent, approved by a person, listed and ended."""

from pathlib import Path
from typing import Any

import pytest

from service.core.settings import Settings
from tests.builders import make_person
from tests.service.worlds import World

POLICY = """
version: 1
default: request_approval
rules:
  - id: payouts
    tool: payout
    action: request_approval
    mandates: {longest: 8h, count: 5, sum: {of: args.amount, max: 1000}, by: args.customer}
  - id: pages
    tool: fetch
    action: request_approval
    mandates: {longest: 8h}
  - id: reads
    tool: "read_*"
    action: allow
  - id: secrets
    tool: login
    action: request_approval
    mandates: {longest: 8h}
    terms: {secrets: [password]}
  - id: never
    tool: drop
    action: deny
"""
PAYOUT = {"tool": "payout", "equal": {"args.customer": "C-77"}, "sum": {"of": "args.amount", "max": 300}}
READ = {"tool": "read_file", "within": {"args.path": "/srv/in/"}}
FETCH = {"tool": "fetch", "hosts": {"args.url": ["*.example.com"]}, "count": 2}


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(redis_url=clean_store_url, policy=policy)


def plan(*tools: dict[str, Any], **fields: Any) -> dict[str, Any]:
    defined = [{"definition": {}, **one} for one in tools or (PAYOUT, READ, FETCH)]
    return {"thread_id": "t1", "title": "Pay", "for_s": 3600, "count": 5, "tools": defined, **fields}


async def put(client: Any, tool: str, args: dict[str, Any], thread: str = "t1") -> str:
    call = {"tool": tool, "args": args, "definition": {}}
    body = {"mode": "poll", "calls": [call], "thread_id": thread}
    outcome = (await client.post("/api/v1/suspensions", json=body)).json()["items"][0]["outcome"]
    return outcome["verdict"] if outcome is not None else "asked"


async def decide(client: Any, mandate: dict[str, Any], action: str = "approve") -> Any:
    place = f"/api/v1/suspensions/{mandate['suspension_id']}"
    digest = (await client.get(place)).json()["items"][0]["digest"]
    return await client.post(f"{place}/items/i1/decision", json={"action": action, "digest": digest})


async def test_plan_is_proposed_approved_listed_and_ended(world: World) -> None:
    world.tokens["ben"] = await make_person(world.wiring, "ben")
    async with world.client("demo") as demo, world.client("other") as other, world.client("ben") as ben:
        response = await demo.post("/api/v1/mandates", json=plan())
        proposed = response.json()
        assert (response.status_code, proposed["state"]) == (201, "proposed")
        assert response.headers["location"] == f"/api/v1/mandates/{proposed['id']}"
        assert proposed["sentences"] == [
            'payout with customer "C-77" and any amount, up to 300 amount in sum',
            'read_file with path within "/srv/in"',
            'fetch with url at "*.example.com", up to 2 times',
            "Together at most 5 calls, for 1 h from the approval.",
            "Every other call of this conversation is asked about, even if the rules would allow it.",
        ]
        (await decide(ben, proposed)).raise_for_status()
        made = (await demo.get(response.headers["location"])).json()
        assert (made["state"], made["approved_by"], made["calls"]) == ("in_force", ["ben"], 0)
        assert await put(demo, "payout", {"customer": "C-77", "amount": 200}) == "approved"
        assert await put(demo, "payout", {"customer": "C-77", "amount": 101}) == "asked"
        assert await put(demo, "fetch", {"url": "https://a.example.com/x"}) == "approved"
        assert await put(demo, "fetch", {"url": "https://example.org/x"}) == "asked"
        assert await put(demo, "read_file", {"path": "/srv/in/a.txt"}) == "approved"
        assert await put(demo, "read_file", {"path": "/srv/in/../b.txt"}) == "asked"
        assert (await other.get("/api/v1/mandates")).json() == {"mandates": []}
        assert (await other.get(response.headers["location"])).status_code == 404
        (listed,) = (await ben.get("/api/v1/mandates")).json()["mandates"]
        assert (listed["id"], listed["calls"], listed["void"]) == (made["id"], 3, False)
        ended = (await demo.post(f"/api/v1/mandates/{made['id']}/revoke")).json()
        assert (ended["state"], ended["revoked_by"]) == ("revoked", "demo")
        assert await put(demo, "read_file", {"path": "/etc/passwd"}) == "approved", "the rules as they are"


async def test_plan_is_denied_or_withdrawn(world: World) -> None:
    async with world.client("demo") as demo, world.client("root") as root:
        denied, withdrawn = [(await demo.post("/api/v1/mandates", json=plan())).json() for _ in range(2)]
        await decide(root, denied, "deny")
        assert (await demo.get(f"/api/v1/mandates/{denied['id']}?wait=1s")).json()["state"] == "denied"
        assert (await root.post(f"/api/v1/mandates/{withdrawn['id']}/revoke")).status_code == 409
        gone = (await demo.post(f"/api/v1/mandates/{withdrawn['id']}/revoke")).json()
        assert gone["state"] == "withdrawn"
        assert (await demo.post(f"/api/v1/mandates/{denied['id']}/revoke")).status_code == 404


async def test_mandate_without_a_thread_begins_a_conversation(world: World) -> None:
    async with world.client("demo") as demo, world.client("root") as root:
        proposed = (await demo.post("/api/v1/mandates", json=plan(FETCH, thread_id=None))).json()
        await decide(root, proposed)
        thread = proposed["thread_id"]
        assert await put(demo, "fetch", {"url": "https://a.example.com"}, thread) == "approved"
        assert await put(demo, "fetch", {"url": "https://a.example.com"}) == "asked"


@pytest.mark.parametrize(
    ("tools", "fields", "says"),
    [
        ([{"tool": "drop", "free": ["args"]}], {}, "no rule lets a mandate cover calls of drop"),
        ([{"tool": "other"}], {}, "no rule lets a mandate cover calls of other"),
        ([{**PAYOUT, "equal": {}, "free": ["args.customer"]}], {}, "only with its args.customer named"),
        ([{**PAYOUT, "sum": None}], {}, "only with a sum"),
        ([{**PAYOUT, "sum": {"of": "args.amount"}}], {}, "at most 1,000 of args.amount in sum, not any amount"),
        ([{**PAYOUT, "sum": {"of": "args.amount", "max": 1001}}], {}, "not 1,001"),
        ([PAYOUT], {"count": 6}, "at most 5 calls, not 6"),
        ([PAYOUT], {"for_s": 8 * 3600 + 1}, "at most 28800 s"),
        ([{"tool": "login", "equal": {"args.password": "x"}}], {}, "args.password of login is secret"),
        ([{"tool": "fetch", "hosts": {"args.url": ["Example.com"]}}], {}, "not a host in lower case"),
        ([{"tool": "read_file", "within": {"args.path": "in"}}], {}, "begin it with /"),
        ([{"tool": "fetch", "equal": {"args.url": "a"}, "free": ["args.url"]}], {}, "args.url has two limits"),
        ([{"tool": "fetch", "equal": {"args.a.b": 1}, "free": ["args.a"]}], {}, "args.a.b is a part of args.a"),
        ([FETCH], {"sum": 5}, "sum limits nothing"),
        ([FETCH], {"agent": "unknown"}, "Workers register their tools"),
        ([{**FETCH, "definition": None}], {}, "the agent has no tool 'fetch'"),
        ([{**FETCH, "equal": {"args.body": "x" * 21_000}}], {}, "too long to read"),
        ([FETCH], {"run_id": "run_x"}, "There is no run 'run_x'"),
    ],
)
async def test_plan_that_rules_do_not_permit_is_refused(
    world: World, tools: list[dict[str, Any]], fields: dict[str, Any], says: str
) -> None:
    async with world.client("demo") as demo:
        refused = await demo.post("/api/v1/mandates", json=plan(*tools, **fields))
        assert refused.status_code in (404, 422), refused.text
        assert says in refused.text


async def test_a_plan_longer_than_a_person_reads_is_refused_before_work(world: World) -> None:
    limits = {f"args.a{number}": "x" * 200 for number in range(20)}
    tools = [{"tool": "fetch", "definition": {}, "equal": limits}] * 50
    async with world.client("demo") as demo:
        refused = await demo.post("/api/v1/mandates", json=plan(*tools))
        assert refused.status_code == 422
        assert "plan is too long to read: the limit is 20,000 characters" in refused.text
        large = {"description": "x" * 100_000}
        proposed = await demo.post("/api/v1/mandates", json=plan({**FETCH, "definition": {"parameters": large}}))
        assert proposed.status_code == 201
