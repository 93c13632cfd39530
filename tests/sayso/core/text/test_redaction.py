"""Secret arguments are masked wherever a schema or a rule marks them."""

import json
from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.text.redaction import MASK, list_secret_paths, redact

SECRET: JsonObject = {"type": "string", "x-secret": True}


@pytest.mark.parametrize(
    ("schema", "args", "expected"),
    [
        ({"properties": {"token": SECRET}}, {"token": "s", "to": "a"}, {"token": MASK, "to": "a"}),
        ({"properties": {"token": {"format": "password"}}}, {"token": "s"}, {"token": MASK}),
        ({"properties": {"token": {"writeOnly": True}}}, {"token": {"a": 1}}, {"token": MASK}),
        ({"properties": {"login": {"properties": {"key": SECRET}}}}, {"login": {"key": "s"}}, {"login": {"key": MASK}}),
        ({"properties": {"keys": {"items": SECRET}}}, {"keys": ["s", "t"]}, {"keys": [MASK, MASK]}),
        ({"properties": {"keys": {"prefixItems": [{}, SECRET]}}}, {"keys": ["a", "s"]}, {"keys": ["a", MASK]}),
        (
            {"$defs": {"k": SECRET}, "properties": {"token": {"$ref": "#/$defs/k"}}},
            {"token": "s"},
            {"token": MASK},
        ),
        ({"properties": {"token": {"anyOf": [{"type": "null"}, SECRET]}}}, {"token": "s"}, {"token": MASK}),
        ({"allOf": [{"properties": {"token": SECRET}}]}, {"token": "s"}, {"token": MASK}),
        ({"additionalProperties": SECRET}, {"any": "s"}, {"any": MASK}),
        ({"patternProperties": {"(a+)+$": SECRET}}, {"any": "s"}, {"any": MASK}),
        (None, {"token": "s"}, {"token": "s"}),
    ],
)
def test_redact_masks_what_the_schema_marks(schema: JsonObject | None, args: JsonObject, expected: JsonObject) -> None:
    found = redact(args, schema)
    assert found.args == expected
    assert found.masked == (expected != args)


@pytest.mark.parametrize(
    ("path", "args", "expected"),
    [
        ("token", {"token": "s", "other": {"token": "t"}}, {"token": MASK, "other": {"token": "t"}}),
        ("args.token", {"token": "s"}, {"token": MASK}),
        ("login.password", {"login": {"password": "s", "user": "u"}}, {"login": {"password": MASK, "user": "u"}}),
        (
            "*.password",
            {"a": {"password": "s"}, "b": {"password": "t"}},
            {"a": {"password": MASK}, "b": {"password": MASK}},
        ),
        ("items[].key", {"items": [{"key": "s"}, {"key": "t"}]}, {"items": [{"key": MASK}, {"key": MASK}]}),
        ("rows[][]", {"rows": [["s"], ["t"]]}, {"rows": [[MASK], [MASK]]}),
        ("missing", {"token": "s"}, {"token": "s"}),
    ],
)
def test_redact_masks_the_paths_of_rules(path: str, args: JsonObject, expected: JsonObject) -> None:
    assert redact(args, None, (path,)).args == expected


def test_redact_masks_quotations_of_a_secret() -> None:
    found = redact({"token": "s3cret", "url": "https://a/?t=s3cret", "id": "ab"}, None, ("token", "id"))
    assert found.args == {"token": MASK, "url": f"https://a/?t={MASK}", "id": MASK}
    assert found.scrub("s3cret and ab") == f"{MASK} and ab", "short secrets would match by chance"


def test_redact_ends_with_schemas_that_refer_to_themselves() -> None:
    schema: JsonObject = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "properties": {"a": {"$ref": "#"}, "key": SECRET}}
    assert redact({"a": {"a": {"key": "s"}}}, schema).args == {"a": {"a": {"key": MASK}}}


def test_list_secret_paths_of_a_schema() -> None:
    schema: JsonObject = {
        "$defs": {"key": {"anyOf": [{"type": "null"}, {"writeOnly": True}]}},
        "properties": {
            "open": {"type": "string"},
            "key": {"$ref": "#/$defs/key"},
            "a.b": {"x-secret": True},
            "rows": {"items": {"properties": {"pin": {"format": "password"}}}},
            "map": {"additionalProperties": {"x-secret": True}},
        },
    }
    paths = list_secret_paths(schema)
    assert paths == ("key", "*", "rows[].pin", "map.*")
    assert list_secret_paths({"properties": {"open": {}}}) == ()


def test_list_secret_paths_masks_a_part_that_contains_itself() -> None:
    node: JsonObject = {"properties": {"pin": {"x-secret": True}, "next": {"$ref": "#/$defs/node"}}}
    schema: JsonObject = {"$defs": {"node": node}, "properties": {"first": {"$ref": "#/$defs/node"}}}
    assert list_secret_paths(schema) == ("first.pin", "first.next")


def test_list_secret_paths_masks_everything_in_a_schema_with_too_many_parts() -> None:
    levels: JsonObject = {
        f"l{depth}": {"properties": {side: {"$ref": f"#/$defs/l{depth + 1}"} for side in "ab"}} for depth in range(30)
    }
    schema: JsonObject = {"$defs": {**levels, "l30": {"x-secret": True}}, "properties": {"a": {"$ref": "#/$defs/l0"}}}
    assert list_secret_paths(schema) == ("*",)


@pytest.mark.parametrize(
    ("secret", "quoted"),
    [
        ('pa"ssword', json.dumps({"pin": 'pa"ssword'})),
        ("pässword", json.dumps({"pin": "pässword"})),
        ("a b&c=d", "https://a/?pin=a%20b%26c%3Dd"),
        ("a b&c=d", "pin=a+b%26c%3Dd"),
    ],
)
def test_scrub_masks_a_secret_that_is_escaped(secret: str, quoted: str) -> None:
    masked = redact({"pin": secret}, None, ("pin",)).scrub(quoted)
    assert masked in (json.dumps({"pin": MASK}), f"https://a/?pin={MASK}", f"pin={MASK}")


def test_scrub_masks_numbers_that_are_a_secret() -> None:
    found = redact({"pin": 471199}, None, ("pin",))
    assert found.scrub_json({"pin": 471199, "of": [471199.0, 4711]}) == {"pin": MASK, "of": [MASK, 4711]}


@pytest.mark.parametrize("pin", ["471199", " 471 199", '"4711"', 471199, 471199.0, "null", "[47]"])
def test_scrub_masks_secrets_that_stand_in_a_list_or_an_object(pin: Any) -> None:
    quoted = f"the pin is {pin:.0f}" if isinstance(pin, float) else f"the pin is {pin}"
    secrets: list[Any] = [pin, [pin], {"of": [pin, True, None]}]
    for secret in secrets:
        found = redact({"pin": secret, "note": f"{quoted}, null, true"}, None, ("pin",))
        expected = f"the pin is {MASK}, null, true" if pin != "null" else f"the pin is {MASK}, {MASK}, true"
        assert found.args == {"pin": MASK, "note": expected}


def test_list_secret_paths_of_one_argument_follows_its_own_references() -> None:
    answer: JsonObject = {
        "$defs": {"pin": {"type": "string", "writeOnly": True}},
        "properties": {"pin": {"$ref": "#/$defs/pin"}, "of": {"type": "array", "items": {"$ref": "#/$defs/pin"}}},
    }
    assert list_secret_paths(answer, "card") == ("card.pin", "card.of[]")
    assert list_secret_paths({"$ref": "#/$defs/pin", "$defs": answer["$defs"]}, "card") == ("card",)
    assert list_secret_paths({"type": "array", "items": {"writeOnly": True}}, "pins") == ("pins[]",)
