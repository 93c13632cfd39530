from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.canonical_json import JsonObject, canonical_json
from service.forms.controls import Field
from service.forms.fields import (
    MANY_ENTRIES,
    args_fields,
    change_form,
    find_changed,
    is_change,
    note_problems,
    read_fields,
    unfold_all,
    value_fields,
)
from tests.service.edge.web.orders import ORDER, ORDER_ARGS
from tests.service.forms.test_fields import KINDS, TEXT, VALUES

CUSTOMER, LINES, TAGS, PAYMENT, EXTRA = "f0", "f1", "f2", "f3", "f4"


def fields_of(schema: Any = ORDER.parameters, args: Any = None) -> tuple[Field, ...]:
    return unfold_all(args_fields(schema, ORDER_ARGS if args is None else args))


def as_browser(fields: tuple[Field, ...]) -> dict[str, str]:
    """What a browser sends back: every control, with CRLF line breaks and a NUL replaced."""
    sent = dict(pair for field in fields for pair in field.inputs)
    for field in walk(fields):
        if field.control == "choice" and field.required and not field.text:
            sent[field.key] = ""
    return {
        key: text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n").replace("\0", "\ufffd")
        for key, text in sent.items()
    }


def walk(fields: tuple[Field, ...]) -> list[Field]:
    return [one for field in fields for one in (field, *walk(field.children))]


def edit(changes: dict[str, str], args: Any = None) -> Any:
    fields = fields_of(args=args)
    reading = read_fields(fields, {**as_browser(fields), **changes})
    assert reading.valid, [(field.key, field.problem) for field in walk(reading.fields) if field.problem]
    return reading.value


def step(post: dict[str, str], *steps: str) -> Any:
    """The value after steps that change the form, such as `add:f1`."""
    fields = fields_of()
    sent: Any = {**as_browser(fields), **post}
    for one in steps:
        assert is_change(one)
        sent = change_form(sent, one)
        shown = read_fields(fields, sent).fields
        sent = as_browser(shown)
    reading = read_fields(fields, sent)
    return reading.value if reading.valid else None


def test_schema_chooses_a_nested_field_per_argument() -> None:
    assert {field.name: field.control for field in fields_of()} == {
        "customer": "object",
        "lines": "list",
        "tags": "list",
        "payment": "variants",
        "extra": "json",
    }
    assert next(field for field in walk(fields_of()) if field.name == "since").control == "date"
    assert next(field for field in walk(fields_of()) if field.name == "count").shape.unit == "pieces"


def test_untouched_nested_form_keeps_the_arguments() -> None:
    assert canonical_json(edit({})) == canonical_json(ORDER_ARGS)


def test_nested_texts_are_read_with_their_types() -> None:
    edited = edit({"f0.0": "Ann", "f1.1.1": "7", "f2.0": "heavy", "f4": '{"b": 1}'})
    assert edited["customer"]["name"] == "Ann"
    assert edited["lines"] == [{"sku": "CUP-7", "count": 2}, {"sku": "CUP-8", "count": 7}]
    assert (edited["tags"], edited["extra"]) == (["heavy", "gift"], {"b": 1})


def test_entries_are_moved_and_removed_with_their_texts() -> None:
    assert step({"f2.0": "typed"}, "down:f2.0")["tags"] == ["gift", "typed"]
    assert step({"f2.1": "typed"}, "up:f2.1")["tags"] == ["typed", "fragile"]
    assert step({"f1.1.1": "9"}, "remove:f1.0")["lines"] == [{"sku": "CUP-8", "count": 9}]
    assert step({}, "up:f2.0", "down:f2.1", "remove:f2.7", "remove:f9.0")["tags"] == ["fragile", "gift"]


def test_added_entry_must_be_filled() -> None:
    assert step({}, "add:f1") is None
    assert step({}, "add:f2", "up:f2.2") is None
    fields = fields_of()
    sent = change_form(as_browser(fields), "add:f2")
    assert read_fields(fields, {**sent, "f2.2": "new"}).value == {**ORDER_ARGS, "tags": ["fragile", "gift", "new"]}


def test_optional_value_is_given_and_omitted() -> None:
    assert "payment" not in step({}, "omit:f3")
    fields = fields_of()
    sent = {**change_form(as_browser(fields), "give:f0.2"), "f0.2.0": "Main St", "f0.2.1": "Ulm"}
    reading: Any = read_fields(fields, sent).value
    assert reading["customer"]["address"] == {"street": "Main St", "city": "Ulm"}


def test_chosen_alternative_replaces_the_other() -> None:
    assert edit({"f3.~": "0", "f3.0.0": '"card"', "f3.0.1": "4242"})["payment"] == {"kind": "card", "digits": "4242"}
    fields = fields_of()
    reading = read_fields(fields, {**as_browser(fields), "f3.~": "0"})
    assert [field.key for field in walk(reading.fields) if field.problem] == ["f3.0.1"]


def test_whole_value_may_be_sent_as_json() -> None:
    fields = fields_of()
    sent = {key: text for key, text in as_browser(fields).items() if not key.startswith("f2")}
    assert read_fields(fields, {**sent, "f2": '["x"]'}).value == {**ORDER_ARGS, "tags": ["x"]}


def test_invalid_nested_text_is_a_problem_and_is_kept() -> None:
    fields = fields_of()
    reading = read_fields(fields, {**as_browser(fields), "f1.0.1": "many"})
    assert not reading.valid
    (marked,) = [field for field in walk(reading.fields) if field.problem]
    assert (marked.key, marked.text) == ("f1.0.1", "many")


def test_problem_is_noted_at_the_deepest_named_field() -> None:
    problems = ["args.lines[1].count: 0 is too few", "args.customer: one is missing", "args.tags[7]: too many"]
    marked = {field.key: field.problem for field in walk(note_problems(fields_of(), problems, "args")) if field.problem}
    assert marked == {"f1.1.1": "0 is too few", "f0": "one is missing", "f2": "too many"}


def test_list_over_the_limit_is_edited_as_json() -> None:
    fields = fields_of(args={**ORDER_ARGS, "tags": ["x"] * (MANY_ENTRIES + 1)})
    assert fields[2].control == "json"
    sent = {**as_browser(fields_of()), "f2.#": "999"}
    assert "at most" in read_fields(fields_of(), sent).fields[2].problem


def test_recursive_schema_ends() -> None:
    tree: JsonObject = {"$ref": "#/$defs/Node"}
    node: JsonObject = {
        "type": "object",
        "properties": {"left": tree, "right": tree, "name": {"type": "string"}},
        "required": ["left", "right"],
    }
    schema: JsonObject = {"type": "object", "properties": {"tree": tree}, "required": ["tree"], "$defs": {"Node": node}}
    assert len(walk(unfold_all(value_fields(schema, None)))) <= 151


def test_requested_value_has_nested_fields() -> None:
    fields = unfold_all(value_fields(ORDER.parameters, None))
    typed = {"v0.0": "Ann", "v1.?": "1", "v1.#": "1", "v1.0.0": "CUP", "v1.0.1": "3"}
    sent = {**as_browser(fields), **typed}
    reading = read_fields(fields, sent)
    assert reading.value == {"customer": {"name": "Ann"}, "lines": [{"sku": "CUP", "count": 3}]}
    assert not read_fields(fields, {**sent, "v0.0": ""}).valid


@pytest.mark.parametrize("step_", ["review", "add", "drop:f1", "", "add:"])
def test_is_change_knows_the_steps(step_: str) -> None:
    assert is_change(step_) is (step_ == "add:")


@pytest.mark.parametrize("count", ["9" * 5000, "-1", "many", ""])
def test_number_of_entries_that_no_form_has_is_ignored(count: str) -> None:
    post = {**as_browser(fields_of()), "f2.#": count}
    assert change_form(post, "add:f2") == post
    assert read_fields(fields_of(), post).value == ORDER_ARGS


def test_find_changed_names_the_list() -> None:
    assert [find_changed(one) for one in ("remove:f1.3", "add:f1.0.2", "omit:f3")] == ["f1", "f1.0.2", "f3"]


SCHEMAS = st.recursive(
    KINDS | st.just({"type": "string", "format": "date"}),
    lambda inner: (
        st.dictionaries(TEXT, inner, max_size=3).map(lambda one: {"type": "object", "properties": one})
        | inner.map(lambda one: {"type": "array", "items": one})
        | st.lists(inner, min_size=2, max_size=3).map(lambda one: {"oneOf": one})
    ),
    max_leaves=8,
)
DATES = st.sampled_from(["2024-02-29", "2023-02-29", "0000-01-01", "2024-2-9"])


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Values that fit the schema, and sometimes any others."""
    kind = schema.get("type")
    if "oneOf" in schema:
        fitting: st.SearchStrategy[Any] = st.one_of(*map(values_of, schema["oneOf"]))
    elif kind == "object":
        fitting = st.fixed_dictionaries(
            {}, optional={name: values_of(one) for name, one in schema["properties"].items()}
        )
    elif kind == "array" and "items" in schema:
        fitting = st.lists(values_of(schema["items"]), max_size=3)
    else:
        fitting = DATES if schema.get("format") else VALUES
    return fitting | VALUES


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_untouched_nested_form_is_byte_identical(data: st.DataObject) -> None:
    """Whatever the schema and the value, what the form posts back is exactly what is stored."""
    properties = data.draw(st.dictionaries(TEXT, SCHEMAS, min_size=1, max_size=4))
    schema: Any = {"type": "object", "properties": properties}
    args = data.draw(values_of(schema).filter(lambda one: isinstance(one, dict)))
    fields = fields_of(schema, args)
    sent = as_browser(fields)
    reading = read_fields(fields, sent)
    assert reading.valid, [(one.key, one.problem) for one in walk(reading.fields) if one.problem]
    assert canonical_json(reading.value) == canonical_json(args)
    again = read_fields(fields, as_browser(reading.fields))
    assert canonical_json(again.value) == canonical_json(args)
