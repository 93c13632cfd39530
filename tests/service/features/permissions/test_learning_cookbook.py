"""The learned grant of the cookbook: proposed, tried, put in force, and suspended by one denial."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest
from sayso.core.records.permissions import GrantState
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from service.assembly import assemble
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting, propose_learned
from tests.builders import run_ref
from tests.sayso.features.whatif.test_cookbook import POLICIES
from tests.service.features.permissions.test_learning import FULL

BEN = Actor(id="ben", kind=ActorKind.HUMAN, groups=("finance",))


@pytest.fixture
async def wiring(clean_store_url: str, tmp_path: Path) -> AsyncIterator[Wiring]:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICIES["A grant that is learned"])
    async with assemble(Settings(home=tmp_path, redis_url=clean_store_url, policy=policy)) as wired:
        await wired.reviewers.add("ben", "bens-long-password", ("reviewer",))
        await wired.groups.create("finance", ("ben",), (), "root")
        yield wired


async def put(wiring: Wiring, amount: object, customer: object = "C-1", **args: Any) -> SuspensionRecord:
    call = {"customer": customer, "order": f"order {amount}", "amount": amount, **args}
    asked = ExternalCall(ToolCall(call_id="c", index=0, name="refund", args=call), FULL)
    return (await wiring.desk.suspend(run_ref(), [asked], ResumeSpec(mode="poll"))).record


async def decide(wiring: Wiring, record: SuspensionRecord, action: str = "approve") -> None:
    request = DecisionRequest.model_validate({"action": action, "digest": record.items[0].digest})
    await wiring.desk.decide(record.id, "i1", request, BEN)


def is_asked(record: SuspensionRecord) -> bool:
    return record.items[0].outcome is None


async def test_learned_grant_of_the_cookbook_passes_only_like_calls(wiring: Wiring) -> None:
    for amount in range(1, 20):
        await decide(wiring, await put(wiring, amount))
    assert await propose_learned(wiring) == []
    before = await put(wiring, 7)
    await decide(wiring, await put(wiring, 40))
    (made,) = await propose_learned(wiring)
    for amount in range(1, 11):
        record = await put(wiring, amount)
        assert is_asked(record), "on probation it lets nothing run"
        await decide(wiring, record)
    await wiring.feature(Granting).confirm(made.id, BEN)
    assert not is_asked(await put(wiring, 40))
    for odd in ({"amount": 41}, {"amount": -40}, {"amount": "40"}, {"amount": 5, "customer": "C-2"}):
        assert is_asked(await put(wiring, **odd)), odd
    assert is_asked(await put(wiring, 5, to="another account"))
    assert is_asked(await put(wiring, 5, customer=["C-1", "C-2"]))
    await decide(wiring, before, "deny")
    assert (await wiring.feature(Granting).find_use(made.id)).grant.find_state(made.at_ms) is GrantState.SUSPENDED
    assert is_asked(await put(wiring, 40))
