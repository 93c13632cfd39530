"""Faults of rules, reported in the words and at the place of their file."""

import difflib
import re
from collections.abc import Iterable

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from sayso.core.calendar import TimeWindow
from sayso.core.policy import rule_keys
from sayso.core.policy.events import ModelPrice
from sayso.core.policy.files.yaml_documents import Document, Loc
from sayso.core.policy.rules import RequestPayload
from sayso.core.records.judgements import Sample
from sayso.core.records.terms import EscalationStep, Fallback, Quorum, RuleTerms

# The place of each part of a rule in the file, and in the model. A tool's name may also be a pattern.
PARTS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("id",): ("rule_id",),
    **{(name,): (name,) for name in ("action", "absolute", "priority", "enabled", "mode", "subjects", "reason")},
    **{(name,): (name,) for name in ("owner", "review_by", "valid_from", "valid_until")},
    ("event",): ("condition", "event_type"),
    ("tool",): ("condition", "tool_name"),
    ("agent",): ("condition", "agent"),
    ("subagent",): ("condition", "subagent_name"),
    ("after",): ("condition", "after"),
    ("context", "equals"): ("condition", "context_equals"),
    ("context", "has_keys"): ("condition", "context_has_keys"),
    ("claimed", "equals"): ("condition", "claimed_equals"),
    ("claimed", "has_keys"): ("condition", "claimed_has_keys"),
    ("metadata", "equals"): ("condition", "metadata_equals"),
    ("during",): ("condition", "during"),
    ("outside",): ("condition", "outside"),
    ("when",): ("condition", "when"),
    **{(name,): ("condition", name) for name in rule_keys.COUNTER_KEYS},
    ("ask",): ("request_payload",),
    ("terms",): ("terms",),
    **{(name,): (name,) for name in ("grants", "mandates", "assess", "after_denial", "asks")},
}
PATTERN = ("condition", "tool_name_pattern")
LISTED = {("tool",): ("condition", "tool_names"), ("agent",): ("condition", "agents")}
"""The fields of the parts that may be lists of names."""
_INNER: dict[str, type[BaseModel]] = {
    "model_prices": ModelPrice,
    "request_payload": RequestPayload,
    "during": TimeWindow,
    "outside": TimeWindow,
    "working_hours": TimeWindow,
    "terms": RuleTerms,
    "fallback": Fallback,
    "quorum": Quorum,
    "escalate": EscalationStep,
    "sample": Sample,
    "limit": rule_keys.Limit,
    "budget": rule_keys.Budget,
    "over": rule_keys.Over,
    "unseen": rule_keys.Unseen,
    "above": rule_keys.Above,
    "repeats": rule_keys.Repeats,
    "grants": rule_keys.Grants,
    "assess": rule_keys.Assess,
    "asks": rule_keys.Asks,
    "medium": rule_keys.Scrutiny,
    "high": rule_keys.Scrutiny,
    "mandates": rule_keys.Grants,
    "sum": rule_keys.GrantedSum,
    "learn": rule_keys.Learn,
}


def report_fault(document: Document, loc: Loc, fault: ErrorDetails) -> None:
    """Report a fault of the model at its place in the file."""
    kind, shown, place = fault["type"], repr(fault["input"])[:80], _unshape(loc)
    if fault["input"] is None and document.has_problem(place):
        return  # reported as missing value
    if kind == "too_short" and len(fault["input"]) >= fault["ctx"]["min_length"]:
        return  # the faulty part is reported at its own place
    if loc == ("rules",) and kind == "value_error":
        return  # a duplicate id, reported at its own place
    prefix = label(document, place)
    if kind == "missing":
        document.report(place, f"{prefix}is missing; add it")
    elif kind == "extra_forbidden":
        holder = next(name for name in reversed(loc[:-1]) if name in _INNER)
        words = label(document, place[:-1]) + describe_unknown(str(loc[-1]), _INNER[holder].model_fields)
        document.report(place, words, at_key=True)
    elif kind == "value_error":
        document.report(place, f"{prefix}{fault['ctx']['error']}")
    elif kind == "string_type":
        document.report(place, f"{prefix}must be a text, not {shown}; put it in quotes")
    else:
        words = re.sub(r"^(Input|String|Tuple) should", "must", fault["msg"].partition(", not ")[0])
        words = words.replace("an object", "a mapping").replace("array", "list").replace(" after validation", "")
        document.report(place, f"{prefix}{words}, not {shown}")


def _unshape(loc: Loc) -> Loc:
    if loc[:1] != ("rules",) or len(loc) < 3:
        return loc
    if loc[2:] == ("condition",):
        return loc[:2]  # its parts are keys of the rule itself
    for part, field in (*PARTS.items(), (("tool",), PATTERN), *LISTED.items()):
        if loc[2 : 2 + len(field)] == field:
            return (*loc[:2], *part, *loc[2 + len(field) :])
    return loc


def label(document: Document, loc: Loc) -> str:
    """Return the name of the place, such as `rule refunds: ask.prompt: `."""
    words, rest = "", loc
    if loc[:1] == ("rules",) and len(loc) > 1 and isinstance(loc[1], int):
        rule = document.content["rules"][loc[1]]
        name = rule.get("id") if isinstance(rule, dict) else None
        words, rest = f"rule {name if isinstance(name, str) else loc[1] + 1}: ", loc[2:]
    return words + (".".join(map(str, rest)) + ": " if rest else "")


def describe_unknown(key: str, known: Iterable[str]) -> str:
    """Return a message for an unknown key, with the closest known one."""
    close = difflib.get_close_matches(key, list(known), n=1)
    return f"there is no key `{key}` here; " + (f"did you mean `{close[0]}`?" if close else f"use {list_names(known)}")


def list_names(words: Iterable[str]) -> str:
    """Return the names in backticks, without duplicates."""
    return ", ".join(f"`{word}`" for word in dict.fromkeys(words))
