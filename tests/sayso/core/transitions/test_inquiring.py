"""A reviewer asks the requester; the answer stands on the item, and the deadline may wait for it, within bounds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.records.items import LONGEST_TEXT, MOST_INQUIRIES
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.undoing import Reversal
from sayso.core.transitions.deadlines import escalate
from sayso.core.transitions.deciding import ask_again, decide
from sayso.core.transitions.deliveries import card_version
from sayso.core.transitions.inquiring import answer_inquiry, ask_requester, check_text
from sayso.errors import AlreadyDecided, Conflict, DeadlinePassed, InvalidInput, NotAllowed, NotFound
from tests.sayso.samples import T0, ask, pending, person, types_of, word

MINUTE_MS = 60_000
OWNER = person("bot")
WAITING: dict[str, Any] = {"timeout_s": 300, "extend_by_s": 600, "deadline_waits": True}


def asked(at_ms: int = T0, **terms: Any) -> SuspensionRecord:
    return ask_requester(pending(ask(**terms)), "i1", "inq_1", " Which order? ", person("ada"), at_ms).record


def answered(record: SuspensionRecord, at_ms: int, text: str = "A-1") -> SuspensionRecord:
    return answer_inquiry(record, "i1", "inq_1", text, OWNER, at_ms).record


def deadline(record: SuspensionRecord) -> int:
    return record.items[0].terms.deadline_at_ms - T0


def test_ask_requester_and_answer_stand_on_the_item() -> None:
    change = ask_requester(pending(), "i1", "inq_1", " Which order? ", person("ada"), T0)
    (event,) = change.events
    assert (event.type, event.data["text"], event.data["by"]["id"]) == ("requester_asked", "Which order?", "ada")
    saved = answer_inquiry(change.record, "i1", "inq_1", "A-1", OWNER, T0 + 5)
    assert types_of(saved) == ["requester_answered"]
    (inquiry,) = saved.record.items[0].inquiries
    assert (inquiry.text, inquiry.answer, inquiry.answered_at_ms) == ("Which order?", "A-1", T0 + 5)
    versions = [card_version(one, one.items[0]) for one in (pending(), change.record, saved.record)]
    assert len(set(versions)) == 3, "cards show the question and the answer"


def test_ask_requester_repeated_asks_once() -> None:
    record = asked()
    assert ask_requester(record, "i1", "inq_1", "Which order?", person("ada"), T0).record is record
    with pytest.raises(Conflict, match="has not answered the question of ada yet"):
        ask_requester(record, "i1", "inq_2", "Why?", person("ben"), T0)
    again = ask_requester(answered(record, T0), "i1", "inq_2", "Why?", person("ben"), T0)
    assert len(again.record.items[0].inquiries) == 2


def test_nobody_is_asked_about_an_undo() -> None:
    call = Reversal(run_id="run_1", suspension_id="sus_1", tool="refund", call_id="c7", index=0, at_ms=T0)
    record = pending(ask().model_copy(update={"reverses": call}))
    with pytest.raises(Conflict, match="Nobody requested this undo"):
        ask_requester(record, "i1", "inq_1", "Why?", person("ada"), T0)


def test_ask_requester_is_limited() -> None:
    record = pending()
    for number in range(MOST_INQUIRIES):
        record = ask_requester(record, "i1", f"inq_{number}", "Why?", person("ada"), T0).record
        record = answer_inquiry(record, "i1", f"inq_{number}", "So.", OWNER, T0).record
    with pytest.raises(Conflict, match="20 questions"):
        ask_requester(record, "i1", "inq_last", "Why?", person("ada"), T0)


@pytest.mark.parametrize("text", ["", "  ", "x" * 2_001])
def test_texts_have_one_to_2000_characters(text: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 2000"):
        ask_requester(pending(), "i1", "inq_1", text, person("ada"), T0)
    with pytest.raises(InvalidInput, match="1 to 2000"):
        answer_inquiry(asked(), "i1", "inq_1", text, OWNER, T0)


def test_ask_requester_needs_a_reviewer_in_time() -> None:
    record = pending(ask(reviewers=("ada",)))
    with pytest.raises(NotAllowed):
        ask_requester(record, "i1", "inq_1", "Why?", person("ben"), T0)
    with pytest.raises(DeadlinePassed):
        ask_requester(record, "i1", "inq_1", "Why?", person("ada"), T0 + 300_000)


def test_answer_inquiry_needs_the_owner_and_a_known_inquiry() -> None:
    record = asked()
    with pytest.raises(NotAllowed, match="Only bot"):
        answer_inquiry(record, "i1", "inq_1", "A-1", person("ada"), T0)
    with pytest.raises(NotFound, match="'inq_9'"):
        answer_inquiry(record, "i1", "inq_9", "A-1", OWNER, T0)
    with pytest.raises(DeadlinePassed):
        answer_inquiry(record, "i1", "inq_1", "A-1", OWNER, T0 + 300_000)
    closed = decide(pending(ask(), ask(1)), word(record), T0).record
    item = closed.items[0].model_copy(update={"inquiries": record.items[0].inquiries})
    closed = closed.model_copy(update={"items": (item, closed.items[1])})
    with pytest.raises(AlreadyDecided):
        answer_inquiry(closed, "i1", "inq_1", "A-1", OWNER, T0)


def test_answer_inquiry_counts_once() -> None:
    record = answered(asked(), T0)
    assert answer_inquiry(record, "i1", "inq_1", " A-1", OWNER, T0).record is record
    with pytest.raises(Conflict, match="answered before"):
        answer_inquiry(record, "i1", "inq_1", "A-2", OWNER, T0)


def test_deadline_does_not_wait_unless_the_terms_say_so() -> None:
    for terms in ({**WAITING, "deadline_waits": False}, {**WAITING, "extend_by_s": 0}):
        record = asked(T0 + MINUTE_MS, **terms)
        assert deadline(record) == 5 * MINUTE_MS
        assert deadline(answered(record, T0 + 3 * MINUTE_MS)) == 5 * MINUTE_MS


def test_deadline_waits_and_keeps_the_time_that_was_left() -> None:
    record = asked(T0 + MINUTE_MS, **WAITING)
    assert deadline(record) == 15 * MINUTE_MS
    assert record.items[0].digest != pending(ask(**WAITING)).items[0].digest, "as for every other deadline"
    assert deadline(answered(record, T0 + 3 * MINUTE_MS)) == 7 * MINUTE_MS
    assert deadline(answered(record, T0 + 14 * MINUTE_MS)) == 15 * MINUTE_MS


@given(st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 400_000)), max_size=8))
def test_deadline_never_waits_longer_than_it_can_be_extended(steps: list[tuple[int, int]]) -> None:
    record, now_ms, waited_ms = pending(ask(**WAITING)), T0, 0
    for number, (before_ms, answer_ms) in enumerate(steps):
        now_ms += before_ms
        if now_ms >= record.items[0].terms.deadline_at_ms:
            break
        record = ask_requester(record, "i1", f"inq_{number}", "Why?", person("ada"), now_ms).record
        now_ms += answer_ms
        if now_ms >= record.items[0].terms.deadline_at_ms:
            assert deadline(record) == 900_000
            break
        record = answer_inquiry(record, "i1", f"inq_{number}", "So.", OWNER, now_ms).record
        waited_ms += answer_ms
        assert deadline(record) == min(300_000 + waited_ms, 900_000)


def test_answer_after_an_escalation_moves_no_deadline() -> None:
    step = {"after_s": 60, "reviewers": ("ben",)}
    record = escalate(asked(reviewers=("ada",), escalate=(step,), **WAITING), T0 + MINUTE_MS).record
    assert deadline(answered(record, T0 + 2 * MINUTE_MS)) == deadline(record)


def test_ask_again_keeps_the_inquiries() -> None:
    record = asked(**WAITING)
    renewed = ask_again(record, word(record, by="ben"), ask(**WAITING), T0 + MINUTE_MS).record
    assert [one.text for one in renewed.items[0].inquiries] == ["Which order?"]
    before = deadline(renewed)
    assert deadline(answered(renewed, T0 + 2 * MINUTE_MS)) == before


def test_text_has_at_most_so_many_characters() -> None:
    assert check_text(f" {'x' * LONGEST_TEXT} ") == "x" * LONGEST_TEXT
    with pytest.raises(InvalidInput):
        check_text("x" * (LONGEST_TEXT + 1))
