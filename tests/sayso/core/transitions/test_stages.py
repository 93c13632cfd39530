"""Items in stages: who decides when, what the next stage sees, and what an approval in each of them leads to."""

from typing import Any

import pytest
from pydantic import ValidationError

from sayso.core.policy.strictness import is_stricter, state_terms, strictest_terms
from sayso.core.records.decisions import ConfirmRequest, Verdict
from sayso.core.records.deliveries import DeliveryState
from sayso.core.records.items import ItemKind
from sayso.core.records.suspensions import Change, Status, SuspensionRecord
from sayso.core.records.terms import EscalationStep, Fallback, FallbackAction, Quorum, RuleTerms, Stage
from sayso.core.sentences.items import describe_approval, describe_ineligibility
from sayso.core.sentences.stages import describe_stages
from sayso.core.transitions.deadlines import escalate, expire
from sayso.core.transitions.deciding import decide, find_own, retract, void_decisions
from sayso.core.transitions.deliveries import card_version, needs_attempt
from sayso.core.transitions.inquiring import confirm, digest_version
from sayso.core.transitions.quorum import find_args, needs_confirmation, take_effect
from sayso.errors import AlreadyDecided, Conflict, NotAllowed, StaleDigest
from tests.sayso.samples import T0, ask, pending, person, types_of, word

SUPPORT, FINANCE = "group:support", "group:finance"
TWO = (Stage(reviewers=(SUPPORT,)), Stage(reviewers=(FINANCE,), quorum=Quorum(approve=2)))


def staged(**terms: Any) -> SuspensionRecord:
    return pending(ask(**{"stages": TWO, **terms}))


def act(record: SuspensionRecord, by: str, *groups: str, action: str = "approve", **fields: Any) -> Change:
    made = word(record, action, by, **{"id": f"dec_{by}_{action}", **fields})
    decision = made.model_copy(update={"by": person(by, *groups)})
    return decide(record, decision, T0 + 1)


def passed(**terms: Any) -> SuspensionRecord:
    """Return a suspension whose item kim of support has passed on to finance."""
    return act(staged(**terms), "kim", "support").record


def test_approval_of_a_stage_starts_the_next_and_the_last_decides() -> None:
    record = staged()
    first = act(record, "kim", "support")
    assert types_of(first) == ["decision_recorded", "stage_started"]
    item = first.record.items[0]
    assert (item.open, item.terms.stage, item.terms.reviewers) == (True, 1, (FINANCE,))
    assert first.events[1].data["stage"] == first.events[1].data["stages"] == 2
    assert item.digest != record.items[0].digest
    second = act(first.record, "fay", "finance")
    assert types_of(second) == ["decision_recorded"]
    last = act(second.record, "fin", "finance")
    outcome = last.record.items[0].outcome
    assert outcome is not None
    assert (outcome.verdict, last.record.status) == (Verdict.APPROVED, Status.DECIDED)
    assert [(made.by.id, made.stage) for made in last.record.items[0].decisions] == [
        ("kim", 0), ("fay", 1), ("fin", 1),
    ]  # fmt: skip


def test_stages_without_edits_and_with_the_same_quorum_have_different_digests() -> None:
    alike = (Stage(reviewers=("ada",)), Stage(reviewers=("ben",)))
    record = pending(ask(stages=alike))
    moved = decide(record, word(record), T0 + 1).record
    assert moved.items[0].digest != record.items[0].digest
    with pytest.raises(StaleDigest):
        decide(moved, word(record, by="ben"), T0 + 2)


def test_approval_that_completes_no_stage_waits_for_no_undo() -> None:
    """The first of two in a stage takes effect at once; the second can be undone."""
    stages = (TWO[1], TWO[0])
    first = act(pending(ask(stages=stages, undo="5s")), "fay", "finance")
    assert types_of(first) == ["decision_recorded"]
    assert types_of(act(first.record, "fin", "finance")) == ["decision_deferred"]


def test_only_the_current_stage_decides() -> None:
    with pytest.raises(NotAllowed, match="Only group:support can decide"):
        act(staged(), "fay", "finance")
    with pytest.raises(NotAllowed, match="Only group:finance can decide"):
        act(passed(), "kit", "support")


def test_nobody_serves_in_two_stages() -> None:
    record = act(staged(), "kim", "support", "finance").record
    with pytest.raises(AlreadyDecided):
        act(record, "kim", "support", "finance", id="dec_again")
    sentence = describe_ineligibility(record, record.items[0], person("kim", "finance"))
    assert sentence == "You approved an earlier stage, so others must approve this one."


@pytest.mark.parametrize("record", [staged(), passed()])
def test_denial_in_any_stage_denies(record: SuspensionRecord) -> None:
    outcome = act(record, "max", "support", "finance", action="deny").record.items[0].outcome
    assert outcome is not None
    assert outcome.verdict is Verdict.DENIED


def test_next_stage_keeps_a_call_that_nobody_edited() -> None:
    before, after = staged().items[0], passed().items[0]
    assert (after.tool, after.original, after.requested) == (before.tool, None, "")


def test_next_stage_decides_on_the_edited_call() -> None:
    args = {"order": "A-0", "amount": 100}
    moved = act(staged(), "kim", "support", args=args).record
    item = moved.items[0]
    assert (item.tool.args, item.original) == (args, {"order": "A-0", "amount": 250.5})
    again = {"order": "A-0", "amount": 90}
    first = act(moved, "fay", "finance", args=again).record
    decided = act(first, "fin", "finance", args=again).record.items[0]
    assert decided.outcome is not None
    assert (decided.outcome.args, decided.requested) == (again, item.requested)


def test_approvals_of_an_earlier_stage_count_for_no_later_quorum() -> None:
    item = passed().items[0]
    assert len(item.decisions) == 1
    assert item.current == ()
    assert find_own(item, "kim") is None


def test_a_passed_stage_cannot_be_taken_back() -> None:
    record = passed()
    with pytest.raises(Conflict, match="no decision on this item to take back"):
        retract(record, "i1", person("kim", "support"), T0 + 2)
    assert void_decisions(record, ("kim",), T0 + 2).events == ()


def test_a_deferred_approval_starts_the_stage_when_it_takes_effect() -> None:
    change = act(staged(undo="5s"), "kim", "support")
    assert types_of(change) == ["decision_deferred"]
    assert types_of(take_effect(change.record, T0 + 5_001)) == ["decision_recorded", "stage_started"]
    taken = retract(change.record, "i1", person("kim", "support"), T0 + 2).record
    assert taken.items[0].terms.stage == 0


def test_escalation_joins_the_current_and_later_stages_and_the_deadline_is_of_all() -> None:
    steps = (EscalationStep(after_s=60, reviewers=("boss",)),)
    record = escalate(staged(escalate=steps), T0 + 60_000).record
    assert record.items[0].terms.reviewers == (SUPPORT, "boss")
    moved = act(record, "kim", "support").record
    assert moved.items[0].terms.reviewers == (FINANCE, "boss")
    assert moved.items[0].terms.deadline_at_ms == record.items[0].terms.deadline_at_ms
    late = expire(passed(fallback=Fallback(action=FallbackAction.DENY)), T0 + 300_000).record
    assert late.items[0].outcome is not None
    assert late.items[0].outcome.verdict is Verdict.DENIED


def test_cards_go_to_the_reviewers_of_a_stage_when_it_begins() -> None:
    record = staged(channels=("mail",), stages=(Stage(reviewers=("kim", "max")), Stage(reviewers=("max", "fay"))))
    item = record.items[0]
    assert [card.person for card in item.deliveries] == ["kim", "max"]
    sent = tuple(card.model_copy(update={"state": DeliveryState.SENT}) for card in item.deliveries)
    moved = act(record.with_item(item.model_copy(update={"deliveries": sent})), "kim").record
    cards = {card.person: card for card in moved.items[0].deliveries}
    assert (cards["fay"].stage, cards["fay"].state) == (1, DeliveryState.QUEUED)
    assert cards["max"].reminded < moved.items[0].reminders, "who has a card is reminded of it"
    shown = {
        name: card.model_copy(update={"shown": card_version(moved, moved.items[0])}) for name, card in cards.items()
    }
    wanted = [name for name, card in shown.items() if needs_attempt(moved, moved.items[0], card)]
    assert wanted == ["max", "fay"]
    assert "kim" not in {card.person for card in act(record, "kim").record.items[0].deliveries}, "nothing was sent"


def test_sentences_say_which_stage_is_now_and_what_an_approval_leads_to() -> None:
    record = staged()
    item = record.items[0]
    assert describe_stages(item) == "1 the group support: now, 2 the group finance: next"
    told = describe_approval(record, item, person("kim", "support"), item.tool.args)
    assert told == "Your approval sends nothing yet: the group finance must approve next."
    assert describe_stages(passed().items[0]) == "1 the group support: done (kim), 2 the group finance: now"


def test_an_item_that_takes_a_value_has_the_last_stage_alone() -> None:
    item = pending(ask(kind=ItemKind.INPUT, stages=TWO)).items[0]
    assert (item.terms.stages, item.terms.reviewers, item.terms.quorum.approve) == ((), (FINANCE,), 2)


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        ({"stages": TWO, "reviewers": ("ada",)}, "move reviewers into a stage, or remove stages"),
        ({"stages": TWO, "quorum": Quorum(approve=2)}, "move quorum into a stage, or remove stages"),
        ({"stages": TWO[:1]}, "at least 2 items"),
    ],
)
def test_stages_beside_other_reviewers_are_refused(terms: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        RuleTerms(**terms)


@pytest.mark.parametrize(
    ("stage", "problem"),
    [
        ({"reviewers": ()}, "at least 1 item"),
        ({"reviewers": ("ada",), "quorum": Quorum(approve=2)}, "exceeds the 1 reviewers of its stage"),
        ({"reviewers": ("ada",), "quorum": Quorum(approve=0)}, "a stage needs an approval"),
        ({"reviewers": ("ada",), "quorum": Quorum(each_of=("ben",))}, "each_of names ben"),
    ],
)
def test_stages_that_nobody_can_pass_are_refused(stage: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        Stage(**stage)


def test_strictest_terms_have_the_stages_of_all() -> None:
    legal = RuleTerms(reviewers=("group:legal",), quorum=Quorum(approve=2))
    joined = strictest_terms([RuleTerms(stages=TWO), legal, RuleTerms(stages=TWO)])
    assert joined.stages == (*TWO, Stage(reviewers=("group:legal",), quorum=Quorum(approve=2)))
    assert joined.reviewers == ()
    raised = strictest_terms([RuleTerms(stages=TWO), RuleTerms(quorum=Quorum(approve=3))])
    assert [stage.quorum.approve for stage in raised.stages] == [1, 3]


def test_other_stages_are_stricter_and_the_same_are_not() -> None:
    frozen = passed().items[0].terms
    assert not is_stricter(RuleTerms(stages=TWO), frozen)
    assert is_stricter(RuleTerms(stages=TWO[::-1]), frozen)
    assert is_stricter(RuleTerms(stages=TWO), pending().items[0].terms)
    assert is_stricter(RuleTerms(reviewers=("ada",)), frozen)
    assert state_terms(frozen).stages == TWO


def test_acting_user_confirms_beside_the_stages_and_anew_after_an_edit() -> None:
    record = staged(confirm_by="mara", stages=(Stage(reviewers=("ada",)), Stage(reviewers=("ben",))))
    item = record.items[0]
    confirmed = _confirm(record)
    both = act(act(confirmed, "ada").record, "ben").record.items[0]
    assert both.outcome is not None
    assert both.outcome.verdict is Verdict.APPROVED
    edited = act(confirmed, "ada", args={**item.tool.args, "amount": 1}).record
    waiting = act(edited, "ben").record
    assert waiting.items[0].open
    assert needs_confirmation(waiting.items[0])
    done = _confirm(waiting, "con_2").items[0]
    assert done.outcome is not None
    assert done.outcome.may_run


def _confirm(record: SuspensionRecord, name: str = "con_1") -> SuspensionRecord:
    item = record.items[0]
    digest = digest_version(record, item, find_args(item) or item.tool.args)
    return confirm(record, "i1", ConfirmRequest(action="confirm", digest=digest), name, person("mara"), T0 + 1).record
