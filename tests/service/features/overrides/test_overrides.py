"""Edits and denials as JSON lines: each once, masked for its reader, and an agent's alone."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from redis import Redis
from redis.asyncio import Redis as AsyncRedis

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import DecisionRequest
from sayso.core.text.redaction import MASK
from service.core.settings import Settings
from service.features.overrides.store import DecidedIndex
from tests.builders import finish, make_pending, person, store_of
from tests.service.damages import KEYS, tear
from tests.service.edge.api.test_execution import DEFINITION, ask, decide, post
from tests.service.features.archive.runs import archive, keep, list_files
from tests.service.worlds import World

SECRET, TYPED = "hunter2-tr0mbone", "correct-horse-9"
POLICY = """
version: 1
default: request_approval
rules:
  - {id: never, tool: wipe, action: deny}
  - {id: large, tool: pay, priority: 200, when: args.amount > 100, action: request_approval}
  - {id: small, tool: pay, action: request_approval}
  - {id: hidden, tool: log_in, action: request_approval, terms: {secrets: [password]}}
"""


@pytest.fixture
def settings(request: pytest.FixtureRequest, clean_store_url: str, tmp_path: Path) -> Settings:
    (tmp_path / "policy.yaml").write_text(POLICY)
    archive = f"file://{tmp_path}/archive"
    return Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml", archive=archive)


async def put(world: World, tool: str, args: JsonObject, **fields: Any) -> dict[str, Any]:
    call = {"tool": tool, "args": args, "definition": {**DEFINITION, "parameters": {"type": "object"}}}
    asked: dict[str, Any] = (await ask(world, call, **fields)).json()
    return asked


async def read(world: World, who: str = "root", day: str = "") -> list[dict[str, Any]]:
    async with world.client(who) as client:
        answer = await client.get("/api/v1/overrides", params={"day": day} if day else {})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/jsonl")
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_edit_is_a_line_with_its_difference(world: World) -> None:
    args: JsonObject = {"amount": 5, "to": "A", "note": "x"}
    edited = {"amount": 4, "to": "A"}
    asked = await put(world, "pay", args, tags=["shop"])
    await decide(world, asked, args=edited, message="Four is enough.")
    (line,) = await read(world)
    assert jsonpatch.apply_patch(line["args"], line["patch"]) == line["edited_args"] == edited
    about = {name: line[name] for name in ("kind", "verdict", "tool", "args", "reason", "rule", "tags", "by", "agent")}
    assert about == {
        "kind": "edit",
        "verdict": "approved",
        "tool": "pay",
        "args": args,
        "reason": "Four is enough.",
        "rule": "small",
        "tags": ["shop"],
        "by": ["anna"],
        "agent": "demo",
    }
    assert (line["run_id"], line["suspension_id"], line["item_id"]) == (asked["run"]["id"], asked["id"], "i1")
    assert line["asked_at"] < line["decided_at"]


async def test_denial_is_a_line_with_its_reason(world: World) -> None:
    await decide(world, await put(world, "pay", {"amount": 5}), "deny", message="Not today.")
    (line,) = await read(world)
    assert (line["kind"], line["verdict"], line["reason"]) == ("denial", "denied", "Not today.")
    assert (line["args"], line["edited_args"], line["patch"]) == ({"amount": 5}, None, None)


async def test_what_nobody_changed_is_no_override(world: World) -> None:
    """Nor are the rules' own denials, open items and the same arguments sent as an edit."""
    await decide(world, await put(world, "pay", {"amount": 5}))
    await decide(world, await put(world, "pay", {"amount": 5}), args={"amount": 5})
    await put(world, "wipe", {})
    await put(world, "pay", {"amount": 6})
    assert await read(world) == []


async def test_edit_that_was_asked_again_has_no_call_of_the_agent(world: World) -> None:
    asked = await put(world, "pay", {"amount": 5})
    await post(
        world,
        "anna",
        f"{asked['id']}/items/i1/decision",
        body={"action": "approve", "digest": asked["items"][0]["digest"], "args": {"amount": 500}},
    )
    async with world.client("root") as root:
        await decide(world, (await root.get(f"/api/v1/suspensions/{asked['id']}")).json())
    (line,) = await read(world)
    assert (line["kind"], line["args"], line["edited_args"], line["patch"]) == ("edit", None, {"amount": 500}, None)


async def test_secrets_are_masked_as_on_pages(world: World) -> None:
    """The agent sees what it sent, and nothing of what a person typed."""
    asked = await put(world, "log_in", {"password": SECRET, "note": f"as {SECRET}"}, title=f"With {SECRET}")
    edited = {"password": TYPED, "note": "by hand"}
    await decide(world, asked, args=edited, message=f"Use {TYPED}, not {SECRET}.")
    await decide(world, await put(world, "log_in", {"password": SECRET}), "deny", message=f"Never {SECRET}.")
    people, agent = await read(world), await read(world, "demo")
    assert [text for text in (SECRET, TYPED) if text in json.dumps(people)] == []
    assert TYPED not in json.dumps(agent)
    assert people[0]["args"] == {"password": MASK, "note": f"as {MASK}"}
    assert people[0]["patch"] == [{"op": "replace", "path": "/note", "value": "by hand"}]
    assert agent[0]["args"]["password"] == SECRET
    assert agent[0]["edited_args"]["password"] == MASK


async def test_agent_reads_its_own_runs_alone(world: World) -> None:
    asked = await put(world, "pay", {"amount": 5})
    await decide(world, asked, "deny")
    assert [line["suspension_id"] for line in await read(world, "demo")] == [asked["id"]]
    assert await read(world, "other") == []
    tear(world.wiring.settings.store_url, asked["id"])
    assert await read(world, "demo") == []
    (line,) = await read(world)
    assert (line["kind"], line["suspension_id"], line["args"]) == ("unreadable", asked["id"], None)
    assert line["reason"]


async def test_agent_reads_as_often_as_it_may_ask(world: World) -> None:
    limits = world.wiring.intake.limits
    world.wiring.intake.limits = limits.model_copy(update={"asks_per_minute_per_key": 2})
    for status in (200, 200, 429):
        async with world.client("demo") as demo:
            assert (await demo.get("/api/v1/overrides")).status_code == status


async def test_day_is_that_of_the_decision_in_utc(world: World) -> None:
    await decide(world, await put(world, "pay", {"amount": 5}), "deny")
    (line,) = await read(world)
    day = datetime.fromisoformat(line["decided_at"]).astimezone(UTC).date().isoformat()
    assert await read(world, day=day) == [line]
    assert await read(world, day="2020-02-29") == []


@pytest.mark.parametrize("day", ["2026-02-30", "yesterday", "9999-12-31", "20261031x"])
async def test_unknown_day_is_refused(world: World, day: str) -> None:
    async with world.client("root") as root:
        answer = await root.get("/api/v1/overrides", params={"day": day})
    assert (answer.status_code, "Give one such as 2026-10-31" in answer.json()["detail"]) == (422, True)


async def test_each_decided_suspension_is_on_one_page(clean_store_url: str) -> None:
    """However many were decided in one millisecond; those of another day or tenant are on none."""
    with Redis.from_url(clean_store_url) as redis:
        redis.zadd(KEYS.decided, {f"a{number:03}": 5_000 for number in range(450)})
        redis.zadd(KEYS.decided, {"first": 4_000, "early": 3_999, "next": 6_000, "last": 5_999})
    async with AsyncRedis.from_url(clean_store_url) as client:
        pages = [page async for page in DecidedIndex(store_of(client)).list_pages(4_000, 6_000)]
        others = [page async for page in DecidedIndex(store_of(client, "company-b")).list_pages(4_000, 6_000)]
    assert [id_ for page in pages for id_ in page] == ["first", *(f"a{number:03}" for number in range(450)), "last"]
    assert (len(pages) > 2, others) == (True, [])


async def test_request_for_changes_is_a_line_with_what_to_change(world: World) -> None:
    asked = await put(world, "pay", {"amount": 5})
    await decide(world, asked, "deny", message="Four is enough.", changes={"paths": ["args.amount"]})
    (line,) = await read(world)
    assert (line["kind"], line["verdict"], line["change_paths"]) == ("changes", "denied", ["args.amount"])


async def test_archived_overrides_are_read_back(world: World, tmp_path: Path) -> None:
    record = await make_pending(world.wiring)
    no = DecisionRequest(action="deny", digest=record.items[0].digest, message="Not today.")
    await finish(world.wiring, (await world.wiring.desk.decide(record.id, "i1", no, person("anna"))).record)
    (line,) = await read(world)
    await keep(world.wiring)
    assert await world.wiring.runs.decided(0, 10) == []
    day = line["decided_at"][:10]
    assert await read(world, day=day) == await read(world, "demo", day=day) == [line]
    assert await read(world, "other", day=day) == []
    assert await read(world, day="2020-02-29") == []
    assert await archive(world.wiring).recall(record.run.id)
    assert await read(world, day=day) == [line], "it is in the store and in its segment"
    await keep(world.wiring)
    (file,) = list_files(tmp_path)
    file.write_bytes(file.read_bytes()[:-9])
    archive(world.wiring).forget_opened()
    (damaged,) = await read(world, "demo", day=day)
    assert (damaged["kind"], damaged["suspension_id"], "cannot be read" in damaged["reason"]) == (
        "unreadable",
        "",
        True,
    )
