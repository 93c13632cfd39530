"""The audit trail keeps a decision's message and value, without secrets."""

from sayso.core.records.decisions import DecisionAction
from sayso.core.records.envelopes import Offered
from sayso.core.records.items import ItemKind
from sayso.core.text.redaction import MASK
from sayso.core.transitions.closing import describe_decision
from sayso.core.transitions.deciding import decide
from sayso.core.transitions.quorum import is_quorum_met
from tests.sayso.samples import T0, ask, pending, word


def test_describe_decision_has_a_message_only_if_there_is_one() -> None:
    record = pending()
    assert "message" not in describe_decision(record.items[0], word(record))
    assert describe_decision(record.items[0], word(record, message="fine"))["message"] == "fine"


def test_describe_decision_masks_a_secret_message_and_value() -> None:
    record = pending(ask(secrets=("order",)))
    data = describe_decision(record.items[0], word(record, message="about A-0"))
    assert data["args"] == {"order": MASK, "amount": 250.5}
    asked = pending(ask(kind=ItemKind.INPUT, secrets=("amount",)))
    assert describe_decision(asked.items[0], word(asked, "value", value=7))["value"] == MASK


def test_describe_decision_has_a_value_only_if_one_was_given() -> None:
    record = pending(ask(kind=ItemKind.INPUT))
    item = record.items[0]
    assert describe_decision(item, word(record, "value", value=7))["value"] == 7
    assert "value" not in describe_decision(item, word(record, "deny"))


def test_quorum_counts_only_decisions_of_the_same_kind() -> None:
    record = pending(ask(quorum={"approve": 2, "deny": 2}))
    denial, approval = word(record, "deny", "ben"), word(record, "approve", "ada")
    item = record.items[0].model_copy(update={"decisions": (denial, approval)})
    assert approval.action is DecisionAction.APPROVE
    assert not is_quorum_met(item, approval)
    assert not is_quorum_met(item, denial)


def test_decision_that_closes_a_sampled_item_names_its_share() -> None:
    sampled = pending(ask(sample={"after": 0.25}, quorum={"approve": 2}))
    first = decide(sampled, word(sampled, by="ada"), T0)
    assert "second_look" not in first.events[0].data, "the item is open"
    assert decide(first.record, word(first.record, by="ben"), T0).events[0].data["second_look"] == 0.25
    for record in (pending(), pending(ask(sample={"before": 0.5}))):
        assert "second_look" not in decide(record, word(record), T0).events[0].data


def test_describe_decision_names_a_grant_only_if_one_was_made() -> None:
    record = pending()
    assert "grant_id" not in describe_decision(record.items[0], word(record))
    assert describe_decision(record.items[0], word(record, grant_id="gra_1"))["grant_id"] == "gra_1"


def test_describe_decision_names_suspended_grants_only_if_there_are_any() -> None:
    record = pending()
    assert "suspends" not in describe_decision(record.items[0], word(record, "deny"))
    assert describe_decision(record.items[0], word(record, "deny", suspends=("gra_1",)))["suspends"] == ["gra_1"]


def test_denial_carries_its_offer_in_the_outcome_and_the_message() -> None:
    record = pending()
    offer = Offered(grant_id="gra_1", until_ms=T0 + 1, constraints=(), text="A refund of 200 passes.")
    for message, told in (("Too much.", "Too much. A refund of 200 passes."), (None, "A refund of 200 passes.")):
        outcome = decide(record, word(record, "deny", message=message, offer=offer), T0).record.items[0].outcome
        assert outcome is not None
        assert (outcome.offer, outcome.message) == (offer, told)
    plain = decide(record, word(record, "deny", message="No."), T0).record.items[0].outcome
    assert plain is not None
    assert (plain.offer, plain.message) == (None, "No.")
