"""Learned grants through the desk and the real store: proposed, tried, put in force by people, suspended."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest
from sayso.core.records.freezes import Revocations
from sayso.core.records.permissions import Grant, GrantState
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.errors import Conflict, NotAllowed, NotFound, Withdrawn
from service.assembly import assemble
from service.core.operations.runs import erase_run
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting, propose_learned
from service.features.permissions.store import Trial
from tests.builders import REFUND, person, run_ref

POLICY = """
version: 1
default: request_approval
rules:
  - id: refunds
    tool: refund
    action: request_approval
    terms: {reviewers: [anna, ben]}
    grants: {longest: 1d, count: 5, sum: {of: args.amount, max: 1000}, learn: {after: 3, probation: 2}}
"""
FULL = REFUND.model_copy(update={"parameters": {"type": "object"}})


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    return write_rules(Settings(home=tmp_path, redis_url=clean_store_url), "policy", POLICY)


def write_rules(settings: Settings, name: str, text: str) -> Settings:
    path = settings.home / f"{name}.yaml"
    path.write_text(text)
    return settings.model_copy(update={"policy": path})


@pytest.fixture
async def wiring(settings: Settings) -> AsyncIterator[Wiring]:
    async with assemble(settings) as wired:
        for name in ("anna", "ben"):
            await wired.reviewers.add(name, f"{name}-long-password", ("reviewer",))
        yield wired


async def put(wiring: Wiring, amount: object, order: str = "A", tool: Any = FULL, **args: Any) -> SuspensionRecord:
    call = ToolCall(call_id="c", index=0, name="refund", args={"order": order, "amount": amount, **args})
    return (await wiring.desk.suspend(run_ref(), [ExternalCall(call, tool)], ResumeSpec(mode="poll"))).record


async def decide(wiring: Wiring, record: SuspensionRecord, action: str = "approve", **given: Any) -> SuspensionRecord:
    request = DecisionRequest.model_validate({"action": action, "digest": record.items[0].digest, **given})
    return (await wiring.desk.decide(record.id, "i1", request, person("anna"))).record


async def teach(wiring: Wiring, *amounts: object, **args: Any) -> None:
    for amount in amounts:
        await decide(wiring, await put(wiring, amount, **args))


async def propose(wiring: Wiring, *amounts: object) -> Grant:
    await teach(wiring, *(amounts or (10, 20, 30)))
    (made,) = await propose_learned(wiring)
    return made


async def put_in_force(wiring: Wiring) -> Grant:
    made = await propose(wiring)
    await teach(wiring, 10, 20)
    return await wiring.feature(Granting).confirm(made.id, person("ben"))


async def find_state(wiring: Wiring, grant: Grant) -> GrantState:
    return (await wiring.feature(Granting).find_use(grant.id)).grant.find_state(await wiring.feature(Granting).now_ms())


def is_asked(record: SuspensionRecord) -> bool:
    return record.items[0].outcome is None


async def test_enough_approvals_propose_a_grant_that_lets_nothing_run(wiring: Wiring) -> None:
    await teach(wiring, 10, 30)
    assert await propose_learned(wiring) == []
    made = await propose(wiring, 20)
    assert made.learned is not None
    assert (made.learned.approvals, made.find_state(made.at_ms)) == (3, GrantState.PROBATION)
    assert is_asked(await put(wiring, 10))
    await teach(wiring, 10)
    assert await propose_learned(wiring) == [], "there is one already"


async def test_nobody_puts_a_grant_in_force_before_it_was_tried(wiring: Wiring) -> None:
    made = await propose(wiring)
    await teach(wiring, 10)
    with pytest.raises(Conflict, match="on probation: people have approved 1 of the 2 calls"):
        await wiring.feature(Granting).confirm(made.id, person("ben"))
    assert await wiring.feature(Granting).count_ready() == Counter()
    await teach(wiring, 30)
    assert await wiring.feature(Granting).count_ready() == Counter({"refunds": 1})
    with pytest.raises(NotAllowed):
        await wiring.feature(Granting).confirm(made.id, Actor(id="demo", kind=ActorKind.AGENT))
    assert is_asked(await put(wiring, 10))
    given = await wiring.feature(Granting).confirm(made.id, person("ben"))
    assert given.until_ms - given.at_ms == 86_400_000, "its time starts when it takes force"
    assert not is_asked(await put(wiring, 30))
    assert is_asked(await put(wiring, 30.01)), "nobody saw more"
    assert is_asked(await put(wiring, 10, order="B"))
    assert is_asked(await put(wiring, 10, express=True)), "nobody saw this argument"


async def test_limits_of_the_rule_hold_for_a_learned_grant(wiring: Wiring) -> None:
    await put_in_force(wiring)
    assert [is_asked(await put(wiring, 10)) for _ in range(6)] == [False] * 5 + [True]


async def test_denial_ends_probation_at_once(wiring: Wiring) -> None:
    made = await propose(wiring)
    denied = await put(wiring, 25)
    await decide(wiring, denied, "deny")
    use = await wiring.feature(Granting).find_use(made.id)
    assert use.grant.denial is not None
    assert (use.grant.denial.by, use.grant.denial.suspension_id) == ("anna", denied.id)
    trail = await wiring.runs.trail(denied.run.id, limit=100)
    assert [one.data.get("suspends") for one in trail if one.type == "decision_recorded"] == [[made.id]]
    assert await find_state(wiring, made) is GrantState.SUSPENDED
    with pytest.raises(Conflict, match=r"does not wait for anybody: it is suspended by a denial\."):
        await wiring.feature(Granting).confirm(made.id, person("ben"))
    await teach(wiring, 10, 20, 30)
    assert await propose_learned(wiring) == [], "the denied call would be covered again"


async def test_denial_suspends_a_grant_in_force_at_once(wiring: Wiring) -> None:
    waiting = await put(wiring, 25)
    made = await put_in_force(wiring)
    allowed = await put(wiring, 10)
    assert not is_asked(allowed)
    await decide(wiring, waiting, "deny")
    assert await find_state(wiring, made) is GrantState.SUSPENDED
    assert is_asked(await put(wiring, 10))
    with pytest.raises(Withdrawn, match=f"Grant {made.id}, which allowed it, no longer does"):
        await wiring.desk.client_redeem(allowed.id, "i1", "k", Revocations())


async def test_denial_of_another_call_suspends_nothing(wiring: Wiring) -> None:
    made = await put_in_force(wiring)
    await decide(wiring, await put(wiring, 31), "deny")
    await decide(wiring, await put(wiring, 10, order="B"), "deny")
    assert await find_state(wiring, made) is GrantState.IN_FORCE


async def test_denial_sent_while_a_grant_is_proposed_is_not_missed(wiring: Wiring) -> None:
    made = await propose(wiring)
    record = await put(wiring, 10)
    hidden = await wiring.feature(Granting).lessons.list_learned()
    await decide(wiring, record, "deny")
    # As if the denial had been sent before the grant was saved: it suspended nothing.
    await wiring.feature(Granting).lessons.suspend(hidden)
    assert await find_state(wiring, made) is GrantState.PROBATION
    await propose_learned(wiring)
    assert await find_state(wiring, made) is GrantState.SUSPENDED


async def test_calls_denied_or_edited_before_propose_nothing(wiring: Wiring) -> None:
    await decide(wiring, await put(wiring, 15), "approve", args={"order": "A", "amount": 14})
    await teach(wiring, 10, 20, 30)
    assert await propose_learned(wiring) == []
    await decide(wiring, await put(wiring, 5, order="B"), "deny")
    await teach(wiring, 10, 20, 30, order="B")
    assert await propose_learned(wiring) == []


async def test_dismissed_proposal_returns_after_as_many_approvals_again(wiring: Wiring) -> None:
    made = await propose(wiring)
    await wiring.feature(Granting).revoke(made.id, person("anna"))
    await teach(wiring, 10, 20)
    assert await propose_learned(wiring) == []
    again = await propose(wiring, 20)
    assert again.id != made.id


async def test_two_people_put_it_in_force_where_the_rule_says_so(settings: Settings, wiring: Wiring) -> None:
    async with assemble(write_rules(settings, "two", POLICY.replace("count: 5", "people: 2"))) as two:
        made = await put_in_force(two)
        assert made.find_state(made.at_ms) is GrantState.WAITING
        assert is_asked(await put(two, 10))
        with pytest.raises(Conflict, match="You have granted it already"):
            await two.feature(Granting).confirm(made.id, person("ben"))
        await two.feature(Granting).confirm(made.id, person("anna"))
        assert not is_asked(await put(two, 10))


async def test_learned_grant_ends_with_rule_reviewer_or_tool(settings: Settings, wiring: Wiring) -> None:
    made = await put_in_force(wiring)
    other = FULL.model_copy(update={"description": "Something else."})
    assert is_asked(await put(wiring, 10, tool=other))
    assert not is_asked(await put(wiring, 10))
    await wiring.reviewers.deactivate("ben")
    assert is_asked(await put(wiring, 10))
    await wiring.reviewers.activate("ben")
    assert not is_asked(await put(wiring, 10))
    async with assemble(write_rules(settings, "changed", POLICY.replace("count: 5", "count: 6"))) as changed:
        assert is_asked(await put(changed, 10))
        assert changed.feature(Granting).find_void(made)


async def test_decisions_of_a_deleted_denial_teach_nothing(wiring: Wiring) -> None:
    await teach(wiring, 10, 20)
    denied = await put(wiring, 15)
    await decide(wiring, denied, "deny")
    await teach(wiring, 30)
    await wiring.desk.cancel(denied.run.id, person("anna"))
    await wiring.retention.forget_runs(2**53, 100, 2**53)
    with pytest.raises(NotFound):
        await wiring.desk.suspensions.read(denied.id)
    await teach(wiring, 10)
    assert await propose_learned(wiring) == []


async def test_figures_equal_an_oracle_over_the_trail(wiring: Wiring) -> None:
    made = await propose(wiring)
    chance = random.Random(5)  # noqa: S311  it keeps no secret
    steps = [*(chance.choice(["approve", "edit", "cancel", "leave", "deny other"]) for _ in range(30)), "deny", "leave"]
    runs: list[SuspensionRecord] = []
    named: Counter[str] = Counter()
    for step in steps:
        amount, order = chance.choice([0, 10, 29.99, 30, 31]), chance.choice(["A", "A", "B"])
        amount, order = (31, "A") if step == "deny other" else (10, "A") if step == "deny" else (amount, order)
        record = await put(wiring, amount, order)
        runs.append(record)
        if named["denied"] == 0 and order == "A" and amount <= 30:  # the sentence, read by brute force
            named.update(["asked", {"approve": "approved", "edit": "edited", "deny": "denied"}.get(step, "unanswered")])
        if step == "edit":
            await decide(wiring, record, args={"order": "A", "amount": 1})
        elif step == "cancel":
            await wiring.desk.cancel(record.run.id, person("anna"))
        elif step != "leave":
            await decide(wiring, record, step.removesuffix(" other"))
    oracle: Counter[str] = Counter()
    for record in runs:
        oracle.update(await tally_trail(wiring, record.run.id, made.id))
    trial = (await wiring.feature(Granting).lessons.read_trials([made]))[made.id]
    assert trial == Trial(*(oracle[what] for what in ("asked", "approved", "edited", "denied")))
    assert trial == Trial(*(named[what] for what in ("asked", "approved", "edited", "denied")))
    assert trial.unanswered == named["unanswered"]
    assert min(trial) > 0


async def tally_trail(wiring: Wiring, run_id: str, grant_id: str) -> Counter[str]:
    """Count what the trail of a run says of a grant on probation."""
    found: Counter[str] = Counter()
    for entry in await wiring.runs.trail(run_id, limit=100):
        if grant_id in (entry.data.get("would_allow") or ()):
            found["asked"] += 1
        if found["asked"] and entry.type == "decision_recorded":
            edited = "edited" if entry.data["edited"] else entry.data["verdict"]
            found[str(edited)] += 1
    return found


async def test_erased_calls_teach_nothing_and_erased_denials_end_what_was_learned(wiring: Wiring) -> None:
    records = [await decide(wiring, await put(wiring, amount)) for amount in (10, 20)]
    records += [await decide(wiring, await put(wiring, 25), "deny")]
    for record in records[1:]:
        await wiring.desk.cancel(record.run.id, person("anna"))
        await erase_run(wiring, record.run.id, person("root"), "asked by the customer")
    await teach(wiring, 30)
    assert await propose_learned(wiring) == [], "the approvals before the denial do not count"
    await teach(wiring, 40)
    assert await propose_learned(wiring) == []
    await teach(wiring, 50)
    (made,) = await propose_learned(wiring)
    assert made.learned is not None
    assert made.learned.approvals == 3
