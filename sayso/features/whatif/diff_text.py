"""Sentences about the differences between two rulebooks."""

import json
from collections.abc import Iterator

from pydantic import JsonValue

from sayso.core.policy.files.faults import LISTED, PARTS, PATTERN
from sayso.core.policy.rules import ASKING, Action, PolicyRule
from sayso.core.sentences import join_words
from sayso.core.sentences.rules import describe_calls, describe_end, describe_rule, describe_wait, describe_who
from sayso.features.whatif.diffs import Kind, PartChange, RulebookDiff, RuleDiff

_VALUE_CHARS = 200
_DOES = {
    Action.ALLOW: "allows",
    Action.DENY: "denies",
    Action.REQUEST_APPROVAL: "asks for approval",
    Action.REQUEST_USER_INPUT: "asks for a value",
}
_KEYS = {".".join(field): ".".join(part) for part, field in PARTS.items()}
_KEYS |= {".".join(field): ".".join(part) for part, field in LISTED.items()}
_KEYS |= {".".join(PATTERN): "tool", "request_payload": "ask"}


def list_differences(compared: RulebookDiff) -> list[str]:
    """Return a sentence for each difference; several changes of one rule are one sentence each."""
    sentences = [f"The file: {_describe_part(part)}." for part in compared.file]
    if compared.inherits:
        sentences.append(f"The file's terms change {join_words(compared.inherits)}, too.")
    return sentences + [sentence for rule in compared.rules for sentence in _describe(rule)]


def _describe(diff: RuleDiff) -> Iterator[str]:
    name, before, after = f"Rule {diff.rule_id}", diff.before, diff.after
    if diff.kind is Kind.ADDED and after is not None:
        yield f"{name} is new{_note(after)}: {describe_rule(after)}"
    elif diff.kind is Kind.REMOVED and before is not None:
        yield f"{name} is gone{_note(before)}: {describe_rule(before)}"
    elif diff.kind is Kind.RENAMED and before is not None:
        yield f"{name} was called {before.rule_id}."
    elif before is not None and after is not None:
        changes = [_describe_in_words(part, before, after) for part in diff.parts]
        if diff.passes:
            changes.append(f"is tried before {join_words(diff.passes)} now, no longer after")
        yield from (f"{name}: {change}." for change in dict.fromkeys(changes))


def _describe_in_words(part: PartChange, before: PolicyRule, after: PolicyRule) -> str:
    name = part.part
    if name == "action":
        return f"{_DOES[after.action]}, no longer {_DOES[before.action]}"
    if name == "enabled":
        return "is enabled" if after.enabled else "is disabled"
    if name.startswith("condition.") or name == "subjects":
        was, now = describe_calls(before), describe_calls(after)
        if was != now:
            return f"covers “{now}”, no longer “{was}”"
    if name in _TERMS and before.action in ASKING and after.action in ASKING:
        was, now = _TERMS[name][1](before.terms), _TERMS[name][1](after.terms)
        if was != now:
            return f"{_TERMS[name][0]} {now}, no longer {was}"
    return _describe_part(part)


_TERMS = {
    "terms.reviewers": ("asks", describe_who),
    "terms.quorum": ("asks", describe_who),
    "terms.timeout_s": ("waits", describe_wait),
    "terms.fallback": ("at the deadline:", describe_end),
}


def _describe_part(part: PartChange) -> str:
    if part.part.startswith("lists.") and isinstance(part.before, list) and isinstance(part.after, list):
        more, gone = (
            [entry for entry in part.after if entry not in part.before],
            [entry for entry in part.before if entry not in part.after],
        )
        words = [f"has {_write(more)} now"] if more else []
        words += [f"has {_write(gone)} no longer"] if gone else []
        return f"`{part.part}` {join_words(words) or 'has its entries in another order or number'}"
    key = next(
        (
            f"{own}{part.part.removeprefix(name)}"
            for name, own in _KEYS.items()
            if part.part == name or part.part.startswith(f"{name}.")
        ),
        "",
    )
    return f"`{key or part.part}` is {_write(part.after)}, no longer {_write(part.before)}"


def _note(rule: PolicyRule) -> str:
    return f" (priority {rule.priority})" if rule.enabled else f" (priority {rule.priority}, disabled)"


def _write(value: JsonValue) -> str:
    if value is None or value in ([], {}):
        return "not given"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}…"
