from sayso.records.decisions import Verdict
from sayso.records.suspensions import Status
from service.web.content.cards import make_cards, make_rows
from tests.service.web.content.test_sentences import item_with, outcome, record_with


def test_only_open_items_become_cards_the_earliest_deadline_first() -> None:
    late, soon = item_with(timeout_s=900), item_with(timeout_s=60).model_copy(update={"item_id": "i2"})
    done = item_with().model_copy(update={"item_id": "i3", "outcome": outcome(Verdict.DENIED)})
    cards = make_cards([record_with(late, items=(late, done, soon))], "anna", (), 0)
    assert [card.href for card in cards] == ["/items/sus_1/i2", "/items/sus_1/i1"]
    assert make_cards([record_with(late, status=Status.CANCELLED)], "anna", (), 0) == []


def test_a_card_says_what_why_and_for_whom() -> None:
    item = item_with(reviewers=["ben"])
    (card,) = make_cards([record_with(item)], "anna", (), 0)
    assert (card.tool, card.question, card.reason) == (
        "refund_payment",
        "needs approval",
        "Refunds over 100 need a person",
    )
    assert card.hindrance == "This is for ben to decide."
    assert card.fallback == "it is denied"


def test_a_row_shows_the_arguments_that_were_decided_on() -> None:
    ended = outcome(Verdict.APPROVED, args={"amount": 1}, message="half")
    item = item_with().model_copy(update={"outcome": ended})
    (row,) = make_rows(record_with(item, status=Status.DECIDED))
    assert [leaf.text for leaf in row.summary.leaves] == ["1"]
    assert (row.state, row.told, row.note) == ("approved", "ben approved this with other arguments", "half")


def test_what_was_never_decided_is_a_row_once_its_run_is_cancelled() -> None:
    item = item_with()
    assert make_rows(record_with(item)) == []
    (row,) = make_rows(record_with(item, status=Status.CANCELLED))
    assert row.state == "cancelled"
