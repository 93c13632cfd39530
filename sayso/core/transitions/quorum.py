"""Quorum of an item: whose decisions agree, and whether they are enough."""

from sayso.core.canonical_json import canonical_json
from sayso.core.records.decisions import Actor, Decision, DecisionAction, list_filled
from sayso.core.records.items import Item
from sayso.core.transitions.closing import args_of


def find_counted(item: Item, by: Actor) -> Decision | None:
    """Return the earlier decision that counts for the same reviewer, made by them or by their delegate."""
    person = by.for_person or by.id
    return next((decision for decision in item.decisions if person in (decision.by.id, decision.by.for_person)), None)


def is_quorum_met(item: Item, decision: Decision) -> bool:
    """Whether enough reviewers agree; approvals agree only on the same arguments."""
    if decision.action is DecisionAction.DENY:
        people = {denial.by.human for denial in item.decisions if denial.action is DecisionAction.DENY}
        return len(people) >= item.terms.quorum.deny
    quorum = item.terms.quorum
    if quorum.approve == 1 and not quorum.each_of:
        return True
    agreeing = list_agreeing(item, decision)
    enough = len({by.human for by in agreeing}) >= quorum.approve
    return enough and len(list_filled(quorum.each_of, agreeing)) == len(quorum.each_of)


def list_agreeing(item: Item, decision: Decision) -> list[Actor]:
    """Return who has approved the same arguments, or given the same value, as this decision."""
    args = canonical_json(args_of(item, decision))
    alike = [other for other in item.decisions if other.action is decision.action]
    return [other.by for other in alike if canonical_json(args_of(item, other)) == args]
