"""The JSON Schema of a rules file, for editors, generated from the models that read it.

It refuses what the reader of rules refuses, as far as a schema can say it: not conditions, time zones, or what a
rule takes over from the file's terms.
"""

from copy import deepcopy
from typing import Any

from sayso.core.policy.conditions import MAX_EXPRESSION_CHARS
from sayso.core.policy.files.cases import CALL_KEYS, EXPECTATIONS
from sayso.core.policy.files.faults import LISTED, PARTS
from sayso.core.policy.files.reading import OF_RULES, VERSION
from sayso.core.policy.rule_keys import COUNTER_KEYS
from sayso.core.policy.rules import MODEL_FACTS, Action, PolicyRule
from sayso.core.records.terms import TERMS

_PERIOD = "A number with s, m, h, d or w, such as 1h or 90d."
_BY = "What counts apart: agent, subagent, tool, run, an argument (args.customer) or a fact (context.team)."
_TERMS = {name: term.text for name, term in TERMS.items()}

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "Rule": {
        "id": "The name of the rule.",
        "action": "What happens to a call that matches: allow, deny, request_approval (or defer), request_user_input.",
        "absolute": "Whether nothing lifts the denial. Only for the action deny.",
        "priority": "Higher is tried earlier. Within a priority the order is by id.",
        "enabled": "False disables the rule.",
        "mode": "A shadow rule is judged and counted, and has no effect.",
        "subjects": "The kinds of calls: tool_call, llm_call or any.",
        "reason": "Why the rule exists, for reviewers and the trail.",
        "owner": "Who answers for the rule.",
        "review_by": "The date (UTC) by which the rule must be reviewed. Rule checks warn when it has passed.",
        "valid_from": "A date, or a time with a zone, from which the rule applies: 2026-12-01 Europe/Zurich.",
        "valid_until": "A date, or a time with a zone, until which the rule applies. A date is included.",
        "event": "The kind of event, the same as subjects.",
        "tool": "The tool's name, a pattern with *, ? and […], a list of both, or {in: LIST}.",
        "agent": "The agent's name, a pattern, a list of both, or {in: LIST}.",
        "after": "Tools of which one ran before in the same run: a name, a pattern or a list.",
        "subagent": "The name of the sub-agent that makes the call, or a pattern.",
        "context": "Facts about the run.",
        "context.equals": "Facts and the values that they must have.",
        "context.has_keys": "Facts that must be known.",
        "claimed": "What the agent says about the run. Nobody checked it.",
        "claimed.equals": "Claims and the values that they must have.",
        "claimed.has_keys": "Claims that must be made.",
        "metadata": "The model and provider of a model call.",
        "metadata.equals": "The model and provider that the call must have.",
        "during": "Hours of weekdays in which the rule applies.",
        "outside": "Hours of weekdays outside of which the rule applies.",
        "limit": "For allow: at most so many calls in every period.",
        "budget": "For allow: at most such a sum of an argument in every period.",
        "over": "For asking and deny: calls beyond a limit or budget.",
        "unseen": "For asking and deny: calls whose value no earlier call had.",
        "above": "For asking and deny: calls with an unusually high amount.",
        "repeats": "For asking and deny: calls that equal earlier ones.",
        "when": "A condition in CEL, such as `args.amount > 100`.",
        "ask": "What reviewers see and may answer.",
        "terms": "Who decides and until when. A key replaces that of the file's terms.",
        "after_denial": "For asking: deny or ask, when a call is requested again that a person has denied.",
        "asks": "For asking: the most calls that people are asked about. Calls beyond are denied.",
        "assess": "An assessor that may add scrutiny, and what each of its levels adds.",
        "grants": "What reviewers may grant beside an approval. Without it, nothing.",
        "mandates": "What plans of agents may cover once people approve them. Without it, nothing.",
    },
    "RequestPayload": {
        "title": "A title, shown beside the call.",
        "prompt": "A text, shown beside the call.",
        "allow_edit": "Whether reviewers may change the arguments before they approve.",
        "target_arg": "The argument that takes the value. Only for request_user_input, which needs it.",
        "choices": "The possible answers.",
        "response_schema": "The JSON Schema of the answer.",
        "metadata": "Anything else for the reviewer.",
    },
    "Fallback": {
        "action": "deny, approve, value, escalate, or fail for the whole run.",
        "value": "The value for the argument. Only for the action value.",
        "message": "The text that the model receives.",
    },
    "Quorum": {
        "approve": "How many different people must approve.",
        "deny": "How many different people must deny.",
        "each_of": "Groups, as group:NAME, and people: one different person of each must be among those who approve.",
    },
    "Stage": {"reviewers": "Who may decide in it.", "quorum": "How many of them must approve, or deny."},
    "EscalationStep": {"after_s": "Seconds after the request.", "reviewers": "The people and groups who join."},
    "Case": {
        "name": "What failures are called by.",
        "call": "The call: tool, args, agent, context and other facts.",
        "expect": "allow, deny, request_approval, request_user_input, or ask for either of the last two.",
        "rule": "The id of the rule that should decide, or default.",
        "after": "How often the same call was let run before.",
        "granted": "What a person granted before: for, ago, count, sum, limits on arguments, and the approved call.",
    },
    "Asks": {
        "per_run": "The most calls of one run and its thread, within 30 days.",
        "per_minute": "The most calls of one agent in a minute.",
    },
    "Limit": {"count": "The most calls in every period.", "per": _PERIOD, "by": _BY},
    "Budget": {"sum": "The argument to add up.", "max": "The most in every period.", "per": _PERIOD, "by": _BY},
    "Over": {"limit": "The rule applies to calls beyond it.", "budget": "The rule applies to calls beyond it."},
    "Unseen": {"value": "The argument to compare.", "within": _PERIOD, "by": _BY},
    "Above": {
        "of": "The argument with the amount.",
        "within": _PERIOD,
        "percentile": "The percentile of earlier amounts to compare with.",
        "at_least": "How many earlier amounts must be known.",
        "by": _BY,
    },
    "Grants": {
        "longest": "How long a grant or mandate may last: a number with s, m, h, d or w.",
        "count": "The most calls of one.",
        "sum": "The most of an argument over all its calls.",
        "by": "Arguments that must stay as in the approved call, or that a plan must name.",
        "people": "How many people must grant it, or approve the plan.",
        "learn": "When Sayso proposes a grant. Without it, never.",
    },
    "Learn": {
        "after": "How many like calls people must approve, and none deny or edit.",
        "probation": "How many calls that it would have allowed people must then approve.",
        "free": "Arguments that may differ between like calls.",
    },
    "GrantedSum": {"of": "The argument to add up.", "max": "The most in sum."},
    "Sample": {
        "before": "The share of items, such as 0.1, that need one more approval.",
        "after": "The share of allowed and decided calls, such as 0.05, that somebody reviews afterwards.",
    },
    "Assess": {
        "by": "The name of the assessor in the file of SAYSO_ASSESSORS.",
        "medium": "What the level medium adds. Without it, nothing.",
        "high": "What the level high adds, also if there is no usable answer.",
    },
    "Scrutiny": {
        "quorum": "How many different people must approve.",
        "reviewers": "Who may decide: some of the rule's reviewers.",
        "match_number": "Whether an approval needs the two digits that the requester sees.",
        "reason": "A text beside the rule's reason.",
    },
    "Repeats": {"within": _PERIOD, "more_than": "How many equal calls may run."},
    "FileTerms": {name: text for name, text in _TERMS.items() if name not in OF_RULES},
    "RuleTerms": _TERMS,
}


_Schema = dict[str, Any]
_SCRUTINY = [key for key in COUNTER_KEYS if key not in ("limit", "budget")]
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
    twice = [("timeout", "timeout_s"), ("stages", "reviewers"), ("stages", "quorum")]
    terms |= {"not": {"anyOf": [{"required": [*names]} for names in twice]}}
    terms["properties"]["fallback"].pop("default", None)
    approved = {"properties": {"quorum": {"properties": {"approve": {"minimum": 1}}}}}
    terms["anyOf"] = [{"required": ["confirm_by"]}, approved]
    defs["FileTerms"] = deepcopy(terms)
    for name in OF_RULES:
        del defs["FileTerms"]["properties"][name]
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
    asked = ("target_arg", "response_schema", "choices")
    no_answer = {"properties": {"ask": {"properties": dict.fromkeys(asked, False)}}}
    needs_target = {"properties": {"ask": {"required": ["target_arg"]}}, "required": ["ask"]}
    return [
        _when({"absolute": {"const": True}}, {"properties": {"action": {"const": Action.DENY}}}),
        _when({"mode": {"const": "shadow"}}, _TOOLS_ONLY),
        _when({"mode": {"const": "shadow"}}, {"properties": dict.fromkeys(COUNTER_KEYS, False)}),
        _when({"action": {"const": Action.ALLOW}}, {"properties": dict.fromkeys(_SCRUTINY, False)}),
        _when({"action": {"not": {"const": Action.ALLOW}}}, {"properties": {"limit": False, "budget": False}}),
        _when({"action": _ASKS}, _TOOLS_ONLY),
        _when({"action": {"not": {"const": Action.ALLOW}}}, {"properties": {"terms": {"properties": {"veto": False}}}}),
        _when({"action": {"enum": [Action.ALLOW, Action.DENY]}}, {"properties": dict.fromkeys(_ASKING_ONLY, False)}),
        _when({"action": {"enum": [Action.REQUEST_APPROVAL, "defer"]}}, _deny_fallback("value")),
        _when({"action": {"enum": [Action.REQUEST_APPROVAL, "defer"]}}, no_answer),
        _when({"action": {"const": Action.REQUEST_USER_INPUT}}, needs_target),
        _when({"action": {"const": Action.REQUEST_USER_INPUT}}, _deny_fallback("approve")),
        {"if": _MODEL_ONLY, "then": {"properties": {"tool": False, "subagent": False}}},
        {"if": {"required": ["metadata"]}, "then": _MODEL_ONLY},
        {"if": {"anyOf": [{"required": [key]} for key in COUNTER_KEYS]}, "then": _TOOLS_ONLY},
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
