"""Outcomes without a desk: from an agent's own fallbacks, or from the caller in the same process."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import same_json
from sayso.core.records.decisions import Actor, ActorKind, DecisionAction, Outcome, Verdict
from sayso.core.records.items import ItemDraft, ItemKind
from sayso.core.records.terms import Fallback, FallbackAction
from sayso.runner.batches import Resumption

HEADLESS = Actor(id="headless", kind=ActorKind.POLICY, channel="headless")
"""Actor of decisions that no person makes."""

Fits = Callable[[ItemDraft, JsonValue], bool]
"""Whether a draft accepts a value."""

NOBODY_ASKED = "Denied: this agent runs where nobody can be asked."

_VERDICTS = {
    DecisionAction.APPROVE: Verdict.APPROVED,
    DecisionAction.DENY: Verdict.DENIED,
    DecisionAction.VALUE: Verdict.ANSWERED,
    DecisionAction.FAIL: Verdict.FAILED,
}


def resolve(
    draft: ItemDraft,
    action: DecisionAction,
    *,
    by: Actor,
    at_ms: int,
    args: JsonObject | None = None,
    value: JsonValue = None,
    message: str | None = None,
) -> Resumption:
    """Return one outcome for `draft`: approve, perhaps with other arguments; deny; give the value; fail the run."""
    if action is DecisionAction.VALUE and draft.target_arg is not None:
        args = {**draft.tool.args, draft.target_arg: value}
    outcome = Outcome(
        verdict=_VERDICTS[action],
        args=args,
        value=value,
        message=message,
        by=by,
        at_ms=at_ms,
        start_by_ms=at_ms + draft.terms.start_by_s * 1000,
        digest="",
    )
    return Resumption(item_id=None, outcome=outcome, args=draft.tool.args if args is None else args)


def is_offered(draft: ItemDraft, value: JsonValue) -> bool:
    """Whether a value is one of the choices, if any. Checking its schema takes `sayso[server]`."""
    return draft.choices is None or any(same_json(value, choice) for choice in draft.choices)


def fall_back(
    drafts: Iterable[ItemDraft], approval: Fallback, given: Fallback, at_ms: int, fits: Fits = is_offered
) -> Mapping[int, Resumption]:
    """Resolve every draft by a fallback. Approvals need a rule with `unattended_approval`."""
    fallbacks = {ItemKind.APPROVAL: approval}
    return {draft.index: _fall_back(draft, fallbacks.get(draft.kind, given), at_ms, fits) for draft in drafts}


def _fall_back(draft: ItemDraft, fallback: Fallback, at_ms: int, fits: Fits) -> Resumption:
    decide = partial(resolve, draft, by=HEADLESS, at_ms=at_ms)
    if fallback.action is FallbackAction.FAIL:
        message = fallback.message or "Nobody can be asked, and the agent's fallback fails the run."
        return decide(DecisionAction.FAIL, message=message)
    approvable = draft.kind is ItemKind.APPROVAL and draft.terms.unattended_approval
    if fallback.action is FallbackAction.APPROVE and approvable:
        return decide(DecisionAction.APPROVE, message=fallback.message)
    if fallback.action is FallbackAction.VALUE and draft.kind is ItemKind.INPUT and fits(draft, fallback.value):
        return decide(DecisionAction.VALUE, value=fallback.value, message=fallback.message)
    return decide(DecisionAction.DENY, message=fallback.message or NOBODY_ASKED)
