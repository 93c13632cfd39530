"""The JSON Schema of a rules file, for editors, generated from the models that read it.

It refuses what the reader of rules refuses, as far as a schema can say it: not conditions, time zones, or what a rule
takes over from the file's terms.
"""

from copy import deepcopy
from typing import Any

from sayso.policy.analysis.cases import CALL_KEYS, EXPECTATIONS
from sayso.policy.analysis.rule_descriptions import DESCRIPTIONS
from sayso.policy.conditions import MAX_EXPRESSION_CHARS
from sayso.policy.file_faults import LISTED, PARTS
from sayso.policy.files import VERSION
from sayso.policy.memory.keys import MEMORY_KEYS
from sayso.policy.rules import MODEL_FACTS, Action, PolicyRule

_Schema = dict[str, Any]
_SCRUTINY = [key for key in MEMORY_KEYS if key not in ("limit", "budget")]
_ASKS = {"enum": [Action.REQUEST_APPROVAL, "defer", Action.REQUEST_USER_INPUT]}
_MODEL_ONLY = {
    "anyOf": [
        {"properties": {"subjects": {"items": {"const": "llm_call"}}}, "required": ["subjects"]},
        {"properties": {"event": {"const": "llm_before_execute"}}, "required": ["event"]},
    ]
}
_ASKING_ONLY = ("ask", "after_denial", "asks")
_TOOLS_ONLY = {"properties": {"subjects": {"items": {"const": "tool_call"}}, "event": {"const": "tool_before_execute"}}}


def build_rule_schema() -> _Schema:
    """Return the JSON Schema of a rules file."""
    model = PolicyRule.model_json_schema()
    defs = {name: _tidy(schema) for name, schema in model["$defs"].items() if name != "RuleCondition"}
    defs["Action"]["enum"].append("defer")
    defs["RequestPayload"]["not"] = {"required": ["choices", "response_schema"]}
    defs["Asks"]["anyOf"] = [{"required": ["per_run"]}, {"required": ["per_minute"]}]
    defs["Over"]["anyOf"] = [{"required": ["limit"]}, {"required": ["budget"]}]
    defs["Fallback"] |= _when({"action": {"const": "value"}}, {"required": ["value"]})
    terms = defs["RuleTerms"]
    terms |= {"not": {"required": ["timeout", "timeout_s"]}}
    terms["properties"]["fallback"].pop("default", None)
    defs["FileTerms"] = deepcopy(terms)
    del defs["FileTerms"]["properties"]["unattended_approval"]
    approves = {"properties": {"fallback": {"properties": {"action": {"const": "approve"}}, "required": ["action"]}}}
    attended = {"properties": {"unattended_approval": {"const": True}, "match_number": {"const": False}}}
    terms |= {"if": {**approves, "required": ["fallback"]}, "then": {**attended, "required": ["unattended_approval"]}}
    defs["Case"] = _build_case()
    defs["Rule"] = _build_rule(model, model["$defs"]["RuleCondition"]["properties"])
    _describe(defs)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Sayso rules",
        "description": "One file of rules: what agents may do alone, what is denied, and what people are asked about.",
        "type": "object",
        "required": ["version", "default", "rules"],
        "additionalProperties": False,
        "properties": {
            "version": {"const": VERSION, "description": "The version of this format."},
            "default": {
                "enum": [action for action in (*Action, "defer") if action is not Action.REQUEST_USER_INPUT],
                "description": "What happens when no rule matches.",
            },
            "terms": {"$ref": "#/$defs/FileTerms", "description": "What the terms of every rule start from."},
            "lists": {"type": "object", "description": "Named lists, which rules share."},
            "constants": {"type": "object", "description": "Named values, which conditions share."},
            "model_prices": {"type": "object", "description": "Prices of a million tokens, by the name of the model."},
            "tests": {"type": "array", "items": {"$ref": "#/$defs/Case"}, "description": "Calls to try on the rules."},
            "rules": {"type": "array", "items": {"$ref": "#/$defs/Rule"}, "description": "The rules, in any order."},
        },
        "$defs": dict(sorted(defs.items())),
    }


def _build_case() -> _Schema:
    return {
        "type": "object",
        "required": ["call", "expect"],
        "additionalProperties": False,
        "properties": {
            "name": {},
            "call": {"type": "object", "additionalProperties": False, "properties": {name: {} for name in CALL_KEYS}},
            "expect": {"enum": [*EXPECTATIONS]},
            "rule": {"type": ["string", "null"]},
            "granted": {"type": "object"},
            "after": {},
        },
    }


def _build_rule(model: _Schema, condition: _Schema) -> _Schema:
    properties: _Schema = {}
    for part, field in PARTS.items():
        schema = _tidy(condition[field[1]] if field[0] == "condition" else model["properties"][field[0]])
        holder = properties
        for name in part[:-1]:
            outer = {"type": "object", "additionalProperties": False, "properties": {}}
            holder = holder.setdefault(name, outer)["properties"]
        holder[part[-1]] = schema
    named = {"type": "object", "required": ["in"], "additionalProperties": False, "properties": {"in": {}}}
    for part, field in LISTED.items():
        properties[part[0]] = {"anyOf": [properties[part[0]], _tidy(condition[field[1]]), named]}
    properties["after"] = {"anyOf": [{"type": "string", "minLength": 1}, properties["after"]]}
    properties["when"] |= {"minLength": 1, "maxLength": MAX_EXPRESSION_CHARS}
    facts = {"propertyNames": {"enum": list(MODEL_FACTS)}, "additionalProperties": {"type": "string"}}
    properties["metadata"]["properties"]["equals"] |= facts
    return {
        "type": "object",
        "required": ["id", "action"],
        "additionalProperties": False,
        "properties": properties,
        "allOf": _list_conditions(),
    }


def _list_conditions() -> list[_Schema]:
    """Return what the keys of a rule say about each other."""
    asked = ("target_arg", "response_schema", "choices")
    no_answer = {"properties": {"ask": {"properties": dict.fromkeys(asked, False)}}}
    needs_target = {"properties": {"ask": {"required": ["target_arg"]}}, "required": ["ask"]}
    return [
        _when({"absolute": {"const": True}}, {"properties": {"action": {"const": Action.DENY}}}),
        _when({"mode": {"const": "shadow"}}, _TOOLS_ONLY),
        _when({"mode": {"const": "shadow"}}, {"properties": dict.fromkeys(MEMORY_KEYS, False)}),
        _when({"action": {"const": Action.ALLOW}}, {"properties": dict.fromkeys(_SCRUTINY, False)}),
        _when({"action": {"not": {"const": Action.ALLOW}}}, {"properties": {"limit": False, "budget": False}}),
        _when({"action": _ASKS}, _TOOLS_ONLY),
        _when({"action": {"enum": [Action.ALLOW, Action.DENY]}}, {"properties": dict.fromkeys(_ASKING_ONLY, False)}),
        _when({"action": {"enum": [Action.REQUEST_APPROVAL, "defer"]}}, _deny_fallback("value")),
        _when({"action": {"enum": [Action.REQUEST_APPROVAL, "defer"]}}, no_answer),
        _when({"action": {"const": Action.REQUEST_USER_INPUT}}, needs_target),
        _when({"action": {"const": Action.REQUEST_USER_INPUT}}, _deny_fallback("approve")),
        {"if": _MODEL_ONLY, "then": {"properties": {"tool": False, "subagent": False}}},
        {"if": {"required": ["metadata"]}, "then": _MODEL_ONLY},
        {"if": {"anyOf": [{"required": [key]} for key in MEMORY_KEYS]}, "then": _TOOLS_ONLY},
    ]


def _when(properties: _Schema, then: _Schema) -> _Schema:
    return {"if": {"properties": properties, "required": list(properties)}, "then": then}


def _deny_fallback(action: str) -> _Schema:
    fallback = {"properties": {"action": {"not": {"const": action}}}}
    return {"properties": {"terms": {"properties": {"fallback": fallback}}}}


def _tidy(schema: Any) -> Any:
    """Return the schema without titles, and without null, which no key of a rules file may have."""
    if isinstance(schema, list):
        return [_tidy(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {key: _tidy(value) for key, value in schema.items() if key != "title" or isinstance(value, dict)}
    if "anyOf" in plain:
        kept = [choice for choice in plain["anyOf"] if choice != {"type": "null"}]
        plain = {**plain, "anyOf": kept} if len(kept) > 1 else {**kept[0], **_without(plain, "anyOf")}
    return _without(plain, "default") if plain.get("default", ...) is None else plain


def _without(schema: _Schema, key: str) -> _Schema:
    return {name: value for name, value in schema.items() if name != key}


def _describe(defs: _Schema) -> None:
    for holder, names in DESCRIPTIONS.items():
        for path, words in names.items():
            schema = defs[holder]
            for name in path.split("."):
                schema = schema["properties"][name]
            schema["description"] = words
