"""A fallback approves only items that a reviewer has seen."""

from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ActorKind, Verdict
from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.deadlines import expire, needs_sight, see
from sayso.core.transitions.deciding import decide, extend, suspend
from tests.sayso.samples import T0, ask, draft, pending, person, types_of, word

OVER = T0 + 300_000
AGENT = Actor(id="ada", kind=ActorKind.AGENT)


def unattended(**terms: Any) -> ItemDraft:
    """Return an item with fallback approve."""
    return ask(unattended_approval=True, fallback={"action": "approve", "message": "As agreed."}, **terms)


def verdict_of(record: SuspensionRecord) -> Verdict | None:
    outcome = record.items[0].outcome
    return outcome.verdict if outcome is not None else None


def test_unseen_item_is_denied_at_its_deadline() -> None:
    change = expire(pending(unattended()), OVER)
    assert verdict_of(change.record) == "denied"
    outcome = change.record.items[0].outcome
    assert outcome is not None
    assert (outcome.message or "").startswith("No reviewer saw it before ")
    assert not outcome.may_run


def test_seen_item_is_approved_at_its_deadline() -> None:
    seen = see(pending(unattended()), "i1", person("ada"), T0 + 1)
    assert types_of(seen) == ["item_seen"]
    assert (seen.record.items[0].seen_by, seen.record.items[0].seen_at_ms) == (person("ada"), T0 + 1)
    assert seen.record.items[0].digest == pending(unattended()).items[0].digest
    ended = expire(seen.record, OVER).record
    assert verdict_of(ended) == "approved"
    assert ended.items[0].outcome is not None
    assert ended.items[0].outcome.message == "As agreed."


@pytest.mark.parametrize(
    ("by", "terms"),
    [
        (person("bot"), {}),
        (AGENT, {}),
        (person("ada"), {"reviewers": ("ben",)}),
    ],
)
def test_see_by_others_changes_nothing(by: Actor, terms: dict[str, object]) -> None:
    record = pending(unattended(**terms))
    assert see(record, "i1", by, T0 + 1).record is record


def test_see_by_the_owner_with_self_approval() -> None:
    record = pending(unattended(no_self_approval=False))
    assert see(record, "i1", person("bot"), T0 + 1).record.items[0].seen_by == person("bot")


def test_see_as_a_member_of_a_named_group() -> None:
    record = pending(unattended(reviewers=("group:payments",)))
    assert see(record, "i1", person("ada", "sales"), T0 + 1).record is record
    seen = see(record, "i1", person("ada", "sales", "payments"), T0 + 1)
    assert seen.record.items[0].seen_by == person("ada", "payments")
    assert seen.events[0].data["by"]["groups"] == ["payments"]


def test_see_once_in_time_and_when_needed() -> None:
    record = pending(unattended())
    seen = see(record, "i1", person("ada"), OVER - 1).record
    assert see(seen, "i1", person("ben"), OVER - 1).record is seen
    assert see(record, "i1", person("ada"), OVER).record is record
    assert see(record, "i9", person("ada"), T0).record is record
    plain = pending(ask())
    assert see(plain, "i1", person("ada"), T0).record is plain


def test_see_decided_item_changes_nothing() -> None:
    record = pending(unattended(timeout_s=60), unattended())
    decided = expire(record, T0 + 60_000).record
    assert [item.open for item in decided.items] == [False, True]
    assert see(decided, "i1", person("ada"), T0 + 30_000).record is decided


def test_see_marks_only_its_item() -> None:
    seen = see(pending(unattended(), unattended()), "i2", person("ada"), T0).record
    assert [item.seen_by for item in seen.items] == [None, person("ada")]


def test_decision_below_quorum_counts_as_sighting() -> None:
    record = pending(unattended(quorum={"approve": 2}))
    one = decide(record, word(record), T0).record
    assert not needs_sight(one, one.items[0])
    assert verdict_of(expire(one, OVER).record) == "approved"


def test_a_decided_item_needs_no_sight() -> None:
    record = pending(unattended(), ask(1))
    decided = decide(record, word(record), T0).record
    assert not needs_sight(decided, decided.items[0])


def test_unseen_item_escalates_before_it_is_denied() -> None:
    steps = [{"after_s": 900, "reviewers": ["boss"]}]
    record = pending(unattended(reviewers=("ada",), escalate=steps))
    called = expire(record, OVER)
    assert types_of(called) == ["escalated"]
    assert called.record.items[0].terms.reviewers == ("ada", "boss")
    assert verdict_of(expire(called.record, OVER + 300_000).record) == "denied"
    seen = see(called.record, "i1", person("boss"), OVER + 1).record
    assert verdict_of(expire(seen, OVER + 300_000).record) == "approved"


def test_extend_keeps_the_sighting() -> None:
    record = see(pending(unattended(extend_by_s=600)), "i1", person("ada"), T0).record
    more = extend(record, "i1", OVER + 60_000, person("ben"), T0 + 1).record
    assert verdict_of(expire(more, OVER + 60_000).record) == "approved"


def test_item_without_time_needs_no_sighting() -> None:
    record = suspend(draft(), (unattended(timeout_s=0),), T0).record
    assert verdict_of(record) == "approved"
