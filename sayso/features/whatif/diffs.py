"""What changes between two rulebooks: rules, their order and parts, with their texts, and in sentences."""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, JsonValue

from sayso.core.canonical_json import canonical_json
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.faults import LISTED, PARTS, PATTERN
from sayso.core.policy.files.yaml_documents import read_document
from sayso.core.policy.rules import ASKING, Action, PolicyRule
from sayso.core.sentences import join_words
from sayso.core.sentences.rules import describe_calls, describe_end, describe_rule, describe_wait, describe_who


class RuleSource(NamedTuple):
    """The lines of one rule; `line` counts from 1."""

    line: int
    text: str


def find_sources(raw: bytes) -> dict[str, RuleSource]:
    """Return the source of every rule with an id; none for a file that is not readable."""
    document = read_document(raw, "")
    if not isinstance(document.content, dict) or not isinstance(document.content.get("rules"), list):
        return {}
    lines = raw.decode("utf-8-sig").splitlines()
    rules = document.content["rules"]
    starts = [document.values["rules", index][0] for index in range(len(rules))]
    later = [line for loc, (line, _) in document.keys.items() if len(loc) == 1]
    sources = {}
    for rule, first, following in zip(rules, starts, [*starts[1:], None], strict=True):
        ends = [line for line in (following, *later) if line is not None and line > first]
        if isinstance(rule, dict) and isinstance(rule.get("id"), str):
            own = lines[first - 1 : min(ends, default=len(lines) + 1) - 1]
            while own and (not own[-1].strip() or own[-1].lstrip().startswith("#")):
                own.pop()  # blank lines and comments at the end belong to the next rule
            sources[rule["id"]] = RuleSource(first, "\n".join(own))
    return sources


class Kind(StrEnum):
    """What happened to a rule."""

    ADDED = "added"
    REMOVED = "removed"
    RENAMED = "renamed"
    CHANGED = "changed"


class PartChange(NamedTuple):
    """A part of a rule or of the file's terms, such as `condition.when` or `terms.timeout_s`, before and after."""

    part: str
    before: JsonValue
    after: JsonValue


class RuleDiff(NamedTuple):
    """A rule that is not the same in both rulebooks; `passes` are rules that it is tried before now, and was not."""

    kind: Kind
    before: PolicyRule | None
    after: PolicyRule | None
    parts: tuple[PartChange, ...] = ()
    passes: tuple[str, ...] = ()

    @property
    def rule_id(self) -> str:
        rule = self.after or self.before
        return rule.rule_id if rule is not None else ""


class RulebookDiff(NamedTuple):
    """What changes between two rulebooks.

    `file` are changes of the default, of lists and constants, and of the file's terms. Rules take over the terms:
    `inherits` names those that differ in nothing else, and the parts of other rules leave them out.
    """

    file: tuple[PartChange, ...]
    rules: tuple[RuleDiff, ...]
    inherits: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.file or self.rules or self.inherits)


def compare_rulebooks(old: Policy, new: Policy) -> RulebookDiff:
    """Return every difference between the rules, apart from their place and form in the file."""
    before = {rule.rule_id: rule for rule in old.rules}
    after = {rule.rule_id: rule for rule in new.rules}
    terms = _compare(old.terms, new.terms, "terms")
    default = [] if old.default is new.default else [PartChange("default", old.default, new.default)]
    renamed: dict[str, str] = {}  # each new rule that is otherwise equal to exactly one that is gone
    for rule_id in sorted(after.keys() - before.keys()):
        equal = [name for name in before.keys() - after.keys() if not _compare(before[name], after[rule_id])]
        if len(equal) == 1 and equal[0] not in renamed.values():
            renamed[rule_id] = equal[0]
    diffs: list[RuleDiff] = []
    inherits: list[str] = []
    order, later = [*before], [*after]
    for rule in new.rules:
        earlier = before.get(rule.rule_id)
        if earlier is None:
            earlier = before[renamed[rule.rule_id]] if rule.rule_id in renamed else None
            kind = Kind.ADDED if earlier is None else Kind.RENAMED
            diffs.append(RuleDiff(kind, earlier, rule))
            continue
        changed = _compare(earlier, rule)
        parts = tuple(change for change in changed if change not in terms)
        behind = set(later[later.index(rule.rule_id) + 1 :])
        passes = tuple(other for other in order[: order.index(rule.rule_id)] if other in behind)
        if parts or passes:
            diffs.append(RuleDiff(Kind.CHANGED, earlier, rule, parts, passes))
        elif changed:
            inherits.append(rule.rule_id)
    gone = before.keys() - after.keys() - set(renamed.values())
    diffs += [RuleDiff(Kind.REMOVED, rule, None) for rule in old.rules if rule.rule_id in gone]
    names = [*_compare_names("lists", old.lists, new.lists), *_compare_names("constants", old.constants, new.constants)]
    return RulebookDiff((*default, *terms, *names), tuple(diffs), tuple(inherits))


def _compare_names(kind: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[PartChange]:
    """Yield the lists or constants that differ, such as `lists.eu`; null for one that is not defined."""
    for name in sorted(old.keys() | new.keys()):
        before, after = _dump(old.get(name)), _dump(new.get(name))
        if canonical_json(before) != canonical_json(after):
            yield PartChange(f"{kind}.{name}", before, after)


def _compare(before: BaseModel, after: BaseModel, prefix: str = "") -> list[PartChange]:
    """Return the fields that differ; those of inner models by their own names."""
    changes: list[PartChange] = []
    for name in type(after).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        place = f"{prefix}.{name}" if prefix else name
        if name == "rule_id" or (old == new and _dump(old) == _dump(new)):
            continue
        if isinstance(old, BaseModel) and type(old) is type(new) and not prefix:
            changes += _compare(old, new, place)
        else:
            changes.append(PartChange(place, _dump(old), _dump(new)))
    return changes


def _dump(value: Any) -> JsonValue:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, tuple | list):
        return [_dump(entry) for entry in value]
    dumped: JsonValue = str(value) if isinstance(value, StrEnum) else value
    return dumped


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
    return sentences + [sentence for rule in compared.rules for sentence in _describe_rule(rule)]


def _describe_rule(diff: RuleDiff) -> Iterator[str]:
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
    "terms.stages": ("asks", describe_who),
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
