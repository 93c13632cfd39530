"""Answer what was asked where no desk does: by an agent's own fallbacks, or by whoever runs it in one process."""

from collections.abc import Callable, Iterable, Mapping

from pydantic import JsonValue

from sayso.canonical_json import JsonObject
from sayso.policy.rules import same_json
from sayso.records.decisions import Actor, ActorKind, DecisionAction, Outcome, Verdict
from sayso.records.items import ItemDraft, ItemKind
from sayso.records.terms import Fallback, FallbackAction
from sayso.runner.batches import Resumption

HEADLESS = Actor(id="headless", kind=ActorKind.POLICY, channel="headless")
"""Who decides where there is nobody to ask."""

Fits = Callable[[ItemDraft, JsonValue], bool]
"""Whether a value is one of the answers that an ask takes."""

NOBODY_ASKED = "Denied: this agent runs where nobody can be asked."

_VERDICTS = {
    DecisionAction.APPROVE: Verdict.APPROVED,
    DecisionAction.DENY: Verdict.DENIED,
    DecisionAction.VALUE: Verdict.ANSWERED,
    DecisionAction.FAIL: Verdict.FAILED,
}


def resolve(
    ask: ItemDraft,
    action: DecisionAction,
    *,
    by: Actor,
    at_ms: int,
    args: JsonObject | None = None,
    value: JsonValue = None,
    message: str | None = None,
) -> Resumption:
    """Return one answer to `ask`: approve, with other arguments or as asked; deny; give the value; fail the run."""
    if action is DecisionAction.VALUE and ask.target_arg is not None:
        args = {**ask.tool.args, ask.target_arg: value}
    outcome = Outcome(
        verdict=_VERDICTS[action],
        args=args,
        value=value,
        message=message,
        by=by,
        at_ms=at_ms,
        start_by_ms=at_ms + ask.terms.start_by_s * 1000,
        digest="",
    )
    return Resumption(item_id=None, outcome=outcome, args=ask.tool.args if args is None else args)


def is_offered(ask: ItemDraft, value: JsonValue) -> bool:
    """Whether a value is one of the choices, where there are some; what its schema says takes a library to know."""
    return ask.choices is None or any(same_json(value, choice) for choice in ask.choices)


def fall_back(
    drafts: Iterable[ItemDraft], approval: Fallback, given: Fallback, at_ms: int, fits: Fits = is_offered
) -> Mapping[int, Resumption]:
    """Answer every ask by a fallback. Only a rule that allows it lets an approval be given with nobody looking."""
    fallbacks = {ItemKind.APPROVAL: approval}
    return {ask.index: _fall_back(ask, fallbacks.get(ask.kind, given), at_ms, fits) for ask in drafts}


def _fall_back(ask: ItemDraft, fallback: Fallback, at_ms: int, fits: Fits) -> Resumption:
    if fallback.action is FallbackAction.FAIL:
        message = fallback.message or "Nobody can be asked, and the agent's fallback fails the run."
        return resolve(ask, DecisionAction.FAIL, by=HEADLESS, at_ms=at_ms, message=message)
    if fallback.action is FallbackAction.APPROVE and ask.kind is ItemKind.APPROVAL and ask.terms.unattended_approval:
        return resolve(ask, DecisionAction.APPROVE, by=HEADLESS, at_ms=at_ms, message=fallback.message)
    if fallback.action is FallbackAction.VALUE and ask.kind is ItemKind.INPUT and fits(ask, fallback.value):
        return resolve(
            ask, DecisionAction.VALUE, by=HEADLESS, at_ms=at_ms, value=fallback.value, message=fallback.message
        )
    return resolve(ask, DecisionAction.DENY, by=HEADLESS, at_ms=at_ms, message=fallback.message or NOBODY_ASKED)
