"""A forward asks others to decide an item, widens nothing, and is over with a decision or a stage."""

from typing import Any

import pytest

from sayso.core.records.decisions import Actor, ForwardRequest
from sayso.core.records.deliveries import CardDelivery, DeliveryReport, DeliveryState
from sayso.core.records.items import MOST_FORWARDS, Drill, Item
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.sentences.deliveries import describe_forward, quote_forward
from sayso.core.transitions.deadlines import escalate, expire, remind
from sayso.core.transitions.deciding import ask_again, cancel, decide, retract
from sayso.core.transitions.deliveries import (
    card_version,
    forward,
    is_asked,
    move_cards,
    needs_attempt,
    record_deliveries,
)
from sayso.core.transitions.inquiring import claim
from sayso.errors import (
    AlreadyDecided,
    Conflict,
    DeadlinePassed,
    IllegalTransition,
    InvalidInput,
    NotAllowed,
    NotFound,
    SelfApproval,
    StaleDigest,
)
from tests.sayso.samples import T0, ask, pending, person, types_of, word

DEADLINE = T0 + 300_000
RULE: dict[str, Any] = {"channels": ("slack",), "reviewers": ("ada", "ben", "group:ops"), "remind_after_s": (100, 200)}
LATER = ({"after_s": 60, "reviewers": ("boss", "ada")},)


def asked(**terms: Any) -> SuspensionRecord:
    return pending(ask(**{**RULE, **terms}))


def hand_on(
    record: SuspensionRecord,
    to: str = "ben",
    *people: Actor,
    by: str = "ada",
    note: str = "",
    at_ms: int = T0 + 1,
    digest: str = "",
    name: str = "",
) -> Change:
    request = ForwardRequest(to=to, digest=digest or record.items[0].digest, note=note)
    return forward(record, "i1", request, name or f"fwd_{at_ms}", people or (person(to),), person(by), at_ms)


def only(record: SuspensionRecord) -> Item:
    (item,) = record.items
    return item


def sent(record: SuspensionRecord, *people: str) -> SuspensionRecord:
    """Return the record once the cards of these people were sent and show the item as it is."""
    item = only(record)
    reports = [
        DeliveryReport("i1", card.key, (_send(record, item, card),))
        for card in item.deliveries
        if not people or card.person in people
    ]
    return record_deliveries(record, reports, T0 + 5).record


def _send(record: SuspensionRecord, item: Item, card: CardDelivery) -> CardDelivery:
    done = {"state": DeliveryState.SENT, "shown": card_version(record, item), "reminded": item.reminders}
    return card.model_copy(update=done)


def due(record: SuspensionRecord) -> set[str]:
    """Return the people to whom a card, a new version or a reminder is due."""
    item = only(record)
    return {card.person for card in item.deliveries if needs_attempt(record, item, card)}


def reminded(record: SuspensionRecord) -> set[str]:
    item = only(record)
    cards = (card for card in item.deliveries if card.proven and is_asked(item, card))
    return {card.person for card in cards if card.reminded < item.reminders}


def test_forward_says_who_asked_whom_when_and_why() -> None:
    record = claim(asked(), "i1", person("ada"), T0).record
    change = hand_on(record, "ben", note=" You know this order. ", at_ms=T0 + 7)
    item = only(change.record)
    assert item.forwarded is not None
    given = item.forwarded
    assert (given.by.id, given.to, given.note, given.at_ms) == ("ada", "ben", "You know this order.", T0 + 7)
    assert types_of(change) == ["item_forwarded"]
    data = change.events[0].data
    assert (data["item_id"], data["by"]["id"], data["to"], data["note"]) == ("i1", "ada", "ben", given.note)
    before = only(record)
    assert (item.digest, item.terms, item.claim) == (before.digest, before.terms, None)
    assert change.record.due_at_ms == record.due_at_ms


def test_forward_keeps_the_claim_of_somebody_else() -> None:
    record = claim(asked(), "i1", person("ben"), T0).record
    assert only(hand_on(record).record).claim == only(record).claim


def test_recipient_alone_is_asked_and_reminded() -> None:
    record = sent(asked(), "ada", "ben")
    assert due(record) == {"group:ops"}
    forwarded = hand_on(record).record
    assert only(forwarded).asked_reviewers == ("ben",)
    assert reminded(forwarded) == {"ben"}
    assert due(forwarded) == {"ada", "ben"}  # both cards say who is asked; the group gets none
    forwarded = sent(forwarded, "ada", "ben")
    assert due(forwarded) == set()
    change = remind(forwarded, T0 + 100_000)
    assert change.events[0].data["reviewers"] == ["ben"]
    assert due(change.record) == reminded(change.record) == {"ben"}


def test_everybody_is_asked_again_once_the_recipient_has_decided() -> None:
    record = sent(hand_on(sent(asked(quorum={"approve": 2}), "ada", "ben")).record, "ben")
    decided = decide(record, word(record, by="ben", at_ms=T0 + 2), T0 + 2).record
    assert only(decided).forwarded is None
    assert only(decided).asked_reviewers == ("ada", "ben", "group:ops")
    assert due(decided) == {"ada", "ben", "group:ops"}
    again = retract(decided, "i1", person("ben"), T0 + 3).record
    assert only(again).asked_reviewers == ("ben",)


def test_decision_before_a_forward_leaves_it_in_force() -> None:
    record = asked(quorum={"approve": 2})
    decided = decide(record, word(record, by="ben", at_ms=T0 + 1), T0 + 1).record
    assert only(hand_on(decided, "group:ops", person("eve", "ops")).record).asked_reviewers == ("group:ops",)


def test_all_who_may_decide_still_may_and_the_outcome_ends_the_forward() -> None:
    record = hand_on(asked()).record
    for name in ("ada", "ben"):
        closed = decide(record, word(record, by=name, at_ms=T0 + 2), T0 + 2).record
        assert only(closed).outcome is not None
        assert only(closed).forwarded is None
    cancelled = cancel(record, person("root"), None, T0 + 2).record
    assert describe_forward(only(cancelled)) != ""
    assert due(cancelled) == set()


def test_new_recipient_gets_a_card_and_a_shared_card_is_repeated() -> None:
    record = sent(asked(reviewers=(), channels=("slack", "mail")))
    forwarded = hand_on(record, "zoe").record
    cards = {card.key: card for card in only(forwarded).deliveries}
    assert [*cards] == [("slack", ""), ("mail", ""), ("slack", "zoe"), ("mail", "zoe")]
    assert reminded(forwarded) == {""}
    assert due(forwarded) == {"", "zoe"}


def test_unsent_shared_card_waits_while_an_item_is_forwarded() -> None:
    forwarded = hand_on(asked(reviewers=()), "zoe").record
    assert due(forwarded) == {"zoe"}
    (_, own) = only(forwarded).deliveries
    shared = own.model_copy(update={"person": ""})  # its channel has one destination for all
    reported = record_deliveries(forwarded, [DeliveryReport("i1", own.key, (shared,))], T0 + 2).record
    assert only(reported).deliveries == (shared,)
    assert due(reported) == {""}


def test_failed_card_of_the_recipient_is_tried_anew() -> None:
    record = asked()
    (card,) = [card for card in only(record).deliveries if card.person == "ben"]
    failed = card.model_copy(update={"state": DeliveryState.FAILED, "tries": 9})
    record = record_deliveries(record, [DeliveryReport("i1", card.key, (failed,))], T0).record
    cards = [card for card in only(hand_on(record).record).deliveries if card.person == "ben"]
    assert [(card.state, card.tries) for card in cards] == [(DeliveryState.QUEUED, 0)]


def test_group_reaches_its_members_who_may_decide() -> None:
    record = asked(reviewers=("ada", "group:ops", "cid"), quorum={"approve": 2})
    record = decide(record, word(record, by="cid"), T0).record
    members = (person("eve", "ops"), person("bot", "ops"), person("cid", "ops"))
    forwarded = hand_on(record, "group:ops", *members).record
    assert due(forwarded) == {"eve"}  # "bot" requested the call
    assert only(forwarded).asked_reviewers == ("group:ops",)


def test_forward_again_replaces_and_the_same_changes_nothing() -> None:
    first = hand_on(asked(), note="Please.").record
    assert hand_on(first, note="Please. ", at_ms=T0 + 2).record is first
    assert hand_on(first, "group:ops", person("eve", "ops"), name="fwd_" + str(T0 + 1)).record is first
    second = hand_on(first, "ada", by="ben", at_ms=T0 + 2).record
    assert (only(second).asked_reviewers, due(second)) == (("ada",), {"ada"})
    other = hand_on(second, "group:ops", person("eve", "ops"), by="ben", at_ms=T0 + 3).record
    assert (len(only(other).forwards), due(other)) == (3, {"eve"})


def test_forward_is_limited() -> None:
    record = asked()
    for number in range(MOST_FORWARDS):
        by, to = ("ada", "ben") if number % 2 else ("ben", "ada")
        record = hand_on(record, to, by=by, at_ms=T0 + number).record
    last = hand_on(record, "ben", at_ms=T0 + MOST_FORWARDS - 1)
    assert last.record is record
    with pytest.raises(Conflict, match="10 times"):
        hand_on(record, "group:ops", person("eve", "ops"), at_ms=T0 + MOST_FORWARDS)


@pytest.mark.parametrize(
    ("to", "people", "refusal"),
    [
        ("eve", (person("eve"),), "eve may not decide this item. Only ben, group:ops can. Choose one of them"),
        ("bot", (person("bot"),), "bot requested this call"),
        ("nobody", (), "nobody is no active reviewer"),
        ("group:ops", (), "group:ops is no active reviewer"),
        ("group:ops", (person("bot", "ops"),), "bot requested this call"),
        ("group:other", (person("ben", "other"),), "group:other may not decide this item"),
    ],
)
def test_recipient_who_may_not_decide_is_refused(to: str, people: tuple[Actor, ...], refusal: str) -> None:
    record = asked()
    request = ForwardRequest(to=to, digest=only(record).digest)
    with pytest.raises(NotAllowed, match=refusal):
        forward(record, "i1", request, "fwd", people, person("ada"), T0 + 1)


def test_refusal_names_who_may_decide_instead() -> None:
    with pytest.raises(NotAllowed, match="Any other reviewer can"):
        hand_on(asked(reviewers=()), "bot")
    with pytest.raises(NotAllowed, match=r"Only you can\. Decide it"):
        hand_on(asked(reviewers=("ada", "bot")), "eve")


def test_recipient_of_an_earlier_stage_is_refused() -> None:
    stages = [{"reviewers": ["ada", "ben"]}, {"reviewers": ["cleo", "ben"]}]
    record = pending(ask(stages=stages, channels=("slack",)))
    forwarded = hand_on(record).record
    with pytest.raises(NotAllowed, match="cleo may not decide this item"):
        hand_on(record, "cleo")
    moved = decide(forwarded, word(forwarded, by="ben", at_ms=T0 + 1), T0 + 1).record  # in the same millisecond
    assert (only(moved).terms.stage, only(moved).forwarded) == (1, None)
    with pytest.raises(NotAllowed, match="ben has already decided"):
        hand_on(moved, "ben", by="cleo", at_ms=T0 + 2)


def test_who_may_not_decide_cannot_forward() -> None:
    record = asked()
    with pytest.raises(NotAllowed):
        hand_on(record, by="eve")
    with pytest.raises(SelfApproval):
        hand_on(record, by="bot")
    with pytest.raises(InvalidInput, match="yourself"):
        hand_on(record, "ada")
    with pytest.raises(StaleDigest):
        hand_on(record, digest="0" * 64)
    with pytest.raises(NotFound):
        forward(record, "i9", ForwardRequest(to="ben", digest="0" * 64), "fwd", (), person("ada"), T0)
    short = asked(quorum={"approve": 2})
    decided = decide(short, word(short), T0).record
    with pytest.raises(AlreadyDecided):
        hand_on(decided)


def test_late_closed_and_cancelled_items_are_not_forwarded() -> None:
    record = asked()
    with pytest.raises(DeadlinePassed):
        hand_on(record, at_ms=DEADLINE)
    request = ForwardRequest(to="ben", digest=only(record).digest)
    held = forward(record, "i1", request, "fwd", (person("ben"),), person("ada"), DEADLINE + 5, 6)
    assert only(held.record).forwarded is not None
    with pytest.raises(AlreadyDecided):
        hand_on(decide(record, word(record), T0).record)
    with pytest.raises(IllegalTransition):
        hand_on(cancel(record, person("root"), None, T0).record)


def test_call_that_only_its_acting_user_lets_run_is_not_forwarded() -> None:
    record = pending(ask(confirm_by="who.person"))
    item = only(record)
    record = record.with_item(item.model_copy(update={"terms": item.terms.model_copy(update={"confirm_by": "mia"})}))
    with pytest.raises(InvalidInput, match="Only mia"):
        hand_on(record)


def test_card_of_the_acting_user_never_waits() -> None:
    record = asked(reviewers=("ada", "ben"))
    item = only(record)
    confirmed = item.terms.model_copy(update={"confirm_by": "mia"})
    card = CardDelivery(channel="slack", person="mia")
    record = record.with_item(item.model_copy(update={"terms": confirmed, "deliveries": (*item.deliveries, card)}))
    assert due(hand_on(record).record) == {"mia", "ben"}


def test_escalation_joins_a_forward_and_the_deadline_stays() -> None:
    record = sent(asked(escalate=LATER), "ada", "ben")
    forwarded = sent(hand_on(record).record, "ada", "ben")
    escalated = escalate(forwarded, T0 + 60_000).record
    item = only(escalated)
    assert item.asked_reviewers == ("ben", "boss", "ada")
    assert item.terms.deadline_at_ms == DEADLINE
    assert reminded(escalated) == {"ada"}  # she was asked before the forward, and is asked anew
    cards = {card.person: card for card in item.deliveries}
    assert cards["boss"].state is DeliveryState.QUEUED
    assert item.reviewers_of(cards["ben"]) == ("ben",)
    assert item.reviewers_of(cards["boss"]) == item.reviewers_of(cards["ada"]) == ("boss", "ada")
    assert item.reviewers_of(cards["group:ops"]) == ("ada", "ben", "group:ops", "boss")


def test_forward_after_an_escalation_asks_its_recipient_alone() -> None:
    escalated = escalate(asked(escalate=LATER), T0 + 60_000).record
    assert only(hand_on(escalated, "boss", at_ms=T0 + 60_001).record).asked_reviewers == ("boss",)


def test_unreachable_recipient_lets_the_next_step_be_asked() -> None:
    forwarded = hand_on(sent(asked(escalate=LATER), "ada")).record
    (card,) = [card for card in only(forwarded).deliveries if card.person == "ben"]
    failed = card.model_copy(update={"state": DeliveryState.FAILED})
    change = record_deliveries(forwarded, [DeliveryReport("i1", card.key, (failed,))], T0 + 5)
    assert types_of(change) == ["card_failed", "escalated"]


def test_unreachable_step_after_a_forward_lets_the_next_one_be_asked() -> None:
    steps = ({"after_s": 60, "reviewers": ("boss",)}, {"after_s": 120, "reviewers": ("cleo",)})
    record = sent(hand_on(asked(escalate=steps)).record)
    escalated = escalate(record, T0 + 60_000).record
    (card,) = [card for card in only(escalated).deliveries if card.person == "boss"]
    failed = card.model_copy(update={"state": DeliveryState.FAILED})
    change = record_deliveries(escalated, [DeliveryReport("i1", card.key, (failed,))], T0 + 60_001)
    assert types_of(change) == ["card_failed", "escalated"]
    assert only(change.record).asked_reviewers == ("ben", "boss", "cleo")


def test_fallback_decides_a_forwarded_item() -> None:
    closed = expire(hand_on(asked()).record, DEADLINE).record
    assert only(closed).outcome is not None
    assert only(closed).forwarded is None


def test_card_of_an_absent_recipient_moves_to_the_delegate() -> None:
    moved = move_cards(hand_on(asked()).record, {"ben": ("cleo",)}, T0 + 2).record
    assert due(moved) == {"cleo"}


def test_item_that_is_asked_again_is_not_forwarded() -> None:
    forwarded = hand_on(asked()).record
    edited = word(forwarded, by="ben", args={"order": "A-0", "amount": 1.0})
    assert only(ask_again(forwarded, edited, ask(**RULE), T0 + 2).record).forwards == ()


def test_note_hides_secrets_of_the_call() -> None:
    asked_about = ask(**RULE, secrets=("order",))
    tool = asked_about.tool.model_copy(update={"args": {"order": "hunter22 secret", "amount": 1.0}})
    change = hand_on(pending(asked_about.model_copy(update={"tool": tool})), note="Is hunter22 secret right?")
    given = only(change.record).forwarded
    assert given is not None
    assert given.note == change.events[0].data["note"] != "Is hunter22 secret right?"
    assert "hunter22" not in given.note


def test_forwarded_drill_can_be_decided_by_all_reviewers_of_its_rule() -> None:
    item = only(asked())
    drill = Drill(template="t", signs=(), planted_by="root", reviewer="ada")
    record = asked().with_item(item.model_copy(update={"drill": drill}))
    with pytest.raises(NotAllowed):
        hand_on(record, "ada", by="ben")
    forwarded = hand_on(record).record
    assert only(decide(forwarded, word(forwarded, by="ben", at_ms=T0 + 2), T0 + 2).record).outcome is not None


def test_sentences_name_both_as_the_reader_sees_it() -> None:
    item = only(hand_on(asked(), "group:ops", person("eve", "ops"), note="Check\nthe order. " + "x" * 400).record)
    assert describe_forward(only(asked())) == quote_forward(only(asked())) == ""
    assert describe_forward(item) == "forwarded to the group ops by ada"
    assert describe_forward(item, person("ada")) == "you forwarded it to the group ops"
    assert describe_forward(item, person("eve", "ops")) == "forwarded to you by ada"
    assert describe_forward(item, person("ben")) == "forwarded to the group ops by ada"
    assert quote_forward(item, person("eve", "ops")).startswith("forwarded to you by ada: Check the order. xxx")
    assert len(quote_forward(item)) < 160
