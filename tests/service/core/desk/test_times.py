"""Rules of the desk read the store's time, and record it with the judgement."""

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.events import EventType
from sayso.core.records.freezes import Revocations
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.errors import Withdrawn
from service.core.wiring import Wiring
from tests.builders import REFUND, approve, run_ref

HEAD = "version: 1\ndefault: request_approval\nrules:\n"
DENIED = "  - {id: nights, tool: refund, when: now > timestamp('2020-01-01T00:00:00Z'), action: deny}\n"
SHADOW = "  - {id: strict, tool: refund, action: deny, mode: shadow}\n"
CALL = ExternalCall(ToolCall(call_id="c0", index=0, name="refund", args={"order": "A", "amount": 5}), REFUND)


@pytest.fixture
def rules() -> str:
    return HEAD + SHADOW


async def put(wiring: Wiring) -> SuspensionRecord:
    return (await wiring.desk.suspend(run_ref(), (CALL,), ResumeSpec(mode="poll"))).record


async def judgement(wiring: Wiring, record: SuspensionRecord) -> dict[str, object]:
    trail = await wiring.runs.trail(record.run.id, limit=50)
    return dict(next(one.data for one in trail if one.type == EventType.POLICY_DECISION))


async def test_judgement_records_the_stores_time_where_rules_read_it(wiring: Wiring) -> None:
    before_ms = await wiring.desk.suspensions.read_time_ms()
    plain = await put(wiring)
    assert "at_ms" not in await judgement(wiring, plain)
    assert plain.items[0].judged_at_ms is None
    wiring.settings.policy.write_text(HEAD + DENIED)
    record = await put(wiring)
    data = await judgement(wiring, record)
    assert (data["action"], data["policy_id"]) == ("deny", "nights")
    at_ms = record.items[0].judged_at_ms
    assert data["at_ms"] == at_ms
    assert at_ms is not None
    assert before_ms <= at_ms <= record.created_at_ms + 1_000


async def test_shadow_rules_are_counted_apart(wiring: Wiring) -> None:
    records = [await put(wiring) for _ in range(3)]
    assert (await judgement(wiring, records[0]))["shadow"] == [{"rule_id": "strict", "action": "deny"}]
    assert await wiring.rules.count_hits(1) == {"-": 3}
    assert await wiring.rules.count_shadow_hits("strict", 1) == {"deny": 3}
    assert await wiring.rules.count_shadow_hits("other", 1) == {}


async def test_client_cannot_redeem_what_an_absolute_rule_denies_at_the_start(wiring: Wiring) -> None:
    record = await approve(wiring, await put(wiring))
    hard = "  - {id: closed, tool: refund, valid_from: 2020-01-01, action: deny, absolute: true}\n"
    wiring.settings.policy.write_text(HEAD + hard)
    with pytest.raises(Withdrawn, match="Nobody can lift this"):
        await wiring.desk.client_redeem(record.id, "i1", "k", Revocations())
