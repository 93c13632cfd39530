from typing import Any

import pytest

from sayso.errors import InvalidInput, TooLarge
from sayso.records.items import Answer, Binding, Item, ItemDraft, freeze_item
from service.web.content.answers import Forms, make_forms, mark_problems, read_answer, refill
from tests.service.web.stories import BOOK_HOTEL, REFUND, REFUND_ARGS, ask_value, make_ask


def item_of(ask: ItemDraft) -> Item:
    return freeze_item(ask, "i1", Binding(tenant="t", run_id="r", attempt=1, suspension_id="s"), 1000)


ITEM = item_of(make_ask())
LIMIT = 10_000


def post(forms: Forms, answer: str, **typed: str) -> dict[str, str]:
    fields = {field.key: typed.get(field.name or "value", field.text) for field in (*forms.args, *forms.value)}
    return {"answer": answer, "digest": ITEM.digest, "message": typed.get("message", ""), **fields}


def read(answer: str, item: Item = ITEM, **typed: str) -> Any:
    forms = make_forms(item, REFUND if item is ITEM else BOOK_HOTEL)
    return read_answer(forms, post(forms, answer, **typed), LIMIT)


def test_each_answer_becomes_the_decision_it_says() -> None:
    assert read("approve").model_dump(exclude={"digest"}) == {
        "action": "approve",
        "args": None,
        "value": None,
        "message": None,
    }
    assert read("deny", message=" Too\r\nold ").message == "Too\nold"
    assert read("edit", amount="120").args == {**REFUND_ARGS, "amount": 120}
    assert read("value", item_of(ask_value()), value="HH-1").value == "HH-1"


def test_the_digest_is_that_of_the_page_that_was_seen() -> None:
    assert read("approve").digest == ITEM.digest


@pytest.mark.parametrize("answer", ["", "fail", "APPROVE", "approve deny"])
def test_only_the_answers_of_the_page_are_taken(answer: str) -> None:
    with pytest.raises(InvalidInput, match="Choose one of the decisions"):
        read(answer)


def test_arguments_that_are_no_object_are_refused() -> None:
    forms = make_forms(ITEM, None)
    with pytest.raises(InvalidInput, match="one JSON object"):
        read_answer(forms, {**post(forms, "edit"), "f0": "[1]"}, LIMIT)


def test_what_comes_to_more_than_a_request_may_hold_is_refused() -> None:
    assert read("edit", note="x" * 9_000).args["note"] == "x" * 9_000
    for answer, typed in (("edit", {"note": "ü" * 5_000}), ("value", {"value": "x" * 10_001})):
        with pytest.raises(TooLarge, match="over 10000 bytes"):
            read(answer, ITEM if answer == "edit" else item_of(ask_value()), **typed)


def test_a_message_that_is_too_long_or_a_bad_digest_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 2000"):
        read("deny", message="x" * 2001)
    forms = make_forms(ITEM, REFUND)
    with pytest.raises(InvalidInput, match="digest"):
        read_answer(forms, {**post(forms, "approve"), "digest": "nonsense"}, LIMIT)


def test_only_forms_that_are_allowed_are_made() -> None:
    only_approve = ITEM.model_copy(update={"allowed": (Answer.APPROVE, Answer.DENY)})
    assert make_forms(only_approve, REFUND).args == ()
    assert make_forms(only_approve, REFUND).value == ()


def test_what_was_typed_stays_in_its_form() -> None:
    forms = make_forms(ITEM, REFUND)
    kept = refill(forms, {"answer": "edit", "f1": "a lot", "message": ""})
    amount = next(field for field in kept.args if field.name == "amount")
    assert (kept.chosen, amount.text) == ("edit", "a lot")
    assert amount.problem
    assert refill(forms, {"answer": "deny", "message": "because"}).message == "because"


def test_a_target_argument_lends_the_value_its_schema() -> None:
    (field,) = make_forms(item_of(ask_value()), BOOK_HOTEL).value
    assert field.shape.description == "The guest's loyalty code."
    (choice,) = make_forms(item_of(ask_value(choices=("a", "b"))), BOOK_HOTEL).value
    assert choice.control == "choice"
    (number,) = make_forms(item_of(ask_value(response_schema={"type": "integer"})), BOOK_HOTEL).value
    assert number.control == "number"


def test_the_desks_faults_are_marked_where_they_belong() -> None:
    error = InvalidInput("no", problems=["args.amount: too much"])
    marked = mark_problems(make_forms(ITEM, REFUND), error, None)
    assert [field.name for field in marked.args if field.problem] == ["amount"]
    given = mark_problems(
        make_forms(item_of(ask_value()), BOOK_HOTEL),
        InvalidInput("no", problems=["args.loyalty_code: short"]),
        "loyalty_code",
    )
    assert given.value[0].problem == "short"
    assert mark_problems(given, InvalidInput("no"), None) == given
