"""Random sequences of steps stay within the table of legal transitions."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from sayso.core.records.events import EventType
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Change, Intent, RunEnd, RunStatus, Status, SuspensionRecord
from sayso.core.transitions.deadlines import escalate, expire, remind
from sayso.core.transitions.deciding import cancel, decide, extend, suspend
from sayso.core.transitions.execution import (
    Fence,
    checkpoint,
    give_up,
    lease,
    postpone,
    redeem,
    redrive,
    release,
    renew,
    revive,
    settle,
    suspend_again,
)
from sayso.core.transitions.legal import LEGAL
from sayso.errors import SaysoError
from tests.sayso.samples import T0, ask, draft, intent, person, word

STATE = seal_state(b"{}")
ENDED = (Status.RESUMED, Status.CANCELLED, Status.FAILED)

Verb = Callable[[SuspensionRecord, str, int], Change]


def _fence(record: SuspensionRecord, who: str) -> Fence:
    """The fence of a worker with its last knowledge: w2 is always one attempt behind."""
    attempt = record.lease.attempt if record.lease else 1
    return Fence(who, attempt if who == "w1" else attempt - 1, 5_000)


def _intents(record: SuspensionRecord) -> tuple[Intent, ...]:
    return tuple(intent(item.item_id, item.index, call_id=item.call_id, idempotency_key="k") for item in record.items)


VERBS: dict[str, Verb] = {
    "decide": lambda record, who, now: decide(record, word(record, "approve", by=who), now),
    "decide deny": lambda record, who, now: decide(record, word(record, "deny", by=who, item_id="i2"), now),
    "expire": lambda record, _, now: expire(record, now),
    "escalate": lambda record, _, now: escalate(record, now),
    "remind": lambda record, _, now: remind(record, now),
    "cancel": lambda record, who, now: cancel(record, person(who), None, now),
    "lease": lambda record, who, now: lease(record, who, 5_000, now),
    "renew": lambda record, who, now: renew(record, _fence(record, who), now),
    "redeem": lambda record, who, now: redeem(record, _fence(record, who), _intents(record), (), now),
    "checkpoint": lambda record, who, now: checkpoint(record, _fence(record, who), STATE, (), now),
    "postpone": lambda record, who, now: postpone(record, _fence(record, who), "why", now),
    "redrive": lambda record, _, now: redrive(record, now),
    "suspend_again": lambda record, who, now: suspend_again(
        record, _fence(record, who), draft(id="sus_2"), (ask(),), STATE, (), now
    ),
    "settle": lambda record, who, now: settle(record, _fence(record, who), RunEnd(status=RunStatus.COMPLETED), (), now),
    "extend": lambda record, who, now: extend(record, "i1", now + 30_000, person(who), now),
    "release": lambda record, who, now: release(record, _fence(record, who), "why", now),
    "revive": lambda record, who, now: revive(record, person(who), now),
    "give_up": lambda record, who, now: give_up(record, _fence(record, who), "why", (), now),
}


@settings(max_examples=400, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(sorted(VERBS)), st.sampled_from(["w1", "w2"]), st.integers(0, 40_000)), max_size=25
    )
)
def test_worker_steps_in_any_order_keep_the_invariants(steps: list[tuple[str, str, int]]) -> None:
    drafts = (ask(0, timeout_s=60, extend_by_s=600), ask(1, timeout_s=90))
    record, now_ms = suspend(draft(), drafts, T0).record, T0
    resumed = 0
    for name, who, passed_ms in steps:
        now_ms += passed_ms
        try:
            change = VERBS[name](record, who, now_ms)
        except SaysoError:
            continue
        after, legal = change.record, LEGAL[name.split(" ", maxsplit=1)[0]]
        if after is not record:
            assert record.status in legal.sources or postpone_gave_up(name, after)
            assert after.status in legal.targets or postpone_gave_up(name, after)
            kinds = {event.type for event in change.events}
            assert kinds <= legal.events | {EventType.RUN_RESUMED, EventType.RUN_FAILED}
        for old, new in zip(record.items, after.items, strict=True):
            assert old.outcome is None or old.outcome == new.outcome, "an outcome never changes"
            assert old.permit is None or old.permit == new.permit, "a permit is spent once"
        resumed += sum(event.type == EventType.RUN_RESUMED for event in change.events)
        assert resumed <= 1, "run_resumed is recorded once a suspension"
        assert (after.due_at_ms is None) == (after.status in ENDED), "every waiting suspension is on the schedule"
        assert (
            after.status is Status.PENDING
            or after.status is Status.CANCELLED
            or not any(item.open for item in after.items)
        )
        record = after


def postpone_gave_up(name: str, after: SuspensionRecord) -> bool:
    """Whether a postponement gave up, which has its own row."""
    return name == "postpone" and after.status is Status.FAILED


def test_every_open_status_has_a_next_step() -> None:
    for status in Status:
        after_the_end = ("record_deliveries", "take_second_look", "supersede", "note_undone")
        ways = [verb for verb, step in LEGAL.items() if status in step.sources and verb not in after_the_end]
        assert bool(ways) == (status not in (Status.RESUMED, Status.CANCELLED)), status
