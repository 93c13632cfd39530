"""A note to the agent: who may write it, how often, and that its delivery is saved with what the model got."""

import pytest

from sayso.core.records.decisions import Actor, ActorKind, Delegate, Limit
from sayso.core.records.events import Event, EventType
from sayso.core.records.suspensions import OperatorNote, SuspensionRecord
from sayso.core.transitions.deciding import decide
from sayso.core.transitions.execution import checkpoint, settle, suspend_again
from sayso.core.transitions.inquiring import MOST_NOTES, describe_delivery, mark_delivered, write_note
from sayso.errors import Conflict, InvalidInput, NotAllowed
from tests.sayso.core.transitions.test_execution import DONE, FENCE, STATE, leased
from tests.sayso.samples import T0, ask, draft, pending, person, types_of, word


def write(record: SuspensionRecord, text: str = "Use the other account.", by: str = "ada") -> SuspensionRecord:
    return write_note(record, f"note_{len(record.notes)}", text, person(by), T0 + 5).record


def test_note_is_saved_with_its_event() -> None:
    change = write_note(pending(ask()), "note_1", "  Use the other account. ", person("ada"), T0 + 5)
    (note,), (event,) = change.record.notes, change.events
    assert (note.text, note.by.id, note.at_ms, note.delivered_at_ms) == ("Use the other account.", "ada", T0 + 5, None)
    assert (event.type, event.data["text"], event.data["by"]["id"]) == ("note_written", note.text, "ada")
    assert (event.data["note_id"], change.record.updated_at_ms) == ("note_1", T0 + 5)
    assert change.record.items == pending(ask()).items


def test_same_note_is_written_once() -> None:
    record = write_note(pending(ask()), "note_1", "One.", person("ada"), T0).record
    assert write_note(record, "note_1", "One.", person("ada"), T0 + 9).record is record


@pytest.mark.parametrize("text", ["", " \n", "x" * 2001])
def test_note_of_no_or_too_much_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 2000 characters"):
        write(pending(ask()), text)
    assert write(pending(ask()), "x" * 2000).notes


def test_agent_gets_a_limited_number_of_notes() -> None:
    record = pending(ask())
    for _ in range(MOST_NOTES):
        record = write(record)
    with pytest.raises(Conflict, match=f"{MOST_NOTES} notes"):
        write(record)


def test_note_needs_a_reviewer_of_an_open_item() -> None:
    record = pending(ask(0, reviewers=("ada",)), ask(1, reviewers=("ben",)))
    assert write(record).notes
    decided = decide(record, word(record), T0).record
    assert write(decided, by="ben").notes
    with pytest.raises(NotAllowed, match="Ask ben"):
        write(decided)
    with pytest.raises(NotAllowed, match="Ask ada, ben"):
        write(record, by="cleo")


def test_agent_and_requester_write_no_note() -> None:
    record = pending(ask(no_self_approval=True))
    with pytest.raises(NotAllowed):
        write_note(record, "note_1", "Go on.", Actor(id="bot", kind=ActorKind.AGENT), T0)
    with pytest.raises(NotAllowed):
        write(record, by=record.run.owner)


def test_agent_writes_no_note_to_a_run_without_items() -> None:
    record = leased().model_copy(update={"items": ()})
    with pytest.raises(NotAllowed):
        write_note(record, "note_1", "Go on.", Actor(id="bot", kind=ActorKind.AGENT), T0)


def test_decided_run_takes_a_note_of_a_reviewer_of_its_items() -> None:
    assert write(leased()).notes
    limited = pending(ask(reviewers=("ada",)))
    decided = decide(limited, word(limited), T0).record
    assert write(decided).notes
    with pytest.raises(NotAllowed):
        write(decided, by="ben")


@pytest.mark.parametrize(
    ("limits", "may"),
    [(None, True), ((Limit(agents=("b*",)),), True), ((Limit(tools=("refund",)),), False), ((), False)],
)
def test_run_without_items_takes_a_note_of_who_decides_for_its_agent(
    limits: tuple[Limit, ...] | None, may: bool
) -> None:
    record = leased().model_copy(update={"items": ()})
    record = record.model_copy(update={"run": record.run.model_copy(update={"agent": "bot"})})
    by = Delegate(id="ada", kind=ActorKind.HUMAN, decides=limits)
    if may:
        assert write_note(record, "note_1", "Stop soon.", by, T0).record.notes
        return
    with pytest.raises(NotAllowed, match="Ask another reviewer"):
        write_note(record, "note_1", "Stop soon.", by, T0)


def test_secret_that_a_person_typed_stays_out_of_a_note() -> None:
    record = pending(ask()).model_copy(update={"typed": ("hunter2-tr0mbone",)})
    assert write(record, "The code is hunter2-tr0mbone.").notes[0].text == "The code is [secret]."


def test_delivery_is_marked_once_with_the_state_that_has_the_note() -> None:
    record = write(write(leased()))
    first, second = record.notes
    saved = checkpoint(record, FENCE, STATE, (describe_delivery(first),), T0 + 9).record
    assert [note.delivered_at_ms for note in saved.notes] == [T0 + 9, None]
    assert saved.waiting_notes == (second,)
    again = mark_delivered(saved, (describe_delivery(first), describe_delivery(second)), T0 + 20)
    assert [note.delivered_at_ms for note in again.notes] == [T0 + 9, T0 + 20]
    assert mark_delivered(saved, (), T0 + 20) is saved
    written = Event(EventType.NOTE_WRITTEN, {"note_id": second.id})
    assert mark_delivered(saved, (written,), T0 + 20) is saved


def test_what_waits_goes_on_to_the_next_suspension() -> None:
    record = write(write(leased()))
    events = (describe_delivery(record.notes[0]),)
    change = suspend_again(record, FENCE, draft(id="sus_2"), (ask(),), STATE, events, T0 + 9)
    assert change.following is not None
    assert change.following.notes == (record.notes[1],)
    assert "note_delivered" in types_of(change)


def test_end_of_the_run_leaves_a_waiting_note_as_it_is() -> None:
    record = write(leased())
    assert settle(record, FENCE, DONE, (), T0 + 9).record.notes == record.notes
    (note,) = settle(record, FENCE, DONE, (describe_delivery(record.notes[0]),), T0 + 9).record.notes
    assert isinstance(note, OperatorNote)
    assert note.delivered_at_ms == T0 + 9
