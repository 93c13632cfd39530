"""Routes and the page form of notes: people write to a running agent without deciding."""

from collections.abc import Iterable

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from pydantic import Field

from sayso.core.clock import new_id
from sayso.core.records.decisions import Actor
from sayso.core.records.items import LONGEST_TEXT
from sayso.core.records.suspensions import OperatorNote, SuspensionRecord
from sayso.core.transitions.inquiring import check_writer
from sayso.errors import NotAllowed
from sayso.wire.models import RequestBody
from sayso.wire.suspensions import NotePage, show_notes
from service.core.operations.masking import mask_typed
from service.core.store.suspensions.reading import split_readable
from service.edge.api.dependencies import (
    LONGEST_PAGE,
    Caller,
    IdempotencyKey,
    Parts,
    Person,
    RunId,
    find_run,
)
from service.edge.api.routes import SignedInRoute
from service.edge.http.openapi import READS, WRITES
from service.edge.web.additions import RunPage
from service.edge.web.sessions import RecordedRoute, SignedIn, read_post, wiring_of

notes = APIRouter(prefix="/runs/{run_id}/notes", tags=["runs"], route_class=SignedInRoute)


class NoteRequest(RequestBody):
    """A note to the agent."""

    text: str = Field(min_length=1, max_length=LONGEST_TEXT, examples=["The customer moved; use the new address."])


@notes.post("", operation_id="writeNote", responses=WRITES)
async def write_note(run_id: RunId, body: NoteRequest, caller: Person, parts: Parts, key: IdempotencyKey) -> NotePage:
    """Write to a running agent without deciding, as who may decide on its run. The answer has all notes of the run.

    The model of one of Sayso's own agents gets the note once, before its next turn; other agents read it.
    """
    await find_run(parts, caller, run_id)
    await parts.desk.write_note(run_id, body.text, caller.reviewer("api"), key)
    return await list_notes(run_id, caller, parts)


@notes.get("", operation_id="listNotes", responses=READS)
async def list_notes(run_id: RunId, caller: Caller, parts: Parts) -> NotePage:
    """Return the notes to the agent of a run, the first first. Agents read those of their own runs."""
    run = await find_run(parts, caller, run_id)
    records, _ = split_readable(await parts.desk.suspensions.read_chain(run.suspension_id, LONGEST_PAGE))
    written = collect_notes(map(mask_typed, records))
    return NotePage(notes=list(show_notes(records[-1], written)) if records else [])


def collect_notes(records: Iterable[SuspensionRecord]) -> list[OperatorNote]:
    """Return each note once, as the last suspension has it that knows it."""
    known = {note.id: note for record in records for note in record.notes}
    return sorted(known.values(), key=lambda note: (note.at_ms, note.id))


router = APIRouter(route_class=RecordedRoute)


@router.post("/runs/{run_id}/notes")
async def send_note(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Save the visitor's note; a form sent twice writes once."""
    post = await read_post(request, visitor)
    text = post.get("text", "").replace("\r\n", "\n")
    by, key = visitor.principal.reviewer("web"), f"web {run_id} {post.get('nonce', '')}"
    await wiring_of(request).desk.write_note(run_id, text, by, key)
    return RedirectResponse(f"/runs/{run_id}#notes", 303)


async def add_to_run(page: RunPage) -> dict[str, object]:
    """Return the notes of a run, and what a form for one more needs if the visitor may write one."""
    last = page.records[-1] if page.records else None
    ended = last is None or last.end is not None or last.run_status.ended
    written = [note.model_copy(update={"text": page.secrets.scrub(note.text)}) for note in collect_notes(page.records)]
    return {
        "notes": written,
        "note_nonce": new_id("form") if not ended and _may_write(last, page.by) else "",
        "notes_end": ended,
        "notes_pushed": last is not None and last.pushes_notes,
    }


def _may_write(record: SuspensionRecord | None, by: Actor) -> bool:
    try:
        if record is not None:
            check_writer(record, by)
    except NotAllowed:
        return False
    return record is not None
