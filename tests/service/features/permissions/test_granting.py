"""Standing grants through the desk and the real store: made, spent, revoked, and never over-spent."""

import asyncio
from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest
from sayso.core.records.freezes import Revocations
from sayso.core.records.permissions import Grant, GrantState
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound, SelfApproval, Withdrawn
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting
from tests.builders import REFUND, person, run_ref

POLICY = """
version: 1
default: request_approval
rules:
  - id: refunds
    tool: refund
    action: request_approval
    grants: {longest: 1d, count: 10, sum: {of: args.amount, max: 1000}, by: args.order}
  - id: each
    priority: 300
    tool: refund
    when: args.amount > 900
    action: request_approval
    grants: {longest: 1d}
    terms: {reviewers: ["group:finance", "group:legal"], quorum: {each_of: ["group:finance", "group:legal"]}}
  - id: two
    priority: 200
    tool: refund
    when: args.amount > 500
    action: request_approval
    grants: {longest: 1d, people: 2}
"""
POLL = ResumeSpec(mode="poll")


@pytest.fixture
def rules() -> str:
    return POLICY


@pytest.fixture
async def wiring(wiring: Wiring) -> Wiring:
    for name in ("anna", "ben"):
        await wiring.reviewers.add(name, f"{name}-long-password", ("reviewer",))
    return wiring


async def put(wiring: Wiring, *amounts: object, order: str = "A", owner: str = "demo", tool: Any = REFUND) -> Saved:
    calls = [
        ExternalCall(ToolCall(call_id="c", index=index, name="refund", args={"order": order, "amount": amount}), tool)
        for index, amount in enumerate(amounts)
    ]
    return await wiring.desk.suspend(run_ref(owner), calls, POLL)


def verdicts(saved: Saved | SuspensionRecord) -> list[str]:
    record = saved.record if isinstance(saved, Saved) else saved
    return [str(item.outcome.verdict) if item.outcome else "asked" for item in record.items]


async def decide(wiring: Wiring, record: SuspensionRecord, by: str = "anna", **given: Any) -> SuspensionRecord:
    request = DecisionRequest.model_validate({"action": "approve", "digest": record.items[0].digest, **given})
    return (await wiring.desk.decide(record.id, "i1", request, person(by), key=f"k-{by}")).record


async def make(wiring: Wiring, amount: int = 100, by: str = "anna", **grant: Any) -> Grant:
    record = (await put(wiring, amount)).record
    decided = await decide(wiring, record, by, grant={"for_s": 3600, **grant})
    return (await wiring.feature(Granting).find_use(decided.items[0].decisions[0].grant_id)).grant


async def redeem(wiring: Wiring, record: SuspensionRecord, item_id: str = "i1") -> Saved:
    return await wiring.desk.client_redeem(record.id, item_id, "k", Revocations())


async def test_grant_lets_like_calls_run_until_it_is_used_up(wiring: Wiring) -> None:
    made = await make(wiring, count=2)
    assert made.find_state(made.at_ms) is GrantState.IN_FORCE
    assert verdicts(await put(wiring, 100, order="B")) == ["asked"], "the rule's `by` stays as it was"
    first = await put(wiring, 100)
    assert verdicts(first) == ["approved"]
    assert first.record.items[0].grant_id == made.id
    assert verdicts(await put(wiring, 100, 100)) == ["approved", "asked"]
    use = await wiring.feature(Granting).find_use(made.id)
    assert (use.calls, use.total) == (2, 200_000_000)
    assert use.last_ms is not None


async def test_sum_is_never_over_spent(wiring: Wiring) -> None:
    await make(wiring, sum="100")
    asked = await asyncio.gather(*(put(wiring, 7) for _ in range(64)), return_exceptions=True)
    allowed = [one for one in asked if isinstance(one, Saved) and verdicts(one) == ["approved"]]
    assert len(allowed) == 10, "the rule's count of 10 is reached before 14 times 7"


async def test_call_that_does_not_run_gives_its_share_back(wiring: Wiring) -> None:
    await make(wiring, count=1)
    first = await put(wiring, 100)
    assert verdicts(await put(wiring, 100)) == ["asked"]
    await wiring.desk.withdraw(first.record.id, person("demo")) if verdicts(first) == ["asked"] else None
    await wiring.desk.cancel(first.record.run.id, person("anna"))
    assert verdicts(await put(wiring, 100)) == ["approved"]


async def test_revoked_grant_stops_calls_that_have_not_started(wiring: Wiring) -> None:
    made = await make(wiring)
    waiting, started = (await put(wiring, 100)).record, (await put(wiring, 100)).record
    await redeem(wiring, started)
    revoked = await wiring.feature(Granting).revoke(made.id, person("ben"))
    assert revoked.revoked_by == "ben"
    assert await wiring.feature(Granting).revoke(made.id, person("anna")) == revoked, "repeated, it changes nothing"
    assert verdicts(await put(wiring, 100)) == ["asked"]
    with pytest.raises(Withdrawn, match=f"Grant {made.id}, which allowed it, no longer does"):
        await redeem(wiring, waiting)
    assert await redeem(wiring, started) is not None, "it has started already"


async def test_grant_does_not_outlive_its_reviewer(wiring: Wiring) -> None:
    await make(wiring)
    waiting = (await put(wiring, 100)).record
    assert verdicts(waiting) == ["approved"]
    await wiring.reviewers.deactivate("anna")
    assert verdicts(await put(wiring, 100)) == ["asked"]
    with pytest.raises(Withdrawn):
        await redeem(wiring, waiting)


async def test_grant_does_not_outlive_the_tools_definition(wiring: Wiring) -> None:
    await make(wiring)
    other = REFUND.model_copy(update={"description": "Something else."})
    assert verdicts(await put(wiring, 100, tool=other)) == ["asked"]


async def test_grant_is_for_its_owner_alone(wiring: Wiring) -> None:
    await make(wiring)
    assert verdicts(await put(wiring, 100, owner="another-key")) == ["asked"]


async def test_two_people_grant_together(wiring: Wiring) -> None:
    made = await make(wiring, 600)
    assert made.find_state(made.at_ms) is GrantState.WAITING
    assert verdicts(await put(wiring, 600)) == ["asked"]
    with pytest.raises(Conflict, match="You have granted it already"):
        await wiring.feature(Granting).confirm(made.id, person("anna"))
    with pytest.raises(SelfApproval):
        await wiring.feature(Granting).confirm(made.id, person("demo"))
    await wiring.feature(Granting).confirm(made.id, person("ben"))
    assert verdicts(await put(wiring, 600)) == ["approved"]
    with pytest.raises(Conflict, match="does not wait for anybody: it is in force"):
        await wiring.feature(Granting).confirm(made.id, person("ben"))


async def test_grant_waits_for_one_of_each_group(wiring: Wiring) -> None:
    def of(name: str, group: str) -> Actor:
        return person(name).model_copy(update={"groups": (group,)})

    await wiring.groups.create("finance", ("anna", "ben"), (), "root")
    await wiring.reviewers.add("lea", "lea-long-password", ("reviewer",))
    await wiring.groups.create("legal", ("lea",), (), "root")
    record = (await put(wiring, 950)).record
    request = DecisionRequest.model_validate(
        {"action": "approve", "digest": record.items[0].digest, "grant": {"for_s": 3600}}
    )
    decided = (await wiring.desk.decide(record.id, "i1", request, of("anna", "finance"), key="k")).record
    grant_id = decided.items[0].decisions[0].grant_id
    assert (await wiring.feature(Granting).confirm(grant_id, of("ben", "finance"))).find_state(1) is GrantState.WAITING
    assert verdicts(await put(wiring, 950)) == ["asked"]
    await wiring.feature(Granting).confirm(grant_id, of("lea", "legal"))
    assert verdicts(await put(wiring, 950)) == ["approved"]


@pytest.mark.parametrize(
    ("grant", "says"),
    [
        ({"for_s": 90_000}, "at most 1d, not 25h"),
        ({"for_s": 60, "count": 11}, "at most 10 calls"),
        ({"for_s": 60, "sum": "1000.01"}, "at most 1,000 in sum"),
        ({"for_s": 60, "at_most": {"args.order": 5}}, r"args\.order is not a plain number .* Limit it to a value"),
        ({"for_s": 60, "same": ["args.other"]}, r"The call has no args\.other"),
    ],
)
async def test_grant_beyond_the_rule_is_refused(wiring: Wiring, grant: dict[str, Any], says: str) -> None:
    record = (await put(wiring, 100)).record
    with pytest.raises(InvalidInput, match=says):
        await decide(wiring, record, grant=grant)
    assert verdicts(await wiring.desk.suspensions.read(record.id)) == ["asked"], "nothing was decided"
    assert await wiring.feature(Granting).list_uses() == []


async def test_repeated_decision_makes_one_grant(wiring: Wiring) -> None:
    record = (await put(wiring, 100)).record
    for _ in range(2):
        await decide(wiring, record, grant={"for_s": 60})
    assert len(await wiring.feature(Granting).list_uses()) == 1


async def test_offer_lets_one_call_within_it_pass(wiring: Wiring) -> None:
    record = (await put(wiring, 400)).record
    denied = await decide(wiring, record, action="deny", message="Too much.", offer={"at_most": {"args.amount": 200}})
    outcome = denied.items[0].outcome
    assert outcome is not None
    assert outcome.offer is not None
    said = "Too much. A call of refund with args.amount at most 200 and otherwise the same arguments runs once"
    assert str(outcome.message).startswith(said)
    assert verdicts(await put(wiring, 201)) == ["asked"]
    assert verdicts(await put(wiring, 150, order="B")) == ["asked"]
    assert verdicts(await put(wiring, 150, 150)) == ["approved", "asked"], "it passes once"


async def test_agents_neither_confirm_nor_revoke(wiring: Wiring) -> None:
    made, agent = await make(wiring), Actor(id="demo", kind=ActorKind.AGENT)
    for change in (wiring.feature(Granting).revoke, wiring.feature(Granting).confirm):
        with pytest.raises(NotAllowed):
            await change(made.id, agent)
        with pytest.raises(NotFound):
            await change("gra_x", person("ben"))
