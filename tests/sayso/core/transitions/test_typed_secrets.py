"""Secrets that people type, as a value or in an edit, are masked in what runs report afterwards."""

from typing import Any

from sayso.core.records.events import Event, EventType
from sayso.core.records.items import ItemKind
from sayso.core.records.suspensions import RunEnd, RunStatus, SuspensionRecord
from sayso.core.text.redaction import MASK
from sayso.core.transitions.closing import list_typed, mask_contents, mask_end
from sayso.core.transitions.deciding import decide
from sayso.core.transitions.permits import doubt_intent
from tests.sayso.samples import T0, ask, intent, pending, word

TYPED = "hunter-22"


def given_value(**terms: Any) -> SuspensionRecord:
    """Return a record whose item got a value."""
    asked = pending(ask(kind=ItemKind.INPUT, **terms))
    return decide(asked, word(asked, "value", value=TYPED), T0).record


def edited(**terms: Any) -> SuspensionRecord:
    """Return a record of which one of two reviewers edited the call."""
    asked = pending(ask(quorum={"approve": 2}, **terms))
    return decide(asked, word(asked, args={"order": TYPED, "amount": 1}), T0).record


def ended(record: SuspensionRecord, **end: Any) -> SuspensionRecord:
    return record.model_copy(update={"end": RunEnd(status=RunStatus.FAILED, **end)})


def test_value_and_edit_are_typed_where_the_rule_names_them() -> None:
    assert list_typed(given_value(secrets=("amount",))) == {TYPED}
    assert list_typed(edited(secrets=("order",))) == {TYPED}
    assert list_typed(given_value()) == list_typed(edited()) == frozenset()


def test_earlier_ones_stay_and_an_empty_one_is_none() -> None:
    assert list_typed(pending().model_copy(update={"typed": (TYPED, "")})) == {TYPED}


def test_value_is_typed_for_its_target_before_it_decides() -> None:
    asked = pending(ask(kind=ItemKind.INPUT, secrets=("*",)))
    waiting = asked.items[0].model_copy(update={"decisions": (word(asked, "value", value=TYPED),)})
    assert list_typed(asked.model_copy(update={"items": (waiting,)})) == {TYPED}
    untargeted = waiting.model_copy(update={"target_arg": None})
    assert list_typed(asked.model_copy(update={"items": (untargeted,)})) == frozenset()


def test_denial_of_a_question_types_nothing() -> None:
    asked = pending(ask(kind=ItemKind.INPUT, secrets=("amount",)))
    assert list_typed(decide(asked, word(asked, "deny", message="no"), T0).record) == frozenset()


def test_choice_about_a_call_in_doubt_is_no_secret() -> None:
    record = given_value(secrets=("amount",))
    doubted = record.items[0].model_copy(update={"doubt": doubt_intent(intent())})
    assert list_typed(record.model_copy(update={"items": (doubted,)})) == frozenset()


def test_end_of_a_run_is_masked() -> None:
    record = given_value(secrets=("amount",))
    assert mask_end(record) is None
    masked = mask_end(ended(record, result={"said": f"used {TYPED}"}, error=f"bad {TYPED}"))
    assert masked == RunEnd(status=RunStatus.FAILED, result={"said": f"used {MASK}"}, error=f"bad {MASK}")
    assert mask_end(ended(record, result=TYPED)) == RunEnd(status=RunStatus.FAILED, result=MASK)
    plain = ended(given_value(), result=TYPED)
    assert mask_end(plain) is plain.end


def test_contents_of_events_are_masked_and_other_fields_stay() -> None:
    asked = pending(ask(secrets=("order",))).model_copy(update={"typed": (TYPED,)})
    written = Event(type=EventType.NOTE_WRITTEN, data={"text": f"{TYPED} of the order", "note_id": TYPED})
    other = Event(type=EventType.RUN_PAUSED, data={"note_id": TYPED})
    masked = mask_contents(asked, (written, other))
    assert masked[0].data == {"text": f"{MASK} of the order", "note_id": TYPED}
    assert masked[1] is other
    unmasked = (written,)
    assert mask_contents(pending(), unmasked) is unmasked


def test_arguments_that_the_rule_names_are_masked_in_events() -> None:
    asked = pending(ask(secrets=("account",)))
    called = asked.items[0].tool.model_copy(update={"args": {"account": TYPED}})
    record = asked.model_copy(update={"items": (asked.items[0].model_copy(update={"tool": called}),)})
    written = Event(type=EventType.NOTE_WRITTEN, data={"text": TYPED})
    assert mask_contents(record, (written,))[0].data == {"text": MASK}
