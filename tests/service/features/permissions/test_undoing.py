"""Decisions that also grant, offer, approve a plan or suspend learned grants: all of it waits, and can be undone."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sayso.core.records.permissions import GrantState
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.errors import NotFound
from sayso.features.permissions.making import name_mandate
from service.assembly import assemble
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting
from tests.builders import person
from tests.service.features.permissions import test_granting as granting
from tests.service.features.permissions import test_learning as learning
from tests.service.features.permissions import test_mandating as mandating

OFFER = {"action": "deny", "offer": {"at_most": {"args.amount": 50}}}


@pytest.fixture
def policy() -> str:
    return granting.POLICY


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, policy: str) -> Settings:
    (tmp_path / "policy.yaml").write_text(policy)
    return Settings(home=tmp_path, redis_url=clean_store_url, policy=tmp_path / "policy.yaml", undo="1s")


@pytest.fixture
async def wiring(settings: Settings) -> AsyncIterator[Wiring]:
    async with assemble(settings) as wired:
        for name in ("anna", "ben"):
            await wired.reviewers.add(name, f"{name}-long-password", ("reviewer",))
        yield wired


async def take_effect(wiring: Wiring, record: SuspensionRecord) -> SuspensionRecord:
    while (record := (await wiring.desk.tick(record.id)).record).status is Status.PENDING:
        pass  # the store's clock decides, and nothing else does
    return record


@pytest.mark.parametrize("given", [{"grant": {"for_s": 3600}}, OFFER])
async def test_grant_or_offer_waits_for_its_decision(wiring: Wiring, given: dict[str, Any]) -> None:
    deferred = await granting.decide(wiring, (await granting.put(wiring, 100)).record, **given)
    undoable = deferred.items[0].undoable
    assert undoable is not None
    assert undoable.grant is not None
    with pytest.raises(NotFound):
        await wiring.feature(Granting).find_use(undoable.grant.id)
    decided = await take_effect(wiring, deferred)
    assert decided.items[0].decisions[0].grant_id == undoable.grant.id
    use = await wiring.feature(Granting).find_use(undoable.grant.id)
    assert use.grant.find_state(await wiring.feature(Granting).now_ms()) is GrantState.IN_FORCE


async def test_undone_decision_grants_nothing(wiring: Wiring) -> None:
    deferred = await granting.decide(wiring, (await granting.put(wiring, 100)).record, grant={"for_s": 3600})
    undone = (await wiring.desk.retract(deferred.id, "i1", person("anna"))).record
    assert undone.items[0].undoable is None
    assert await wiring.feature(Granting).list_uses() == []


@pytest.mark.parametrize("policy", [mandating.POLICY])
async def test_plan_waits_for_its_approval(wiring: Wiring) -> None:
    proposed = (await mandating.propose(wiring)).record
    deferred = (await mandating.decide(wiring, proposed)).record
    mandates = wiring.feature(Granting).mandates
    assert await mandates.find_use(name_mandate(proposed.id)) is None
    await take_effect(wiring, deferred)
    use = await mandates.find_use(name_mandate(proposed.id))
    assert use is not None
    assert [granter.id for granter in use.grant.granters] == ["anna"]


@pytest.mark.parametrize("policy", [learning.POLICY])
async def test_denial_suspends_learned_grants_when_it_takes_effect(wiring: Wiring, settings: Settings) -> None:
    waiting = await learning.put(wiring, 25)
    async with assemble(settings.model_copy(update={"undo": None})) as plain:
        made = await learning.put_in_force(plain)
    deferred = await learning.decide(wiring, waiting, "deny")
    assert await learning.find_state(wiring, made) is GrantState.IN_FORCE
    await take_effect(wiring, deferred)
    assert await learning.find_state(wiring, made) is GrantState.SUSPENDED
