"""Revalidation of approved calls right before they run; days may have passed since the approval.

A call is denied if the rules now deny it or its key is revoked. It is asked again, with the reason, if its tool
changed, its rule was withdrawn or its approver is no longer a reviewer. Other calls of the batch keep their outcomes.

The rules see the time at which the agent asked, so the clock alone refuses no call that a person approved. Absolute
rules are tried at the time of the start, too: nothing lifts their denials.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from sayso.core.policy.budgets import complete
from sayso.core.policy.counters.charging import NO_READINGS, Ledger
from sayso.core.policy.counters.readings import Readings, Wanted
from sayso.core.policy.decisions import PolicyDecision, build_item, find_misplaced, put_question, settle_confirmation
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.external import decides_alike, describe_item
from sayso.core.policy.rules import ASKING, Action
from sayso.core.records.decisions import ActorKind, Verdict
from sayso.core.records.events import Event, EventType
from sayso.core.records.freezes import Revocations
from sayso.core.records.items import Item, ItemDraft, PresetOutcome
from sayso.core.records.judgements import Charge
from sayso.core.records.permissions import MANDATE_PREFIX
from sayso.core.records.previews import Preview, find_preview
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolCall
from sayso.core.transitions.permits import approved_args, may_start
from sayso.runner.agents import Agent

_CARRIED = ItemDraft.model_fields.keys() & Item.model_fields.keys() - {"terms", "fixed", "asked"}


class Revalidation(NamedTuple):
    """Result of a revalidation, by call index: drafts to ask again with their reasons, denials, and charges."""

    again: Mapping[int, ItemDraft]
    reasons: Mapping[int, str]
    denied: Mapping[int, str]
    charges: Mapping[int, tuple[Charge, ...]] = MappingProxyType({})


@complete
def list_wanted(record: SuspensionRecord, items: Iterable[Item], policy: Policy, now_ms: int) -> list[Wanted]:
    """Return the counters that judging these items' calls again reads."""
    if not policy.remembering:
        return []
    judged = (item for item in items if not keeps_judgement(item, policy))
    events = (event for item in judged for event in _list_events(record, item, policy, now_ms))
    return [wanted for event in events for wanted in policy.list_wanted(event)]


def keeps_judgement(item: Item, policy: Policy) -> bool:
    """Whether the rules would judge an approved call as they did when it was asked, so that it need not be repeated.

    That takes the same version of the rules, unedited arguments, and no rule about the tool that reads anything else.
    Everything else that rules read is in the record. Tool, people, keys and freezes are checked in any case.
    """
    same = item.terms.rule_version == policy.version and approved_args(item) is item.tool.args
    return same and decides_alike(policy, item.tool.name)


def list_starting(record: SuspensionRecord) -> list[Item]:
    """Return the items whose calls may start: approved, not started, and not in doubt."""
    return [item for item in record.items if _may_start(record, item)]


def list_judged(record: SuspensionRecord) -> list[Item]:
    """Return the items that `revalidate` judges: those whose calls may start, or start a second time."""
    return [item for item in record.items if _may_start(record, item) or _starts_again(item)]


@complete
def revalidate(
    record: SuspensionRecord,
    agent: Agent,
    policy: Policy,
    revocations: Revocations,
    now_ms: int,
    readings: Readings = NO_READINGS,
    effects: Mapping[int, Preview] = MappingProxyType({}),
) -> Revalidation:
    """Revalidate every approved call that has not started; only absolute rules deny a second start in doubt.

    `effects` are the previews of these calls as of now, by index.
    """
    again: dict[int, ItemDraft] = {}
    reasons: dict[int, str] = {}
    charges: dict[int, tuple[Charge, ...]] = {}
    ledger, withdrawn = Ledger(policy, readings), revocations.find_withdrawal(record.run)
    denials = {item.index: _find_final(record, item, ledger, now_ms) for item in record.items if _starts_again(item)}
    denied = {index: f"Denied by policy: {denial.reason}" for index, denial in denials.items() if denial is not None}
    for item in list_starting(record):
        if withdrawn is not None:
            denied[item.index] = withdrawn
            continue
        decision = None if keeps_judgement(item, policy) else judge_approved(record, item, ledger, now_ms)
        if decision is not None:
            charges[item.index] = decision.due_charges
        if decision is not None and decision.action is Action.DENY:
            denied[item.index] = f"Denied by policy: {decision.reason}" if decision.reason else "Denied by policy"
        elif reason := (
            _find_reason(item, agent, policy, revocations)
            or _find_drift(item, effects)
            or _find_exhausted(item, decision)
            or find_ended_grant(item, decision)
        ):
            decision = decision or judge_approved(record, item, ledger, now_ms)
            if misplaced := find_misplaced(agent.tools_by_name[item.tool.name].definition, decision):
                denied[item.index] = f"Denied by policy: {misplaced}"
                continue
            args = approved_args(item)
            call = ToolCall(
                call_id=item.call_id, index=item.index, name=item.tool.name, args=args, subagent=item.subagent
            )
            if decision.action is Action.ALLOW:  # the rules no longer ask, but this call was asked
                update = {"action": Action.REQUEST_APPROVAL, "terms": policy.terms, "policy_id": None}
                decision = settle_confirmation(decision.model_copy(update=update), record.run.who)
            definition = agent.tools_by_name[item.tool.name].definition
            draft = build_item(
                definition, call, put_question(definition, call.args, decision), agent.approval_timeout_s
            )
            before = f" It was asked because: {item.prompt.reason}" if item.prompt.reason else ""
            prompt = item.prompt.model_copy(update={"reason": f"Asked again. {reason}{before}"[:2000]})
            again[item.index] = draft.model_copy(update={"prompt": prompt, "previews": _show_effect(item, effects)})
            reasons[item.index] = reason
    return Revalidation(again, reasons, denied, charges)


def carry_over(record: SuspensionRecord, checked: Revalidation) -> tuple[tuple[ItemDraft, ...], tuple[Event, ...]]:
    """Return drafts of all items, asked again or with their outcome as a preset, and the events to record."""
    again, denied = checked.again, checked.denied
    drafts = tuple(again.get(item.index) or _keep(item, denied.get(item.index)) for item in record.items)
    reasons = [(item.item_id, checked.reasons[item.index]) for item in record.items if item.index in checked.reasons]
    data = ({"suspension_id": record.id, "item_id": item_id, "reason": reason} for item_id, reason in reasons)
    return drafts, tuple(Event(type=EventType.ASKED_AGAIN, data=about) for about in data)


def _may_start(record: SuspensionRecord, item: Item) -> bool:
    started = {intent.index for intent in record.journal}
    allowed = item.outcome is not None and item.outcome.may_run
    return allowed and item.permit is None and item.doubt is None and item.index not in started


def _starts_again(item: Item) -> bool:
    """Whether a person has decided to start a call in doubt again."""
    return item.doubt is not None and may_start(item)


def _list_events(record: SuspensionRecord, item: Item, policy: Policy, now_ms: int) -> list[PolicyEvent]:
    """Return the item's call as of the time at which the agent asked, and of the start if absolute rules read that."""
    asked = describe_item(record, item, approved_args(item))
    return [asked, asked.model_copy(update={"at_ms": now_ms})] if policy.limits_start else [asked]


def _find_final(record: SuspensionRecord, item: Item, ledger: Ledger, now_ms: int) -> PolicyDecision | None:
    """Return the denial of an absolute rule, which no approval lifts, or None."""
    events = _list_events(record, item, ledger.policy, now_ms)
    charged = item.doubt.charges if item.doubt is not None else item.charges
    decisions = (ledger.peek(event, charged) for event in events)
    return next((decision for decision in decisions if decision.absolute), None)


def judge_approved(record: SuspensionRecord, item: Item, ledger: Ledger, now_ms: int) -> PolicyDecision:
    """Evaluate the rules in force for an approved call that starts now; its own charges do not count against it."""
    if ledger.policy.limits_start and (final := _find_final(record, item, ledger, now_ms)) is not None:
        return final
    by_person = item.outcome is None or item.outcome.by.kind is not ActorKind.POLICY
    return ledger.judge_start(describe_item(record, item, approved_args(item)), item.charges, by_person=by_person)


def _find_exhausted(item: Item, decision: PolicyDecision | None) -> str | None:
    """Return why a call that the rules allowed, and that is not counted, needs a person now; or None."""
    allowed = item.outcome is not None and item.outcome.by.kind is ActorKind.POLICY
    if not allowed or item.charges or decision is None or not decision.remembered or decision.action not in ASKING:
        return None
    return "It no longer fits what the rules allow."


def find_ended_grant(item: Item, decision: PolicyDecision | None) -> str | None:
    """Return why a call that a grant or mandate allowed needs a person now; None for other calls and while it lasts.

    A call that the rules allowed also needs one if a mandate is in force now that does not cover it.
    """
    if decision is None:
        return None
    allowed = decision.action is Action.ALLOW
    if item.grant_id:
        kind = "Mandate" if item.grant_id.startswith(MANDATE_PREFIX) else "Grant"
        lasts = allowed and decision.granted_by in ("", item.grant_id)
        return None if lasts else f"{kind} {item.grant_id}, which allowed it, no longer does."
    by_rules = item.outcome is not None and item.outcome.by.kind is ActorKind.POLICY
    outside = decision.mandate if by_rules and not allowed else None
    return f"It is outside mandate {outside.id}." if outside is not None else None


def _find_drift(item: Item, effects: Mapping[int, Preview]) -> str | None:
    """Return why the effect of an approved call as of now is not the one that its approver saw, or None."""
    now = effects.get(item.index)
    if now is None:
        return None
    approved = _find_approved(item)
    if approved is not None and approved.digest == now.digest:
        return None
    return "Nobody saw what it would do." if approved is None else "What it would do has changed since."


def _show_effect(item: Item, effects: Mapping[int, Preview]) -> tuple[Preview, ...]:
    """Return the preview of a call that is asked again, with the approved one beside it if it has changed."""
    now = effects.get(item.index)
    if now is None:
        return ()
    approved = _find_approved(item)
    changed = approved is not None and approved.digest != now.digest
    return (now.model_copy(update={"before": approved.content if approved and changed else None}),)


def _find_approved(item: Item) -> Preview | None:
    return find_preview(item.previews, item.outcome.args if item.outcome is not None else None)


def _find_reason(item: Item, agent: Agent, policy: Policy, revocations: Revocations) -> str | None:
    tool = agent.tools_by_name.get(item.tool.name)
    if tool is None:
        return None
    changed = f"The tool {item.tool.name} was changed since." if tool.digest != item.tool.definition else None
    reason = changed or find_loss(item, policy, revocations)
    cannot_run = reason is not None and tool.find_fault(approved_args(item))  # then asking again is pointless
    return None if cannot_run else reason


def find_loss(item: Item, policy: Policy, revocations: Revocations) -> str | None:
    """Return which approver or rule no longer counts, or None; an approval by the rules needs neither."""
    if item.outcome is None or item.outcome.by.kind is ActorKind.POLICY:
        return None
    agreeing = [decision.by for decision in item.decisions if decision.action in ("approve", "value")]
    for decider in agreeing or [item.outcome.by]:  # of an outcome carried over only the last is known
        if decider.kind is ActorKind.HUMAN and decider.id in revocations.inactive:
            return f"{decider.id}, who approved it, is no longer a reviewer."
    if item.confirmation is not None and item.confirmation.by.id in revocations.inactive:
        return f"{item.confirmation.by.id}, who confirmed it, is no longer active."
    if item.terms.rule_id not in (None, *(rule.rule_id for rule in policy.live)):
        return f"The rule {item.terms.rule_id} of this item was withdrawn."
    return None


def _keep(item: Item, denied: str | None) -> ItemDraft:
    outcome = item.outcome
    assert outcome is not None  # noqa: S101  only decided suspensions are revalidated
    preset = PresetOutcome(
        verdict=Verdict.DENIED if denied else outcome.verdict,
        by=outcome.by,
        args=None if denied else outcome.args,
        value=outcome.value,
        message=denied or outcome.message,
        offer=outcome.offer,
        changes=None if denied else outcome.changes,
        start_by_ms=item.start_by_ms,
    )
    carried = {name: getattr(item, name) for name in _CARRIED}
    terms = RuleTerms(**item.terms.state_deciders())
    rule_id, rule_version = item.terms.rule_id, item.terms.rule_version
    return ItemDraft(**carried, terms=terms, rule_id=rule_id, rule_version=rule_version, preset=preset)
