"""A grant ends with its rule, its reviewer and its tool's definition, and at once in every process when revoked."""

from collections.abc import AsyncIterator

import pytest

from sayso.core.records.suspensions import SuspensionRecord
from sayso.errors import Withdrawn
from service.assembly import assemble
from service.core.wiring import Wiring
from service.features.permissions.desk import Granting
from tests.builders import REFUND, person
from tests.service.features.permissions.test_granting import POLICY, make, put, redeem, verdicts, wiring

__all__ = ["wiring"]

RULE = "{longest: 1d, count: 10, sum: {of: args.amount, max: 1000}, by: args.order}"
CHANGES = {
    "other terms": POLICY.replace(f"grants: {RULE}", f"grants: {RULE}\n    terms: {{reviewers: [ben]}}", 1),
    "other condition": POLICY.replace("    tool: refund\n", "    tool: refund\n    when: args.amount < 5000\n", 1),
    "fewer calls": POLICY.replace("count: 10", "count: 9"),
    "grants no more": POLICY.replace(f"    grants: {RULE}\n", ""),
    "denies": POLICY.replace(f"    action: request_approval\n    grants: {RULE}\n", "    action: deny\n"),
    "disabled": POLICY.replace("  - id: refunds\n", "  - id: refunds\n    enabled: false\n"),
    "another id": POLICY.replace("  - id: refunds\n", "  - id: repayments\n"),
    "a stricter rule before it": POLICY
    + "  - {id: pause, priority: 900, tool: refund, action: request_approval, reason: Wait for the audit.}\n",
}


@pytest.fixture
def rules() -> str:
    return POLICY


@pytest.fixture
async def other(wiring: Wiring) -> AsyncIterator[Wiring]:
    """Another process of the same desk."""
    async with assemble(wiring.settings) as wired:
        yield wired


async def allow(wiring: Wiring) -> SuspensionRecord:
    """Have a grant allow a call, whose permit nobody has redeemed."""
    record = (await put(wiring, 100)).record
    assert verdicts(record) == ["approved"]
    return record


@pytest.mark.parametrize("change", CHANGES)
async def test_grant_ends_with_its_rule(wiring: Wiring, change: str) -> None:
    """New calls are judged without it, and permits that it gave are void."""
    await make(wiring)
    waiting = await allow(wiring)
    assert CHANGES[change] != POLICY
    path = wiring.settings.home / "changed.yaml"
    path.write_text(CHANGES[change])
    async with assemble(wiring.settings.model_copy(update={"policy": path})) as changed:
        assert verdicts(await put(changed, 100)) == ["denied" if change == "denies" else "asked"]
        with pytest.raises(Withdrawn):
            await redeem(changed, waiting)


async def test_revoked_grant_is_void_at_once_in_another_process(wiring: Wiring, other: Wiring) -> None:
    """No cache may hold it: the next step of another process meets the revocation, however soon it follows."""
    made = await make(wiring)
    waiting, started = await allow(other), await allow(other)
    await redeem(other, started)
    await wiring.feature(Granting).revoke(made.id, person("ben"))
    with pytest.raises(Withdrawn, match=f"Grant {made.id}, which allowed it, no longer does"):
        await redeem(other, waiting)
    assert verdicts(await put(other, 100)) == ["asked"]
    assert (await redeem(other, started)).record.items[0].permit is not None, "it has started already"


async def test_grant_ends_with_its_reviewer_in_another_process(wiring: Wiring, other: Wiring) -> None:
    await make(wiring)
    waiting = await allow(other)
    await wiring.reviewers.deactivate("anna")
    assert verdicts(await put(other, 100)) == ["asked"]
    with pytest.raises(Withdrawn):
        await redeem(other, waiting)


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "Something else."},
        {"parameters": {"type": "object"}},
        {"idempotent": True},
    ],
)
async def test_grant_ends_with_the_definition_of_its_tool(wiring: Wiring, changed: dict[str, object]) -> None:
    await make(wiring)
    await allow(wiring)
    assert verdicts(await put(wiring, 100, tool=REFUND.model_copy(update=changed))) == ["asked"]
