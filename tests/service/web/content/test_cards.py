from sayso.records.decisions import Verdict
from sayso.records.deliveries import CardDelivery, DeliveryState
from sayso.records.suspensions import Status
from sayso.sentences.deliveries import NOBODY
from service.web.content.cards import make_cards, make_rows
from tests.sayso.samples import person
from tests.sayso.sentences.samples import make_item, make_outcome, make_record


def test_make_cards_sorts_open_items_by_deadline() -> None:
    late, soon = make_item(timeout_s=900), make_item(timeout_s=60).model_copy(update={"item_id": "i2"})
    done = make_item().model_copy(update={"item_id": "i3", "outcome": make_outcome(Verdict.DENIED)})
    cards = make_cards([make_record(late, items=(late, done, soon))], person("anna"), (), 0)
    assert [card.href for card in cards] == ["/items/sus_1/i2", "/items/sus_1/i1"]
    assert make_cards([make_record(late, status=Status.CANCELLED)], person("anna"), (), 0) == []


def test_make_cards_describes_the_item() -> None:
    item = make_item(reviewers=["ben"])
    (card,) = make_cards([make_record(item)], person("anna"), (), 0)
    assert (card.item, card.need) == (item, "needs approval")
    assert card.ineligibility == "Only ben can decide this."
    assert card.fallback == "it is denied"


def test_make_cards_marks_an_item_that_nobody_was_notified_of() -> None:
    failed = CardDelivery(channel="ops", person="anna", state=DeliveryState.FAILED)
    silent = make_item().model_copy(update={"deliveries": (failed,)})
    (card,) = make_cards([make_record(silent)], person("anna"), (), 0)
    assert card.silence == NOBODY
    (card,) = make_cards([make_record(make_item())], person("anna"), (), 0)
    assert card.silence == ""


def test_make_rows_shows_the_decided_arguments() -> None:
    ended = make_outcome(Verdict.APPROVED, args={"amount": 1}, message="half")
    item = make_item().model_copy(update={"outcome": ended})
    (row,) = make_rows(make_record(item, status=Status.DECIDED))
    assert [leaf.text for leaf in row.summary.shown] == ["1"]
    assert (row.state, row.outcome, row.note) == ("approved", "ben approved this with edited arguments", "half")


def test_make_rows_includes_open_items_of_a_cancelled_run() -> None:
    item = make_item()
    assert make_rows(make_record(item)) == []
    (row,) = make_rows(make_record(item, status=Status.CANCELLED))
    assert row.state == "cancelled"
