"""Proposals of grants, from what people decided on like calls: pure functions."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.clock import DAY_MS
from sayso.core.policy.counters.readings import read_amount, to_units
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.external import describe_item
from sayso.core.policy.rule_keys import Grants, Learn
from sayso.core.policy.rules import PolicyRule
from sayso.core.records.decisions import ActorKind, DecisionAction, Verdict
from sayso.core.records.envelopes import Constraint, ConstraintKind
from sayso.core.records.items import Item, ItemKind
from sayso.core.records.permissions import Denial, Grant, GrantState, GrantSum, Learned
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.text.redaction import MASK, redact
from sayso.errors import SaysoError
from sayso.features.permissions.grants import digest_rest, digest_rule, names_call

LEARNED_FROM_MS = 30 * DAY_MS
"""How far back decisions count."""

OFFERED_MS = 30 * DAY_MS
"""How long a proposal waits for people."""

_MOST_ARGUMENTS = 20
_PATH = re.compile(r"args(\.[A-Za-z_][A-Za-z0-9_-]{0,99}){1,10}", re.ASCII)


class Answered(StrEnum):
    """How people decided a call."""

    APPROVED = "approved"
    EDITED = "edited"
    DENIED = "denied"


class Lesson(NamedTuple):
    """A call that people decided, with what its item held. `masked` are its arguments without secrets."""

    event: PolicyEvent
    answered: Answered
    at_ms: int
    rule_id: str
    rule_digest: str
    masked: JsonObject
    denial: Denial | None
    suspension_id: str
    item_id: str


class _Approved(NamedTuple):
    """An approved call, with limits that leave it as it is but for its amount and what is free."""

    lesson: Lesson
    limits: tuple[Constraint, ...]


def read_answer(item: Item) -> Answered | None:
    """Return how people decided an item; None if they did not. One denial counts, also if others outvoted it."""
    outcome = item.outcome
    deniers = [decision.by.kind for decision in item.decisions if decision.action is DecisionAction.DENY]
    by_person = outcome is not None and outcome.by.kind is ActorKind.HUMAN
    if ActorKind.HUMAN in deniers or (outcome is not None and by_person and outcome.verdict is Verdict.DENIED):
        return Answered.DENIED
    if outcome is None or not by_person or outcome.verdict is not Verdict.APPROVED:
        return None
    return Answered.APPROVED if outcome.args is None else Answered.EDITED


def read_lesson(record: SuspensionRecord, item: Item) -> Lesson | None:
    """Return what the decision on an item teaches; None for items of rules that learn nothing, and false calls."""
    answered = read_answer(item)
    plain = item.kind is ItemKind.APPROVAL and item.doubt is None and item.drill is None
    if answered is None or item.learning is None or not plain:
        return None
    denied = next((decision for decision in item.decisions if decision.action is DecisionAction.DENY), None)
    by, at_ms = (denied.by.id, denied.at_ms) if denied is not None else ("", 0)
    at_ms = item.outcome.at_ms if item.outcome is not None else at_ms
    denial = Denial(by=by, at_ms=at_ms, suspension_id=record.id, item_id=item.item_id)
    return Lesson(
        event=describe_item(record, item, item.tool.args),
        answered=answered,
        at_ms=at_ms,
        rule_id=item.terms.rule_id or "",
        rule_digest=item.learning.rule_digest,
        masked=redact(item.tool.args, None, item.terms.secrets).args,
        denial=denial if answered is Answered.DENIED else None,
        suspension_id=record.id,
        item_id=item.item_id,
    )


def propose_grants(rule: PolicyRule, lessons: Iterable[Lesson], known: Iterable[Grant], now_ms: int) -> Iterator[Grant]:
    """Yield the grants that the decisions of the last 30 days on calls of this rule suggest.

    `known` are the grants there were, so that no second one is proposed beside one that lasts, and that decisions from
    before one ended do not count again. A proposal covers no call that people denied or edited.
    """
    if rule.grants is None or rule.grants.learn is None or not rule.is_live:
        return
    grants, learn, digest, ended = rule.grants, rule.grants.learn, digest_rule(rule), _find_ends(known, now_ms)
    recent = [lesson for lesson in lessons if lesson.rule_digest == digest and lesson.at_ms > now_ms - LEARNED_FROM_MS]
    refused = [lesson for lesson in recent if lesson.answered is not Answered.APPROVED]
    for like, alike in _group(grants, learn, recent).items():
        since_ms = ended.get(like, 0)
        counted = [approved for approved in alike if since_ms is not None and approved.lesson.at_ms > since_ms]
        if since_ms is None or len(counted) < learn.after:
            continue
        learned = Learned(
            like=like, approvals=len(counted), proposed_at_ms=now_ms, probation=learn.probation, lasts_s=grants.longest
        )
        grant = _build(rule, grants, digest, learned, counted, since_ms)
        covered = all(names_call(grant, rule.rule_id, approved.lesson.event) for approved in counted)
        if covered and not any(names_call(grant, rule.rule_id, lesson.event) for lesson in refused):
            yield grant


def _find_ends(known: Iterable[Grant], now_ms: int) -> dict[str, int | None]:
    """Return when the last learned grant ended, by likeness; None while one lasts."""
    ends: dict[str, int | None] = {}
    for grant in known:
        if grant.learned is None:
            continue
        lasts = grant.find_state(now_ms) in (GrantState.PROBATION, GrantState.WAITING, GrantState.IN_FORCE)
        times = (grant.revoked_at_ms, grant.denial.at_ms if grant.denial is not None else None)
        end_ms = min([time_ms for time_ms in times if time_ms is not None], default=grant.until_ms)
        before = ends.get(grant.learned.like, 0)
        ends[grant.learned.like] = None if lasts or before is None else max(before, end_ms)
    return ends


def _group(grants: Grants, learn: Learn, lessons: Iterable[Lesson]) -> dict[str, list[_Approved]]:
    """Return the approved calls by the digest of what they have in common, each group in the order of decisions."""
    groups: dict[str, list[_Approved]] = defaultdict(list)
    approved = (lesson for lesson in lessons if lesson.answered is Answered.APPROVED)
    for lesson in sorted(approved, key=lambda lesson: lesson.at_ms):
        event, limits = lesson.event, _limit(grants, learn, lesson)
        if limits is not None:
            who = [event.agent, event.started_by, event.subagent_name, event.tool_name, event.definition]
            held = [[limit.path, limit.kind, None if _is_amount(limit) else limit.value] for limit in limits]
            with suppress(SaysoError):  # the arguments are too large for a digest
                like = digest_json([*who, held, digest_rest(event.tool_args, limits)])
                groups[like].append(_Approved(lesson, limits))
    return groups


def _limit(grants: Grants, learn: Learn, lesson: Lesson) -> tuple[Constraint, ...] | None:
    """Return limits that leave a call as it is, up to its amount and what is free; None if they cannot be stated."""
    amount = grants.sum.of if grants.sum is not None and grants.sum.of not in grants.by else None
    leaves = [(path, value) for path, value in _list_leaves(lesson.masked, "args", learn.free) if value is not None]
    paths = {path for path, _ in leaves}
    needed = {*grants.by, *((grants.sum.of,) if grants.sum is not None else ())}
    if not needed <= paths or len(paths) > _MOST_ARGUMENTS or not all(map(_PATH.fullmatch, paths)):
        return None
    limits: list[Constraint] = []
    for path, value in sorted(leaves):
        if path in learn.free:
            limits.append(Constraint(path=path, kind=ConstraintKind.ANY))
        elif value == MASK:
            return None
        elif path == amount:
            try:
                limits.append(Constraint(path=path, kind=ConstraintKind.AT_MOST, value=read_amount(value, path)))
            except SaysoError:
                return None
        else:
            limits.append(Constraint(path=path, kind=ConstraintKind.EQUAL, value=value))
    return tuple(limits)


def _list_leaves(args: JsonObject, path: str, whole: Sequence[str]) -> Iterator[tuple[str, JsonValue]]:
    for name, value in args.items():
        inner = f"{path}.{name}"
        if isinstance(value, dict) and inner not in whole:
            yield from _list_leaves(value, inner, whole)
        else:
            yield inner, value


def _is_amount(limit: Constraint) -> bool:
    return limit.kind is ConstraintKind.AT_MOST


def _build(
    rule: PolicyRule, grants: Grants, rule_digest: str, learned: Learned, counted: Sequence[_Approved], since_ms: int
) -> Grant:
    """Return the grant of calls like these, up to the greatest approved amount. Nobody has granted it yet."""
    last, limits = counted[-1]
    event = last.event
    widest = [
        max(
            (approved.limits[place] for approved in counted),
            key=lambda most: most.value if isinstance(most.value, int) else 0,
        )
        if _is_amount(limit)
        else limit
        for place, limit in enumerate(limits)
    ]
    return Grant(
        id=f"gra_{digest_json([rule_digest, learned.like, since_ms])[:32]}",
        rule_id=rule.rule_id,
        rule_digest=rule_digest,
        agent=event.agent,
        owner=event.started_by or "",
        subagent=event.subagent_name,
        tool=event.tool_name or "",
        definition=event.definition or "",
        constraints=tuple(widest),
        rest_digest=digest_rest(event.tool_args, limits),
        count=grants.count,
        sum=GrantSum(of=grants.sum.of, max=to_units(grants.sum.max)) if grants.sum is not None else None,
        at_ms=learned.proposed_at_ms,
        until_ms=learned.proposed_at_ms + OFFERED_MS,
        people=max(grants.people, rule.terms.quorum.approve),
        each_of=rule.terms.quorum.each_of,
        granters=(),
        suspension_id=last.suspension_id,
        item_id=last.item_id,
        learned=learned,
    )
