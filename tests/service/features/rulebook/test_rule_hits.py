"""What a commit notes about rules: hits by day, and the last items that each rule asked for."""

from typing import Any

from redis.asyncio import Redis

from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import Change
from sayso.core.transitions.deciding import decide, suspend
from service.core.store.rules import MOST_ITEMS, RuleStore, count_hits, list_asked
from service.core.store.suspensions.saving import Suspensions
from tests.builders import store_of
from tests.sayso.samples import T0, ask, draft, word


def judged(**data: Any) -> Event:
    return Event(EventType.POLICY_DECISION, data)


def test_count_hits_counts_rules_and_the_default_but_no_errors() -> None:
    events = [
        judged(policy_id="a", rule_version="1"),
        judged(policy_id="a", rule_version="1"),
        judged(policy_id=None, rule_version="1"),
        judged(policy_id=None, rule_version="1", error="rule b: no such key"),
        judged(policy_id=None, matched_rules=[]),
        Event(EventType.WARNING, {"policy_id": "a"}),
    ]
    assert count_hits(events) == {"a": 2, "-": 1}


def test_list_asked_names_new_open_items_once() -> None:
    change = suspend(draft(), (ask(), ask(index=1).model_copy(update={"rule_id": None})), T0)
    assert list_asked(None, change) == {"refunds": ["sus_1 i1"], "-": ["sus_1 i2"]}
    assert list_asked(change.record, decide(change.record, word(change.record), T0)) == {}
    assert list_asked(None, Change(change.record, following=change.record.model_copy(update={"id": "sus_2"}))) == {
        "refunds": ["sus_1 i1", "sus_2 i1"],
        "-": ["sus_1 i2", "sus_2 i2"],
    }


async def test_hits_and_items_are_saved_with_the_suspension(redis: Redis) -> None:
    suspensions, rules = Suspensions(store_of(redis)), RuleStore(store_of(redis))
    assert await rules.count_hits(7) == {}
    for number in range(MOST_ITEMS + 2):

        def begin(now_ms: int, suspension_id: str = f"sus_{number}") -> Change:
            change = suspend(draft(id=suspension_id), (ask(),), now_ms)
            return change._replace(events=(*change.events, judged(policy_id="refunds", rule_version="1")))

        await suspensions.create(f"sus_{number}", begin)
    assert await rules.count_hits(1) == {"refunds": MOST_ITEMS + 2}
    newest = [(f"sus_{number}", "i1") for number in range(MOST_ITEMS + 1, 1, -1)]
    assert await rules.list_asked("refunds") == newest
    assert await rules.list_asked("none") == []
