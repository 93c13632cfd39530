"""A person reinstates a learned grant that a denial suspended, after reading each denied call."""

import pytest

from sayso.core.records.decisions import Actor, ActorKind
from sayso.core.records.permissions import Grant, GrantState
from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Conflict, NotAllowed, NotFound
from service.assembly import assemble
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting, propose_learned, reinstate
from tests.builders import person
from tests.service.features.permissions.test_learning import (  # noqa: F401
    POLICY,
    decide,
    find_state,
    is_asked,
    propose,
    put,
    put_in_force,
    settings,
    teach,
    wiring,
    write_rules,
)


async def suspend(wiring: Wiring, amount: object = 25) -> tuple[Grant, SuspensionRecord]:  # noqa: F811
    """Put a grant in force and let Anna deny a call that it covers."""
    waiting = await put(wiring, amount)
    made = await put_in_force(wiring)
    await decide(wiring, waiting, "deny")
    assert await find_state(wiring, made) is GrantState.SUSPENDED
    return made, waiting


async def test_reinstated_grant_lets_calls_run_again(wiring: Wiring) -> None:  # noqa: F811
    made, denied = await suspend(wiring)
    assert is_asked(await put(wiring, 10))
    with pytest.raises(NotAllowed):
        await reinstate(wiring, made.id, Actor(id="demo", kind=ActorKind.AGENT))
    with pytest.raises(NotAllowed, match="Only anna, ben can grant this"):
        await reinstate(wiring, made.id, person("carla"))
    again = await reinstate(wiring, made.id, person("anna"))
    assert ([one.id for one in again.granters], again.until_ms) == (["anna"], made.until_ms)
    (overruled,) = again.overruled
    assert (overruled.by, overruled.denial.by, overruled.denial.suspension_id) == ("anna", "anna", denied.id)
    assert not is_asked(await put(wiring, 10))
    await teach(wiring, 10, order="B")
    await propose_learned(wiring)
    assert await find_state(wiring, made) is GrantState.IN_FORCE, "the same denial does not suspend it twice"
    with pytest.raises(Conflict, match="cannot be reinstated: it is in force"):
        await reinstate(wiring, made.id, person("anna"))
    with pytest.raises(NotFound):
        await reinstate(wiring, "gra_none", person("anna"))


async def test_next_denial_suspends_a_reinstated_grant(wiring: Wiring) -> None:  # noqa: F811
    waiting = await put(wiring, 20)
    made, _ = await suspend(wiring)
    await reinstate(wiring, made.id, person("ben"))
    await decide(wiring, waiting, "deny")
    assert await find_state(wiring, made) is GrantState.SUSPENDED
    assert is_asked(await put(wiring, 10))
    await reinstate(wiring, made.id, person("ben"))
    assert not is_asked(await put(wiring, 10))


async def test_each_denial_is_overruled_by_itself(wiring: Wiring) -> None:  # noqa: F811
    others = [await put(wiring, 20), await put(wiring, 31)]
    made, first = await suspend(wiring)
    for one in others:
        await decide(wiring, one, "deny")
    still = await reinstate(wiring, made.id, person("ben"))
    assert still.denial is not None
    assert still.denial.suspension_id == others[0].id
    assert await find_state(wiring, made) is GrantState.SUSPENDED
    assert is_asked(await put(wiring, 10))
    again = await reinstate(wiring, made.id, person("ben"))
    assert again.denial is None, "it does not cover the third denied call"
    assert [one.denial.suspension_id for one in again.overruled] == [first.id, others[0].id]
    assert not is_asked(await put(wiring, 10))


async def test_proposal_returns_to_probation(wiring: Wiring) -> None:  # noqa: F811
    made = await propose(wiring)
    await decide(wiring, await put(wiring, 25), "deny")
    await reinstate(wiring, made.id, person("ben"))
    assert await find_state(wiring, made) is GrantState.PROBATION
    with pytest.raises(Conflict, match="on probation: people have approved 0 of the 2"):
        await wiring.feature(Granting).confirm(made.id, person("ben"))
    await teach(wiring, 10, 20)
    assert is_asked(await put(wiring, 10))
    await wiring.feature(Granting).confirm(made.id, person("ben"))
    assert not is_asked(await put(wiring, 10))


async def test_two_people_reinstate_where_the_rule_asks_for_two(settings: Settings, wiring: Wiring) -> None:  # noqa: F811
    async with assemble(write_rules(settings, "two", POLICY.replace("count: 5", "people: 2"))) as two:
        waiting = await put(two, 25)
        made = await put_in_force(two)
        await two.feature(Granting).confirm(made.id, person("anna"))
        await decide(two, waiting, "deny")
        await reinstate(two, made.id, person("ben"))
        assert await find_state(two, made) is GrantState.WAITING
        assert is_asked(await put(two, 10))
        with pytest.raises(Conflict, match="You have granted it already"):
            await two.feature(Granting).confirm(made.id, person("ben"))
        await two.feature(Granting).confirm(made.id, person("anna"))
        assert not is_asked(await put(two, 10))


async def test_nothing_void_over_or_replaced_is_reinstated(settings: Settings, wiring: Wiring) -> None:  # noqa: F811
    made, _ = await suspend(wiring)
    async with assemble(write_rules(settings, "changed", POLICY.replace("count: 5", "count: 6"))) as changed:
        with pytest.raises(Conflict, match="so the grant is void"):
            await reinstate(changed, made.id, person("ben"))
    store = wiring.feature(Granting)._store
    over = made.model_copy(
        update={"id": "gra_over", "denial": (await wiring.feature(Granting).find_use(made.id)).grant.denial}
    )
    await wiring.feature(Granting).lessons.suspend([over.model_copy(update={"until_ms": over.at_ms})])
    with pytest.raises(Conflict, match="or its time is over"):
        await reinstate(wiring, "gra_over", person("ben"))
    await store.change("gra_over", lambda grant: grant.model_copy(update={"until_ms": made.until_ms, "denial": None}))
    with pytest.raises(Conflict, match="Grant gra_over of like calls has taken its place"):
        await reinstate(wiring, made.id, person("ben"))
