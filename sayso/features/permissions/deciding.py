"""Recording a decision together with what it grants."""

from sayso.core.policy.engine import Policy
from sayso.core.records.decisions import Decision, DecisionRequest
from sayso.core.records.suspensions import Change, SuspensionRecord
from sayso.core.transitions.deciding import decide, find_item
from sayso.features.permissions.making import describe_offered, make_grant, make_mandate


def decide_with_grant(
    policy: Policy,
    record: SuspensionRecord,
    decision: Decision,
    request: DecisionRequest,
    now_ms: int,
    lost_ms: int = 0,
) -> Change:
    """Record a decision as `decide` does, and in the same change what it grants or offers, or the plan it approves.

    The false call of a drill grants nothing. Raises what `decide` raises, and `InvalidInput` for a grant that the rule
    does not allow.
    """
    change = decide(record, decision, now_ms, lost_ms)
    mandate = make_mandate(policy, change.record, find_item(change.record, decision.item_id), now_ms)
    if mandate is not None and change.record is not record:
        return change._replace(mandate=mandate)
    if change.record is record or (request.grant is None and request.offer is None):
        return change
    item, grant_id = find_item(record, decision.item_id), decision.id.replace("dec_", "gra_", 1)
    if item.drill is not None:
        return change
    by = find_item(change.record, decision.item_id).decisions[-1].by
    grant = make_grant(policy, record, item, request, by, grant_id, now_ms)
    if grant is None:
        return change
    granted = decision.model_copy(update={"grant_id": grant.id, "offer": describe_offered(grant)})
    return decide(record, granted, now_ms, lost_ms)._replace(grant=grant)
