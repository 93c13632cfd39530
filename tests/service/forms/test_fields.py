import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject, canonical_json
from service.forms.controls import Field
from service.forms.fields import args_fields, note_problems, read_fields, value_fields
from tests.service.edge.web.stories import BOOK_HOTEL, BOOK_HOTEL_ARGS, REFUND, REFUND_ARGS


def as_browser(fields: tuple[Field, ...], **typed: str) -> dict[str, str]:
    """What a browser sends back: every control, line breaks as CRLF, a NUL replaced."""
    sent = {field.key: typed.get(field.name or "", untouched(field)) for field in fields}
    return {
        key: text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n").replace("\0", "\ufffd")
        for key, text in sent.items()
    }


def untouched(field: Field) -> str:
    """What a control holds: a choice always one of its options, the first where none is selected."""
    if field.control != "choice":
        return field.text
    offered = [*([""] if not field.required or not field.text else []), *(value for value, _ in field.options)]
    return field.text if field.text in offered else offered[0]


def edit(typed: dict[str, str], args: Any = None, schema: Any = None) -> Any:
    fields = args_fields(schema or REFUND.parameters, REFUND_ARGS if args is None else args)
    reading = read_fields(fields, as_browser(fields, **typed))
    assert reading.valid, [field.problem for field in reading.fields]
    return reading.value


def problems(typed: dict[str, str], args: Any = None, schema: Any = None) -> dict[str, str]:
    fields = args_fields(schema or REFUND.parameters, REFUND_ARGS if args is None else args)
    reading = read_fields(fields, as_browser(fields, **typed))
    return {field.shown_name: field.problem for field in reading.fields if field.problem}


def test_field_labels_distinguish_arguments_with_blanks() -> None:
    schema: JsonObject = {"type": "object", "properties": {"to": {"type": "string"}}}
    names = [field.shown_name for field in args_fields(schema, {"to ": "x", "to\n": "y"})]
    assert names == ["to", '"to "', '"to\\n"']


def test_args_fields_choose_a_control_per_property() -> None:
    controls = {field.name: field.control for field in args_fields(REFUND.parameters, REFUND_ARGS)}
    assert controls == {
        "order_id": "text",
        "amount": "number",
        "currency": "choice",
        "notify": "choice",
        "note": "lines",
        "lines": "json",
    }


def test_untouched_fields_keep_the_arguments() -> None:
    assert edit({}) == REFUND_ARGS


def test_read_fields_uses_the_types_of_the_schema() -> None:
    edited = edit({"amount": " 120.5 ", "currency": '"CHF"', "notify": "false", "lines": '[{"sku": "X"}]'})
    assert edited == {**REFUND_ARGS, "amount": 120.5, "currency": "CHF", "notify": False, "lines": [{"sku": "X"}]}
    assert isinstance(edited["amount"], float)
    assert edited["notify"] is False


def test_empty_optional_argument_is_omitted() -> None:
    assert "note" not in edit({"note": ""})
    assert "notify" not in edit({"notify": ""})


def test_empty_required_text_is_an_empty_text() -> None:
    assert edit({"order_id": ""})["order_id"] == ""


def test_empty_required_number_is_a_problem() -> None:
    assert problems({"amount": "  "}) == {"amount": "Enter a value."}


def test_line_breaks_are_normalized_in_edited_texts_only() -> None:
    args = {**REFUND_ARGS, "note": "one\r\ntwo\rthree\0"}
    assert edit({}, args)["note"] == "one\r\ntwo\rthree\0"
    assert edit({"note": "one\ntwo"}, args)["note"] == "one\ntwo"


@pytest.mark.parametrize("typed", ["12,50", "a lot", "true", "NaN", "1e999", "12 34", "0x10", '"12"', "[1]"])
def test_invalid_number_is_a_problem(typed: str) -> None:
    assert set(problems({"amount": typed})) == {"amount"}


@pytest.mark.parametrize("typed", ["{", '{"a": 1, "a": 2}', "nope", "[1,]"])
def test_invalid_json_is_a_problem_and_stays_in_the_field(typed: str) -> None:
    fields = args_fields(REFUND.parameters, REFUND_ARGS)
    reading = read_fields(fields, as_browser(fields, lines=typed))
    marked = next(field for field in reading.fields if field.name == "lines")
    assert marked.problem
    assert marked.text == typed


def test_unlisted_choice_is_a_problem() -> None:
    assert problems({"currency": '"XAU"'}) == {"currency": "Choose one of the listed values."}


def test_original_value_outside_the_choices_can_be_kept() -> None:
    args = {**REFUND_ARGS, "currency": "DM", "extra": "kept", "more": 7}
    assert edit({}, args) == args
    assert edit({"extra": ""}, args) == {key: value for key, value in args.items() if key != "extra"}


def test_value_of_the_wrong_type_is_edited_as_json() -> None:
    args = {**REFUND_ARGS, "amount": "250", "order_id": 1932}
    assert edit({}, args) == args
    assert edit({"amount": "250", "order_id": '"1932"'}, args) == {**REFUND_ARGS, "amount": 250, "order_id": "1932"}


def test_untouched_null_stays_null() -> None:
    schema = {"type": "object", "properties": {"note": {"type": ["string", "null"]}}, "required": ["note"]}
    assert edit({}, {"note": None}, schema) == {"note": None}
    assert edit({"note": "x"}, {"note": None}, schema) == {"note": "x"}
    assert edit({"note": ""}, {"note": "x"}, schema) == {"note": None}


@pytest.mark.parametrize("required", [["loud"], []], ids=["required", "optional"])
def test_untouched_null_boolean_stays_null(required: list[str]) -> None:
    loud = {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
    schema = {"type": "object", "properties": {"loud": loud, "count": {"type": "integer"}}, "required": required}
    assert edit({"count": "2"}, {"loud": None, "count": 1}, schema) == {"loud": None, "count": 2}


def test_args_fields_without_a_schema_are_one_json_text() -> None:
    fields = args_fields(None, {"a": [1, 2]})
    assert [(field.name, field.control) for field in fields] == [(None, "json")]
    assert read_fields(fields, {"f0": '{"a": []}'}).value == {"a": []}


def test_args_fields_over_the_limit_are_one_json_text() -> None:
    args = {f"a{place}": place for place in range(60)}
    assert len(args_fields(REFUND.parameters, args)) == 1  # type: ignore[arg-type]


def test_value_fields_use_the_control_of_the_schema() -> None:
    (field,) = value_fields({"type": "integer", "minimum": 1}, None)
    assert (field.name, field.control) == (None, "number")
    assert read_fields([field], {"v0": "7"}).value == 7
    assert not read_fields([field], {"v0": ""}).valid


def test_value_fields_offer_the_choices() -> None:
    (field,) = value_fields(None, ("small", 2, None))
    assert field.options == [('"small"', "small"), ("2", "2"), ("null", "null")]
    assert read_fields([field], {"v0": "2"}).value == 2
    assert not read_fields([field], {}).valid


def test_value_fields_of_an_object_are_one_per_property() -> None:
    fields = value_fields(BOOK_HOTEL.parameters, None)
    typed = {field.key: str(BOOK_HOTEL_ARGS.get(field.name or "", "")) for field in fields}
    typed["v2"] = '"single"'
    assert read_fields(fields, typed).value == BOOK_HOTEL_ARGS


def test_value_without_a_schema_is_a_text_and_must_not_be_empty() -> None:
    fields = value_fields(None, None)
    assert read_fields(fields, {"v0": "007"}).value == "007"
    assert not read_fields(fields, {"v0": ""}).valid


def test_untouched_missing_argument_stays_missing() -> None:
    assert edit({}, {"amount": 5}) == {"amount": 5}
    assert edit({"order_id": "A-1"}, {"amount": 5}) == {"amount": 5, "order_id": "A-1"}


def test_note_problems_marks_the_named_field() -> None:
    fields = args_fields(REFUND.parameters, REFUND_ARGS)
    problems = ["args.amount: 9 is too much", "args.lines[0].count: not that", "args.amounts: no such thing"]
    marked = {field.name: field.problem for field in note_problems(fields, problems, "args") if field.problem}
    assert marked == {"amount": "9 is too much", "lines": "not that"}


TURNS = Path(__file__).parents[3] / "demo" / "turns.jsonl"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | TEXT
VALUES = SCALARS | st.lists(SCALARS, max_size=3) | st.dictionaries(TEXT, SCALARS, max_size=3)
KINDS = st.sampled_from(
    [
        {"type": "string"},
        {"type": ["string", "null"]},
        {"type": "number"},
        {"type": "integer"},
        {"type": "boolean"},
        {"type": ["boolean", "null"]},
        {"enum": ["a", 1, None]},
        {"type": "array"},
        {},
    ]
)


@pytest.mark.parametrize("line", TURNS.read_text().splitlines(), ids=lambda line: json.loads(line)["id"])
def test_untouched_forms_keep_real_calls(line: str) -> None:
    turn = json.loads(line)
    tools = {tool["name"]: tool["parameters"] for tool in turn["tools"]}
    for call in turn["calls"]:
        args = call["arguments"]
        fields = args_fields(tools[call["name"]], args)
        reading = read_fields(fields, as_browser(fields))
        assert reading.valid
        assert canonical_json(reading.value) == canonical_json(args)


@given(st.dictionaries(TEXT, VALUES, max_size=6), st.dictionaries(TEXT, KINDS, max_size=6))
def test_untouched_form_keeps_any_valid_arguments(args: dict[str, Any], properties: dict[str, Any]) -> None:
    schema: Any = {"type": "object", "properties": properties}
    fields = args_fields(schema, args)
    reading = read_fields(fields, as_browser(fields))
    for field in reading.fields:
        name = field.name
        if name in args:
            assert isinstance(reading.value, dict)
            assert canonical_json(reading.value[name]) == canonical_json(args[name])
