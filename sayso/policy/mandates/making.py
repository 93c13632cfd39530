"""Making a mandate from the approval of its item: pure, and only while the rules are those that permitted it."""

from sayso.errors import InvalidInput
from sayso.policy.engine import Policy
from sayso.policy.grants.covering import digest_rule
from sayso.policy.mandates.covering import find_permitting
from sayso.records.decisions import Actor, ActorKind, DecisionAction
from sayso.records.items import Item
from sayso.records.memory.mandates import MANDATE_PREFIX, Envelope, Mandate
from sayso.records.suspensions import SuspensionRecord

SUSPENSION_PREFIX = "sus_"


def name_mandate(suspension_id: str) -> str:
    """Return the id of the mandate that the item of a suspension proposes."""
    return suspension_id.replace(SUSPENSION_PREFIX, MANDATE_PREFIX, 1)


def name_suspension(mandate_id: str) -> str:
    """Return the id of the suspension whose item proposed a mandate."""
    return mandate_id.replace(MANDATE_PREFIX, SUSPENSION_PREFIX, 1)


def make_mandate(policy: Policy, record: SuspensionRecord, item: Item, now_ms: int) -> Mandate | None:
    """Return the mandate of an item that people approved, None for any other item.

    Raises `InvalidInput` if a rule that permitted it has changed since, so that its terms may be other ones.
    """
    outcome = item.outcome
    if item.mandate is None or outcome is None or not outcome.may_run or outcome.by.kind is not ActorKind.HUMAN:
        return None
    if (changed := find_changed(policy, item.mandate)) is not None:
        raise InvalidInput(
            f"The rule {changed} has changed since the plan was proposed. Deny it; the agent can ask again."
        )
    granters = (decision.by for decision in item.decisions if decision.action is DecisionAction.APPROVE)
    return draft_from(record, item, item.mandate, now_ms, tuple(dict.fromkeys(granters)))


def find_confining(record: SuspensionRecord, now_ms: int) -> Mandate | None:
    """Return the mandate that a new suspension puts in force without a person, None for any other suspension."""
    item = record.items[0] if record.items else None
    if item is None or item.mandate is None or item.outcome is None:
        return None
    by_rules = item.outcome.may_run and item.outcome.by.kind is ActorKind.POLICY
    return draft_from(record, item, item.mandate, now_ms) if by_rules else None


def draft_from(
    record: SuspensionRecord, item: Item, envelope: Envelope, at_ms: int, granters: tuple[Actor, ...] = ()
) -> Mandate:
    """Return the mandate of an item as if it were approved at this time."""
    run = record.run
    return Mandate(
        id=name_mandate(record.id),
        agent=run.agent,
        owner=run.owner,
        thread_id=run.thread_id,
        person=run.who.person if run.who is not None else None,
        envelope=envelope,
        at_ms=at_ms,
        until_ms=at_ms + envelope.for_s * 1000,
        granters=granters,
        suspension_id=record.id,
        item_id=item.item_id,
        title=run.title,
    )


def find_changed(policy: Policy, envelope: Envelope) -> str | None:
    """Return a rule that is not as it was when the envelope was proposed, or None."""
    for rule_id, digest in envelope.rules.items():
        rule = find_permitting(policy.live, rule_id)
        if rule is None or digest_rule(rule) != digest:
            return rule_id
    return None
