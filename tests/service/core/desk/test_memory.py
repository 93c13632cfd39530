"""Rules that remember calls, through the desk: never over by one, never short after a release."""

import asyncio
from collections.abc import Awaitable

import pytest
from redis.asyncio import Redis

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest, Report, Verdict
from sayso.core.records.freezes import Revocations
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.errors import PolicyForbids, TooManyRequests, Withdrawn
from service.core.store.connection.pipeline import Script
from service.core.store.lua import read_script
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from tests.builders import REFUND, approve, person, run_ref

POLICY = """
version: 1
default: request_approval
rules:
  - id: no-more
    priority: 300
    tool: refund
    action: deny
    reason: That is enough for today.
    over: {budget: {sum: args.amount, max: 200, per: 1d}}
  - id: within-budget
    tool: refund
    action: allow
    budget: {sum: args.amount, max: 100, per: 1h, by: agent}
"""
POLL = ResumeSpec(mode="poll")


@pytest.fixture
def rules() -> str:
    return POLICY


def call(amount: object, index: int = 0) -> ExternalCall:
    return ExternalCall(
        ToolCall(call_id="c", index=index, name="refund", args={"order": "A", "amount": amount}), REFUND
    )


async def put(wiring: Wiring, *amounts: object, key: str | None = None) -> Saved:
    calls = [call(amount, index) for index, amount in enumerate(amounts)]
    return await wiring.desk.suspend(run_ref(), calls, POLL, key=key)


def verdicts(record: SuspensionRecord) -> list[str]:
    return [str(item.outcome.verdict) if item.outcome else "asked" for item in record.items]


async def redeem(wiring: Wiring, record: SuspensionRecord, item_id: str = "i1", key: str = "k") -> Saved:
    return await wiring.desk.client_redeem(record.id, item_id, key, Revocations())


async def test_many_agents_use_up_one_budget_and_no_more(wiring: Wiring) -> None:
    asked = await asyncio.gather(*(put(wiring, 7) for _ in range(64)))
    found = [verdicts(one.record)[0] for one in asked]
    assert (found.count("approved"), found.count("asked")) == (14, 50), "14 times 7 is 98"
    allowed = [one.record for one in asked if verdicts(one.record) == ["approved"]]
    await asyncio.gather(*(redeem(wiring, record) for record in allowed))
    await wiring.desk.withdraw((await put(wiring, 7)).record.id, person("demo"))
    assert verdicts((await put(wiring, 2)).record) == ["approved"], "nothing counted twice"
    assert verdicts((await put(wiring, 1)).record) == ["asked"]


async def test_counters_are_read_in_the_round_trip_that_admits(wiring: Wiring, clean_store_url: str) -> None:
    async with Redis.from_url(clean_store_url) as redis:
        assert not await reads_apart(redis, put(wiring, 1))
        limits = wiring.intake.limits
        wiring.intake.limits = limits.model_copy(update={"asks_per_minute_per_key": 1})
        with pytest.raises(TooManyRequests):
            await put(wiring, 1)
        wiring.intake.limits = limits
        assert await reads_apart(redis, put(wiring, 1)), "after a refusal only admitted requests are judged"


async def test_calls_of_a_thread_count_with_the_numbers_of_their_turns(wiring: Wiring, clean_store_url: str) -> None:
    async def ask(amount: int) -> Saved:
        return await wiring.desk.suspend(run_ref(thread_id="t1"), [call(amount)], POLL)

    assert (await ask(1)).record.step == 1
    async with Redis.from_url(clean_store_url) as redis:
        assert not await reads_apart(redis, ask(60))
    asked = (await ask(40)).record
    assert (asked.step, verdicts(asked), asked.items[0].remembered[0].total) == (3, ["asked"], 61_000_000)
    numbers = await asyncio.gather(*(ask(1) for _ in range(5)))
    assert sorted(one.record.step for one in numbers) == [4, 5, 6, 7, 8]


async def reads_apart(redis: Redis, change: Awaitable[Saved]) -> bool:
    """Return whether an allowed call reads counters with the script that only reads them."""
    await redis.script_flush()
    assert verdicts((await change).record) == ["approved"]
    (found,) = await redis.script_exists(Script(read_script("recall")).sha)
    return bool(found)


async def test_what_is_not_used_is_free_again(wiring: Wiring) -> None:
    first = (await put(wiring, 100)).record
    assert verdicts((await put(wiring, 1)).record) == ["asked"]
    await wiring.desk.cancel(first.run.id, person("anna"))
    again = (await put(wiring, 60, 60, 40)).record
    assert verdicts(again) == ["approved", "asked", "approved"], "calls of one batch count for each other"


async def test_repeated_request_counts_once(wiring: Wiring) -> None:
    first = await put(wiring, 60, key="k")
    assert (await put(wiring, 60, key="k")).record.id == first.record.id
    assert verdicts((await put(wiring, 40)).record) == ["approved"]


async def test_redeemed_call_does_not_count_against_itself(wiring: Wiring) -> None:
    record = (await put(wiring, 100)).record
    redeemed = (await redeem(wiring, record)).record
    assert await redeem(wiring, record) is not None, "repeated, it changes nothing"
    assert redeemed.items[0].charges == record.items[0].charges
    await wiring.desk.conclude(record.id, "i1", "k", Report(success=False, error="declined", at_ms=0))
    assert verdicts((await put(wiring, 1)).record) == ["asked"], "a call that started counts, whatever its result"


async def test_approved_calls_count_for_rules_that_deny_when_they_start(wiring: Wiring) -> None:
    records = [(await put(wiring, 150)).record for _ in range(2)]
    for record in records:
        assert verdicts(record) == ["asked"]
        await approve(wiring, record)
    await redeem(wiring, records[0])
    with pytest.raises(Withdrawn, match=r"The rules now deny refund: That is enough for today\."):
        await redeem(wiring, records[1])
    assert verdicts((await put(wiring, 51)).record) == ["denied"]
    assert verdicts((await put(wiring, 50)).record) == ["approved"], "what a person approved is not taken from it"


async def test_approved_calls_that_start_at_once_are_never_over(wiring: Wiring) -> None:
    records = [await approve(wiring, (await put(wiring, 101)).record) for _ in range(8)]
    started = await asyncio.gather(*(redeem(wiring, record) for record in records), return_exceptions=True)
    assert [isinstance(one, Withdrawn) for one in started].count(False) == 1


@pytest.mark.parametrize("amount", ["lots", -5, None])
async def test_amount_that_cannot_be_counted_is_asked(wiring: Wiring, amount: object) -> None:
    loose = REFUND.model_copy(update={"parameters": {"type": "object"}})
    asked = ExternalCall(call(amount).call, loose)
    record = (await wiring.desk.suspend(run_ref(), [asked], POLL)).record
    assert verdicts(record) == ["asked"]
    assert "rule no-more: over.budget: args.amount" in str(record.items[0].prompt.metadata["judging_error"])


async def test_edit_beyond_a_limit_is_refused(wiring: Wiring) -> None:
    record = (await put(wiring, 150)).record
    edited = DecisionRequest(action="approve", digest=record.items[0].digest, args={"order": "A", "amount": 201})
    with pytest.raises(PolicyForbids, match=r"That is enough for today"):
        await wiring.desk.decide(record.id, "i1", edited, person("anna"))
    edited = edited.model_copy(update={"args": {"order": "A", "amount": 200}})
    decided = await wiring.desk.decide(record.id, "i1", edited, person("anna"))
    assert decided.record.items[0].outcome is not None
    assert decided.record.items[0].outcome.verdict is Verdict.APPROVED
    await redeem(wiring, record)


async def test_what_rules_remembered_is_recorded_with_the_judgement(wiring: Wiring) -> None:
    await put(wiring, 40)
    record = (await put(wiring, 70)).record
    seen = [(one.rule_id, one.key, one.total, one.amount, one.most) for one in record.items[0].remembered]
    assert seen == [
        ("no-more", "over.budget", 40_000_000, 70_000_000, 200_000_000),
        ("within-budget", "budget", 40_000_000, 70_000_000, 100_000_000),
    ]
    (judged,) = [one for one in await wiring.runs.trail(record.run.id) if one.type == "policy_decision"]
    assert [one["total"] for one in judged.data["remembered"]] == [40_000_000, 40_000_000]
