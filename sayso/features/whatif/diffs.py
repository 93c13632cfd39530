"""What changes between two rulebooks: rules, their order, and each part of them, with the text of each rule."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, JsonValue

from sayso.core.canonical_json import canonical_json
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.yaml_documents import read_document
from sayso.core.policy.rules import PolicyRule


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
    renamed = _find_renamed(before, after)
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


def _find_renamed(before: Mapping[str, PolicyRule], after: Mapping[str, PolicyRule]) -> dict[str, str]:
    """Return the earlier name of each new rule that is otherwise equal to exactly one that is gone."""
    gone = [before[rule_id] for rule_id in before.keys() - after.keys()]
    renamed: dict[str, str] = {}
    for rule_id in sorted(after.keys() - before.keys()):
        equal = [rule.rule_id for rule in gone if not _compare(rule, after[rule_id])]
        if len(equal) == 1 and equal[0] not in renamed.values():
            renamed[rule_id] = equal[0]
    return renamed
