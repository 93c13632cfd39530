"""Offers to undo a call: who can withdraw one, what a freeze of the tool holds, and what a run gets to know."""

import pytest

from sayso.core.records.freezes import Freeze
from sayso.core.records.items import Answer
from sayso.core.records.suspensions import RunEnd, RunStatus, Status, SuspensionRecord, Who
from sayso.core.records.undoing import Reversal
from sayso.core.transitions.decision_checks import check_canceller
from sayso.core.transitions.freezing import check_start, find_freeze, tools_to_start
from sayso.core.transitions.second_look import Undone, note_undone
from sayso.errors import Frozen, NotAllowed
from tests.sayso.samples import T0, ask, pending, person

CALL = Reversal(run_id="run_1", suspension_id="sus_1", tool="refund", call_id="c7", index=0, at_ms=T0)


def offer() -> SuspensionRecord:
    record = pending(ask().model_copy(update={"reverses": CALL, "allowed": (Answer.APPROVE, Answer.DENY)}))
    return record.model_copy(update={"run": record.run.model_copy(update={"who": Who(owner="olga")})})


def undone(success: bool | None = True, error: str | None = None) -> Undone:
    return Undone(CALL, success, error, person("ada"), "sus_offer")


def test_requester_cannot_withdraw_an_offer() -> None:
    """An agent's owner would otherwise keep people from undoing what it did."""
    check_canceller(pending(ask()), person("bot"), is_admin=False)
    with pytest.raises(NotAllowed):
        check_canceller(offer(), person("olga"), is_admin=False)
    check_canceller(offer(), person("olga"), is_admin=True)


def test_offer_is_in_no_inbox_but_a_doubt_about_it_is() -> None:
    assert offer().offers_undo
    assert not pending(ask()).offers_undo
    assert offer().items[0].tools == ("refund", "refund")


def test_freeze_of_the_tool_covers_its_undo() -> None:
    record = offer()
    item = record.items[0].model_copy(update={"tool": record.items[0].tool.model_copy(update={"name": "refund:undo"})})
    record = record.with_item(item)
    freeze = Freeze(id="f", scope="tool:refund", reason="stop", by="root", at_ms=T0)
    assert find_freeze(record, item, (freeze,)) == freeze
    assert find_freeze(record, item, (freeze.model_copy(update={"scope": "tool:other"}),)) is None
    assert tools_to_start(record) == ()
    with pytest.raises(Frozen):
        check_start((freeze,), record, item.tools, T0)


def test_run_that_goes_on_gets_a_note_and_an_event() -> None:
    change = note_undone(pending(ask()), undone(), T0 + 5)
    (event,) = change.events
    assert event.type == "call_undone"
    assert event.data == {
        "tool_name": "refund",
        "call_id": "c7",
        "suspension_id": "sus_offer",
        "success": True,
        "error": None,
        "by": {"id": "ada", "kind": "human", "channel": person("ada").channel},
    }
    (note,) = change.record.notes
    assert (note.id, note.by.id, note.text) == (
        "undo_sus_offer",
        "ada",
        "I had your call refund (c7) undone. Its effect no longer holds.",
    )
    assert change.record.updated_at_ms == T0 + 5


@pytest.mark.parametrize(("success", "part"), [(False, "that failed"), (None, "nobody knows whether that worked")])
def test_agent_learns_of_an_undo_that_failed_or_is_unknown(success: bool | None, part: str) -> None:
    (note,) = note_undone(pending(ask()), undone(success, "no"), T0).record.notes
    assert part in note.text


@pytest.mark.parametrize("update", [{"status": Status.RESUMED}, {"end": RunEnd(status=RunStatus.COMPLETED)}], ids=str)
def test_run_that_has_ended_gets_the_event_alone(update: dict[str, object]) -> None:
    change = note_undone(pending(ask()).model_copy(update=update), undone(), T0)
    assert (len(change.events), change.record.notes) == (1, ())
