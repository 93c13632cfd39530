"""Every field of a record is shown by the API or listed here as internal."""

import pytest
from pydantic import BaseModel

from sayso.core.records.decisions import Decision, Outcome, Permit
from sayso.core.records.deliveries import CardDelivery
from sayso.core.records.events import TrailEntry
from sayso.core.records.items import Doubt, Item
from sayso.core.records.suspensions import Lease, Receipt, RunRef, SuspensionRecord
from sayso.core.records.terms import Terms
from sayso.wire.administration import KeyView, ReviewerView
from sayso.wire.items import DecisionView, DeliveryView, DoubtView, ItemView, OutcomeView, PermitView
from sayso.wire.models import View
from sayso.wire.suspensions import EventView, LeaseView, ReceiptView, RunRefView, RunView, SuspensionView
from sayso.wire.terms import TermsView
from service.core.store.people import ApiKey, Reviewer
from service.core.store.runs.runs import Run

OUR_OWN = {
    SuspensionRecord: {
        "tenant",
        "origin",
        "resume",
        "state",
        "journal",
        "due_at_ms",
        "waits_for",
        "failed_calls",
        "typed",
    },
    Run: {"failed_calls", "is_drill", "typed"},
    Item: {
        *("reminded", "escalated", "held_ms", "held_to_ms", "grace_ms", "fixed", "secret_number"),
        *("judged_at_ms", "charges", "asked", "grant_id"),
        *("mandate", "learning"),  # the arguments show a plan, the trail what grants on probation would allow
        "erasure",  # the suspension shows it
        "forwards",  # the last one shows as forwarded, the trail has all
        "requested",  # a digest that tells whether a key is used for the same call
        "drill",  # a drill looks like any other item
        "invitations",  # a list of its own shows them, without hashes
    },
    Doubt: {"charges"},
    Terms: {"sample"},
    Decision: {
        "suspension_id",
        "suspension_version",
        "idempotency_key",
        "number",
        "offer",
        "suspends",
    },  # outcome and trail
    RunRef: {"tenant", "traceparent"},
    Permit: {"report_by_ms"},
    CardDelivery: {*("tries", "off_duty", "references", "shown", "reminded", "stage", "forward"), "invitation"},
    Lease: {"step"},
    Reviewer: {
        "password_hash",
        "password_set_at_ms",
        "sessions_end_at_ms",
        "reset_by",
        "reset_at_ms",
        "subject",
        "app",
    },
    ApiKey: {"tenant", "predecessor_id", "made_by", "made_at_ms", "withdrawn"},
}
"""What stays inside."""


@pytest.mark.parametrize(
    ("view", "record"),
    [
        (RunView, Run),
        (EventView, TrailEntry),
        (DecisionView, Decision),
        (OutcomeView, Outcome),
        (PermitView, Permit),
        (DoubtView, Doubt),
        (TermsView, Terms),
        (ItemView, Item),
        (DeliveryView, CardDelivery),
        (ReceiptView, Receipt),
        (LeaseView, Lease),
        (RunRefView, RunRef),
        (SuspensionView, SuspensionRecord),
        (ReviewerView, Reviewer),
        (KeyView, ApiKey),
    ],
)
def test_every_record_field_is_shown_or_internal(view: type[View], record: type[BaseModel]) -> None:
    shown = {str(field.validation_alias or name) for name, field in view.model_fields.items()}
    assert set(record.model_fields) - {"release"} - shown == OUR_OWN.get(record, set())
