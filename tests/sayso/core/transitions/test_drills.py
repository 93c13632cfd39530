"""The permit of a drill is void in the transitions, whatever was decided, edited or tried before."""

from collections.abc import Callable
from functools import partial
from itertools import product
from random import Random

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.core.records.items import Answer, Drill, ItemDraft
from sayso.core.records.suspensions import Change, RunStatus, SuspensionRecord
from sayso.core.transitions.client_execution import client_redeem, lapse
from sayso.core.transitions.deciding import ask_again, decide, suspend
from sayso.core.transitions.execution import lease, redeem
from sayso.core.transitions.permits import may_start
from sayso.errors import DeadlinePassed, IllegalTransition
from tests.sayso.core.transitions.test_client_execution import POLL
from tests.sayso.core.transitions.test_execution import FENCE
from tests.sayso.samples import T0, ask, draft, intent, word

DRILL = Drill(template="unknown-recipient", signs=("Nobody knows the recipient.",), planted_by="root")
ATTEMPTS = 1_000_000
EDITS: tuple[JsonObject | None, ...] = (None, {"order": "A-2", "amount": 1})


def plant(*, idempotent: bool = False, approvals: int = 1) -> ItemDraft:
    one = ask(start_by_s=60, quorum={"approve": approvals})
    return one.model_copy(update={"drill": DRILL, "tool": one.tool.model_copy(update={"idempotent": idempotent})})


def approve(record: SuspensionRecord, args: JsonObject | None = None) -> SuspensionRecord:
    for name in ("anna", "ben")[: record.items[0].terms.quorum.approve]:
        record = decide(record, word(record, args=args, by=name), T0).record
    return record


def redeem_as_client(record: SuspensionRecord, at_ms: int, key: str) -> Change:
    return client_redeem(record, "i1", key, at_ms)


def redeem_as_worker(record: SuspensionRecord, at_ms: int, _key: str) -> Change:
    return redeem(record, FENCE, (intent(),), (), at_ms)


def list_redeems() -> list[Callable[[int, str], Change]]:
    """Return ways to redeem approved drills: by clients and workers, with edits, quorums and idempotent tools."""
    found: list[Callable[[int, str], Change]] = []
    for idempotent, approvals, args in product((False, True), (1, 2), EDITS):
        one = plant(idempotent=idempotent, approvals=approvals)
        polled = approve(suspend(draft(resume=POLL), (one,), T0).record, args)
        taken = lease(approve(suspend(draft(), (one,), T0).record, args), "w1", 30_000, T0).record
        found += [partial(redeem_as_client, polled), partial(redeem_as_worker, taken)]
    return found


@pytest.mark.timeout(400)  # a million attempts; over 120 s on a busy machine
def test_no_void_permit_is_redeemed_in_a_million_attempts() -> None:
    random, redeems, redeemed = Random(18), list_redeems(), 0  # noqa: S311
    for attempt in range(ATTEMPTS):
        try:
            redeems[attempt % len(redeems)](T0 + random.randrange(29_000), f"key-{attempt}")
        except IllegalTransition:
            continue
        redeemed += 1
    assert redeemed == 0


def test_only_the_drill_refuses_these_redeems() -> None:
    """Without the mark, the same attempts succeed, so that the test above tests the mark."""
    record = approve(suspend(draft(resume=POLL), (plant().model_copy(update={"drill": None}),), T0).record)
    assert client_redeem(record, "i1", "mine", T0).record.items[0].permit is not None


def test_item_asked_again_stays_a_drill() -> None:
    record = suspend(draft(resume=POLL), (plant(),), T0).record
    again = ask_again(record, word(record, args=EDITS[1]), ask(), T0).record
    assert again.items[0].drill == DRILL
    with pytest.raises(IllegalTransition):
        client_redeem(approve(again), "i1", "mine", T0)


@pytest.mark.parametrize("action", ["approve", "deny"])
def test_decided_drill_lapses_at_once_and_completes(action: str) -> None:
    record = suspend(draft(resume=POLL), (plant(),), T0).record
    decided = decide(record, word(record, action), T0)
    assert decided.events[0].data["caught"] == (action == "deny")
    assert not may_start(decided.record.items[0])
    ended = lapse(decided.record, T0).record
    assert ended.end is not None
    assert (ended.end.status, ended.end.error) == (RunStatus.COMPLETED, None)


def test_late_decision_on_a_drill_is_refused() -> None:
    record = suspend(draft(resume=POLL), (plant(),), T0).record
    with pytest.raises(DeadlinePassed):
        decide(record, word(record), record.items[0].terms.deadline_at_ms)


def test_mark_is_not_stored_in_other_items() -> None:
    item = suspend(draft(), (ask(),), T0).record.items[0]
    assert "drill" not in item.model_dump()
    assert Answer.EDIT in item.allowed
