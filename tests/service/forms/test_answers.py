from typing import Any

import pytest

from sayso.core.records.items import Answer, Binding, Item, ItemDraft, freeze_item
from sayso.errors import InvalidInput, TooLarge
from service.forms.answers import Forms, describe_problems, make_forms, mark_problems, read_answer, refill
from tests.service.edge.web.stories import BOOK_HOTEL, REFUND, REFUND_ARGS, ask_value, make_ask


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


def test_read_answer_returns_the_decision() -> None:
    assert read("approve").model_dump(exclude={"digest"}) == {
        "action": "approve",
        "args": None,
        "value": None,
        "message": None,
        "number": None,
    }
    assert read("deny", message=" Too\r\nold ").message == "Too\nold"
    assert read("edit", amount="120").args == {**REFUND_ARGS, "amount": 120}
    assert read("value", item_of(ask_value()), value="HH-1").value == "HH-1"


def test_read_answer_keeps_the_digest_of_the_page() -> None:
    assert read("approve").digest == ITEM.digest


@pytest.mark.parametrize("answer", ["", "fail", "APPROVE", "approve deny"])
def test_read_answer_rejects_unknown_answers(answer: str) -> None:
    with pytest.raises(InvalidInput, match="Choose one of the decisions"):
        read(answer)


def test_read_answer_rejects_arguments_that_are_no_object() -> None:
    forms = make_forms(ITEM, None)
    with pytest.raises(InvalidInput, match="one JSON object"):
        read_answer(forms, {**post(forms, "edit"), "f0": "[1]"}, LIMIT)


def test_read_answer_rejects_input_over_the_limit() -> None:
    assert read("edit", note="x" * 9_000).args["note"] == "x" * 9_000
    for answer, typed in (("edit", {"note": "ü" * 5_000}), ("value", {"value": "x" * 10_001})):
        with pytest.raises(TooLarge, match="over 10000 bytes"):
            read(answer, ITEM if answer == "edit" else item_of(ask_value()), **typed)


def test_read_answer_rejects_a_long_message_or_a_bad_digest() -> None:
    with pytest.raises(InvalidInput, match="at most 2000"):
        read("deny", message="x" * 2001)
    forms = make_forms(ITEM, REFUND)
    with pytest.raises(InvalidInput, match="digest"):
        read_answer(forms, {**post(forms, "approve"), "digest": "nonsense"}, LIMIT)


def test_make_forms_returns_allowed_forms_only() -> None:
    only_approve = ITEM.model_copy(update={"allowed": (Answer.APPROVE, Answer.DENY)})
    assert make_forms(only_approve, REFUND).args == ()
    assert make_forms(only_approve, REFUND).value == ()


def test_refill_keeps_the_input() -> None:
    forms = make_forms(ITEM, REFUND)
    kept = refill(forms, {"answer": "edit", "f1": "a lot", "message": ""})
    amount = next(field for field in kept.args if field.name == "amount")
    assert (kept.chosen, amount.text) == ("edit", "a lot")
    assert amount.problem
    assert refill(forms, {"answer": "deny", "message": "because"}).message == "because"


def test_make_forms_uses_the_schema_of_the_target_argument() -> None:
    (field,) = make_forms(item_of(ask_value()), BOOK_HOTEL).value
    assert field.shape.description == "The guest's loyalty code."
    (choice,) = make_forms(item_of(ask_value(choices=("a", "b"))), BOOK_HOTEL).value
    assert choice.control == "choice"
    (number,) = make_forms(item_of(ask_value(response_schema={"type": "integer"})), BOOK_HOTEL).value
    assert number.control == "number"


def test_mark_problems_marks_the_fields_of_an_error() -> None:
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


@pytest.mark.parametrize("number", ["4", "123", "4x", "٤٢"])
def test_read_answer_refuses_a_number_that_is_not_two_digits(number: str) -> None:
    with pytest.raises(InvalidInput, match="two digits"):
        read_answer(make_forms(ITEM, REFUND), {"answer": "approve", "digest": ITEM.digest, "number": number}, LIMIT)


def test_describe_problems_names_the_fields_without_their_input() -> None:
    error = InvalidInput("'hunter2' is too short", problems=["args.amount: too much", "args.note: too long"])
    marked = mark_problems(make_forms(ITEM, REFUND), error, None)
    assert describe_problems(marked, error) == "Correct amount and note."
    assert describe_problems(make_forms(ITEM, REFUND), error) == ""
    secret = make_forms(item_of(ask_value(terms={"secrets": ["loyalty_code"]})), BOOK_HOTEL)
    assert describe_problems(secret, error) == "Correct the value."
    assert describe_problems(secret, InvalidInput("no")) == ""


def test_pattern_problem_is_the_description_of_the_schema() -> None:
    schema = {"type": "string", "pattern": "^[0-9]{6}$", "description": "Six digits"}
    error = InvalidInput("no", problems=['value: "12 34" does not match "^[0-9]{6}$"'])
    forms = make_forms(item_of(ask_value(response_schema=schema)), BOOK_HOTEL)
    assert mark_problems(forms, error, None).value[0].problem == "Six digits"
    assert forms.value[0].shape.digits
