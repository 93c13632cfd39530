from typing import Any

from sayso.core.records.decisions import Verdict
from sayso.core.records.deliveries import CardDelivery, DeliveryState
from sayso.core.records.items import Answer, Claim, ItemKind, ItemTool
from sayso.core.records.suspensions import Status
from sayso.core.sentences.deliveries import NOBODY
from service.core.operations.queries import parse_query
from service.edge.web.content.cards import group_cards, make_cards, make_rows
from tests.sayso.core.sentences.samples import NOW, make_item, make_outcome, make_record
from tests.sayso.samples import person
from tests.steps import count_steps


def test_make_cards_sorts_open_items_by_deadline() -> None:
    late, soon = make_item(timeout_s=900), make_item(timeout_s=60).model_copy(update={"item_id": "i2"})
    done = make_item().model_copy(update={"item_id": "i3", "outcome": make_outcome(Verdict.DENIED)})
    cards = make_cards([make_record(late, items=(late, done, soon))], person("anna"), (), 0)
    assert [card.href for card in cards] == ["/items/sus_1/i2", "/items/sus_1/i1"]
    assert make_cards([make_record(late, status=Status.CANCELLED)], person("anna"), (), 0) == []


def test_make_cards_describes_the_item() -> None:
    item = make_item(reviewers=["ben"])
    (card,) = make_cards([make_record(item)], person("anna"), (), 0)
    assert (card.item, card.wanted, card.quorum, card.claim) == (item, "", "", "")
    assert card.ineligibility == "Only ben can decide this."
    assert card.view.headline == "Refund payment EUR 250.00"
    assert [leaf.text for leaf in (*card.headline.first, *card.headline.rest)] == ["A-1932"]


def test_make_cards_names_the_value_the_quorum_and_the_claim() -> None:
    fields = {"kind": ItemKind.INPUT, "allowed": (Answer.VALUE,), "target_arg": "code"}
    claim = Claim(by=person("ben"), at_ms=0, until_ms=10)
    item = make_item(fields, quorum={"approve": 2}).model_copy(update={"claim": claim})
    (card,) = make_cards([make_record(item)], person("anna"), (), 0)
    assert (card.wanted, card.quorum, card.claim) == ("wants: code", "0 of 2", "ben handles it")
    (card,) = make_cards([make_record(item)], person("ben"), (), 0)
    assert card.claim == "you handle it"
    (card,) = make_cards([make_record(item)], person("ben"), (), 10)
    assert card.claim == ""


def test_group_cards_by_deadline_and_by_who_may_decide() -> None:
    def group(now_ms: int, **terms: Any) -> list[str]:
        cards = make_cards([make_record(make_item(**terms))], person("anna"), (), now_ms)
        return [name for name, _, found in group_cards(cards) if found]

    assert group(NOW, timeout_s=599) == ["soon"]
    assert group(NOW, timeout_s=600) == ["today"]
    assert group(NOW, timeout_s=86_400) == ["later"]
    assert group(NOW, timeout_s=60, reviewers=["ben"]) == ["others"]


def test_make_cards_keeps_what_fits_the_search() -> None:
    records = [make_record(make_item())]
    assert len(make_cards(records, person("anna"), (), 0, parse_query("amount>100"))) == 1
    assert make_cards(records, person("anna"), (), 0, parse_query("amount>1000")) == []


def test_make_cards_marks_an_item_that_nobody_was_notified_of() -> None:
    failed = CardDelivery(channel="ops", person="anna", state=DeliveryState.FAILED)
    silent = make_item().model_copy(update={"deliveries": (failed,)})
    (card,) = make_cards([make_record(silent)], person("anna"), (), 0)
    assert card.silence == NOBODY
    (card,) = make_cards([make_record(make_item())], person("anna"), (), 0)
    assert card.silence == ""


def test_make_rows_shows_the_decided_arguments() -> None:
    ended = make_outcome(Verdict.APPROVED, args={"order": "A-1"}, message="half")
    item = make_item().model_copy(update={"outcome": ended})
    (row,) = make_rows(make_record(item, status=Status.DECIDED))
    assert [leaf.text for leaf in row.headline.first] == ["A-1"]
    assert (row.state, row.outcome, row.note) == ("approved", "ben approved this with 4 changes", "half")


def test_make_rows_includes_open_items_of_a_cancelled_run() -> None:
    item = make_item()
    assert make_rows(make_record(item)) == []
    (row,) = make_rows(make_record(item, status=Status.CANCELLED))
    assert row.state == "cancelled"


def test_make_cards_checks_long_texts_only_once() -> None:
    """An inbox of large calls is shown anew after every change."""

    def count(text: str) -> int:
        tool = ItemTool(name="note", args={"text": text}, definition="d")
        records = [make_record(make_item({"tool": tool}))]
        (card,) = make_cards(records, person("anna"), (), 0)
        assert card.flags == ("look-alike letters",)
        assert card.view.notable + card.view.body + card.view.rest == (), "rows of long texts are not kept"
        return count_steps(lambda: make_cards(records, person("anna"), (), 0))

    assert count("a\u0430 " * 40_000) == count("a\u0430 " * 1_000)
