"""The JSON Schema of rules files, beside the reader of rules."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from sayso.core.policy.files import reading as files
from sayso.core.policy.files.reading import RulebookError, parse_rulebook
from sayso.core.policy.files.schema import build_rule_schema
from sayso.core.policy.files.yaml_documents import Document, Loc, read_document

DOCS = Path(__file__).parents[5] / "docs"
SCHEMA = build_rule_schema()
VALID = jsonschema_rs.validator_for(SCHEMA).is_valid
EXAMPLES = [
    text
    for page in sorted(DOCS.rglob("*.md"))
    for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    if text.startswith("version: 1\n") and "\nrules:" in text
]
WRONG: list[Any] = [None, 0, -1, 2.5, True, "", "x", [], ["x"], {}, {"x": 1}]
"""Values to put in the place of another."""


def loads(content: Any) -> bool:
    """Return whether the reader accepts the rules. JSON is YAML."""
    try:
        parse_rulebook(json.dumps(content).encode(), file="policy.yaml")
    except RulebookError:
        return False
    return True


def mutate(value: Any) -> Iterator[Any]:
    """Yield copies of a value, each with one part removed, added or replaced."""
    yield from WRONG
    if isinstance(value, dict):
        yield {**value, "unknown": 1}
        for key in value:
            yield {name: one for name, one in value.items() if name != key}
            yield from ({**value, key: one} for one in mutate(value[key]))
    elif isinstance(value, list):
        for place, one in enumerate(value):
            yield from ([*value[:place], other, *value[place + 1 :]] for other in mutate(one))


def test_committed_schema_is_current() -> None:
    text = json.dumps(SCHEMA, indent=2) + "\n"
    assert (DOCS / "policy.schema.json").read_text() == text, "run: sayso policy schema > docs/policy.schema.json"


@pytest.mark.parametrize("text", EXAMPLES)
def test_schema_accepts_every_example_of_the_documentation(text: str) -> None:
    assert VALID(read_document(text.encode(), "").content)


@pytest.mark.parametrize("text", EXAMPLES)
def test_schema_refuses_only_what_the_reader_refuses(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = read_document(text.encode(), "").content
    place = defaultdict[Loc, tuple[int, int]](lambda: (1, 1))
    # JSON is YAML that takes a tenth of the time to read.
    monkeypatch.setattr(files, "read_document", lambda raw, file: Document(file, json.loads(raw), values=place))
    for changed in mutate(content):
        if not VALID(changed):
            assert not loads(changed), changed


RULE = {"id": "one", "action": "request_approval"}


@pytest.mark.parametrize(
    "parts",
    [
        {"id": "not a name"},
        {"id": None},
        {"action": "aprove"},
        {"action": "allow", "absolute": True},
        {"absolute": True},
        {"action": "deny", "absolute": "yes"},
        {"mode": "dark"},
        {"action": "deny", "mode": "shadow", "subjects": ["llm_call"]},
        {"subjects": ["any"]},
        {"subjects": []},
        {"event": "llm_before_execute"},
        {"priority": "high"},
        {"priority": 10_000_000},
        {"tool": []},
        {"tool": 3},
        {"tool": ["", "x"]},
        {"when": ""},
        {"when": "args.x == " + "1" * 2_000},
        {"context": {"equal": {}}},
        {"context": {"has_keys": "x"}},
        {"metadata": {"equals": {"model": "x"}}},
        {"action": "deny", "subjects": ["llm_call"], "metadata": {"equals": {"modle": "x"}}},
        {"action": "deny", "subjects": ["llm_call"], "metadata": {"equals": {"model": 3}}},
        {"action": "deny", "subjects": ["llm_call"], "tool": "x"},
        {"during": {"hours": "08:00-18:00"}},
        {"during": {"zone": "UTC", "hours": "8-18"}},
        {"outside": {"zone": "UTC", "days": ["monday"]}},
        {"outside": {"zone": "UTC", "days": []}},
        {"outside": {"zone": "UTC", "holidays": "Switzerland"}},
        {"valid_from": "tomorrow"},
        {"valid_until": "2026-12-01T08:00"},
        {"review_by": "2026-12-01 UTC"},
        {"owner": ""},
        {"action": "allow", "ask": {"title": "x"}},
        {"ask": {"target_arg": "x"}},
        {"ask": {"choices": ["x"]}},
        {"action": "request_user_input"},
        {"action": "request_user_input", "ask": {"title": "x"}},
        {"action": "request_user_input", "ask": {"target_arg": "x", "choices": [1], "response_schema": {}}},
        {"terms": {"timeout_s": -1}},
        {"terms": {"timeout_s": 31 * 86_400}},
        {"terms": {"timeout": "2 days"}},
        {"terms": {"quorum": {"approve": 0}}},
        {"terms": {"escalate": [{"reviewers": ["anna"]}]}},
        {"terms": {"fallback": {"action": "approve"}}},
        {"terms": {"fallback": {"action": "approve"}, "unattended_approval": True, "match_number": True}},
        {"terms": {"fallback": {"action": "value"}}},
        {"terms": {"fallback": {"action": "value", "value": 3}}},
        {"terms": {"reviewer": ["anna"]}},
        {"terms": {"veto": "10m"}},
        {"action": "allow", "terms": {"veto": "8d"}},
    ],
    ids=str,
)
def test_schema_refuses_what_the_reader_refuses(parts: dict[str, Any]) -> None:
    content = {"version": 1, "default": "allow", "rules": [{**RULE, **parts}]}
    assert not VALID(content)
    assert not loads(content)


@pytest.mark.parametrize(
    "content",
    [
        {"default": "allow", "rules": []},
        {"version": 2, "default": "allow", "rules": []},
        {"version": 1, "rules": []},
        {"version": 1, "default": "allow"},
        {"version": 1, "default": "request_user_input", "rules": []},
        {"version": 1, "default": "allow", "rules": [], "rule": []},
        {"version": 1, "default": "allow", "rules": [], "terms": {"unattended_approval": True}},
        {"version": 1, "default": "allow", "rules": [], "terms": {"veto": "10m"}},
        {"version": 1, "default": "allow", "rules": [], "terms": {"timeout": "2 working days", "timeout_s": 3}},
    ],
    ids=str,
)
def test_schema_refuses_what_no_file_may_hold(content: dict[str, Any]) -> None:
    assert not VALID(content)
    assert not loads(content)


def test_schema_describes_every_key() -> None:
    found = deepcopy(SCHEMA)
    nameless = [
        f"{name}.{key}"
        for name, one in found["$defs"].items()
        for key, part in one.get("properties", {}).items()
        if "description" not in part
    ]
    assert nameless == [], "add them to sayso/core/policy/files/schema.py"
