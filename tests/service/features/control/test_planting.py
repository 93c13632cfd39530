"""A drill looks like a real item, never runs, tells nobody outside, and counts in the results of its reviewer."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import Answer
from sayso.core.records.suspensions import RunStatus, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import IllegalTransition, InvalidInput, NotAllowed, NotFound, Unavailable
from service.assembly import assemble
from service.core.settings import Settings
from service.core.settings.limits import TENANT
from service.core.store.keys import TenantKeys
from service.core.wiring import Wiring
from service.features.control.drills import is_flagged, plant_drill, plant_scheduled
from service.features.control.store import Recents
from service.features.insights.figures import read_insights
from tests.builders import approve, make_person, person, run_ref
from workers.clock.ticks import process_due
from workers.outbox import Counting

KEYS = TenantKeys(TENANT)
FILE = """\
every_h: 24
drills:
  - id: unknown-recipient
    agent: support
    requested_by: support-bot
    tool: refund
    args: {amount: 480, recipient: DE02120300000000202051}
    signs: [Nobody knows the recipient.]
"""
ATTEMPTS = 10_000


@pytest.fixture
async def drilling(settings: Settings, tmp_path: Path) -> AsyncIterator[Wiring]:
    path = tmp_path / "drills.yaml"
    path.write_text(FILE)
    async with assemble(settings.model_copy(update={"drills": path})) as wiring:
        await make_person(wiring, "anna")
        yield wiring


@pytest.fixture
async def redis(clean_store_url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(clean_store_url) as client:
        yield client


async def plant(wiring: Wiring, reviewer: str = "anna") -> SuspensionRecord:
    return await plant_drill(wiring, "unknown-recipient", reviewer, "root")


async def deny(wiring: Wiring, record: SuspensionRecord) -> None:
    no = DecisionRequest(action="deny", digest=record.items[0].digest)
    await wiring.desk.decide(record.id, "i1", no, person("anna"))


async def test_only_its_reviewer_decides_a_drill(drilling: Wiring) -> None:
    record = await plant(drilling)
    (item,) = record.items
    assert (item.tool.name, record.resume.mode) == ("refund", "poll")
    with pytest.raises(NotAllowed):
        await approve(drilling, record, "ben")
    await approve(drilling, record)


async def ask_really(wiring: Wiring, drill: SuspensionRecord) -> SuspensionRecord:
    """Ask about the call of a drill as its agent would."""
    tool = drill.items[0].tool
    call = ExternalCall(ToolCall(call_id="", index=0, name=tool.name, args=tool.args), ToolDefinition(name=tool.name))
    return (await wiring.desk.suspend(run_ref("support-bot", agent="support"), [call], drill.resume)).record


async def test_drill_has_the_actions_and_trail_of_a_real_item(drilling: Wiring) -> None:
    drill = await plant(drilling)
    real = await ask_really(drilling, drill)
    assert drill.items[0].allowed == real.items[0].allowed == (Answer.APPROVE, Answer.EDIT, Answer.DENY)
    assert drill.items[0].call_id == real.items[0].call_id
    assert (drill.step, drill.run.tenant, drill.run.environment) == (real.step, real.run.tenant, real.run.environment)
    trails = [await drilling.runs.trail(one.run.id) for one in (drill, real)]
    assert [one.type for one in trails[0]] == [one.type for one in trails[1]]
    for planted, judged in zip(*trails, strict=True):
        assert planted.data.keys() == judged.data.keys(), planted.type


@pytest.mark.parametrize("reviewer", ["nobody", "gone"])
async def test_unknown_reviewer_gets_no_drill(drilling: Wiring, reviewer: str) -> None:
    await make_person(drilling, "gone")
    await make_person(drilling, "root", "admin")
    await drilling.reviewers.deactivate("gone")
    with pytest.raises(NotFound, match="no active reviewer"):
        await plant(drilling, reviewer)


@pytest.mark.timeout(400)  # ten thousand attempts; over 120 s on a busy machine
async def test_no_void_permit_is_redeemed_through_the_store(drilling: Wiring) -> None:
    record = await approve(drilling, await plant(drilling))

    async def redeem(key: str) -> bool:
        while True:
            try:
                await drilling.desk.client_redeem(record.id, "i1", key, Revocations())
            except Unavailable:  # freezes were read too slowly for this one; nothing was decided
                continue
            except IllegalTransition:
                return False
            return True

    redeemed = 0
    for first in range(0, ATTEMPTS, 100):
        redeemed += sum(await asyncio.gather(*(redeem(f"key-{at}") for at in range(first, first + 100))))
    assert redeemed == 0
    assert (await drilling.desk.suspensions.read(record.id)).record.items[0].permit is None


@pytest.mark.parametrize("approved", [True, False])
async def test_decided_drill_ends_and_says_so_in_its_trail(drilling: Wiring, approved: bool) -> None:
    record = await plant(drilling)
    await (approve(drilling, record) if approved else deny(drilling, record))
    await process_due(drilling)
    run = await drilling.runs.read(record.run.id)
    assert run.status is RunStatus.COMPLETED
    events = await drilling.runs.trail(record.run.id)
    (decided,) = [event for event in events if event.type == "decision_recorded"]
    assert (decided.data["drill"], decided.data["caught"]) == ("unknown-recipient", not approved)


async def test_drill_is_no_precedent_and_costs_no_rule(drilling: Wiring, redis: Redis) -> None:
    await redis.hset(KEYS.endpoints, "end_1", "{}")
    await approve(drilling, await plant(drilling))
    await Counting(drilling).count_waiting()
    found = await read_insights(drilling, "24h", None)
    assert (found.now.asked, found.now.decided, found.rules, found.people) == (0, 0, (), ())
    assert not await redis.exists(KEYS.announcements)
    assert not [key async for key in redis.scan_iter() if b"precedents" in key or b"asked-by" in key]


async def test_results_flag_who_approves_drills(drilling: Wiring) -> None:
    for _ in range(3):
        await approve(drilling, await plant(drilling))
    await Counting(drilling).count_waiting()
    found = await drilling.part(Recents).drills.read(["anna", "ben"])
    assert found == {"anna": (True, True, True), "ben": ()}
    assert {name: is_flagged(approved) for name, approved in found.items()} == {"anna": True, "ben": False}


async def test_scheduled_drill_is_planted_once(drilling: Wiring, redis: Redis) -> None:
    planted = await asyncio.gather(*(plant_scheduled(drilling) for _ in range(8)))
    (record,) = [one for one in planted if one is not None]
    (item,) = record.items
    assert item.drill is not None
    assert (item.drill.reviewer, item.terms.reviewers) == ("anna", ())
    assert 23 * 3_600_000 < await redis.pttl(KEYS.next_drill) <= 24 * 3_600_000


async def test_no_file_plants_nothing(wiring: Wiring, redis: Redis) -> None:
    assert await plant_scheduled(wiring) is None
    assert not await redis.exists(KEYS.next_drill)


RULES = """
version: 1
default: request_approval
rules:
  - {id: refunds, tool: refund, action: request_approval, terms: {reviewers: ["group:finance"], quorum: {approve: 2},
     timeout_s: 600, escalate: [{after_s: 60, reviewers: [root]}]}}
"""


@pytest.fixture
async def finance(clean_store_url: str, tmp_path: Path) -> AsyncIterator[Wiring]:
    """A desk whose rule asks two of a group, with a drill that seems to come from it."""
    (tmp_path / "drills.yaml").write_text(FILE.replace("    tool: refund", "    rule: refunds\n    tool: refund"))
    (tmp_path / "policy.yaml").write_text(RULES)
    settings = Settings(redis_url=clean_store_url, policy=tmp_path / "policy.yaml", drills=tmp_path / "drills.yaml")
    async with assemble(settings) as wiring:
        for name in ("anna", "ben", "carl"):
            await make_person(wiring, name)
        await wiring.groups.create("finance", ("anna", "ben"), (), "root")
        yield wiring


async def test_drill_shows_the_terms_of_its_rule(finance: Wiring) -> None:
    drill = await plant(finance)
    real = await ask_really(finance, drill)
    own = {"deadline_at_ms", "extend_until_ms", "remind_at_ms"}
    shown = [one.items[0].terms.model_dump(exclude=own) for one in (drill, real)]
    assert shown[0] == shown[1]
    lengths = [one.items[0].terms.deadline_at_ms - one.created_at_ms for one in (drill, real)]
    assert lengths[0] == lengths[1] == 600_000


async def test_drill_for_a_group_is_decided_by_its_reviewer_alone_at_once(finance: Wiring) -> None:
    record = await plant(finance)
    for other in ("ben", "root"):
        with pytest.raises(NotAllowed):
            await approve(finance, record, other)
    (item,) = (await approve(finance, record, "anna")).items
    assert not item.open
    with pytest.raises(InvalidInput, match=r"does not ask carl\. Name one of its reviewers: group:finance"):
        await plant(finance, "carl")
