"""The page of calls that can still be undone, with one press for each, and the same on the inbox and a run's page."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import now_ms
from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.deadlines import Moment, Sentence, compose
from sayso.core.text.language import _
from sayso.core.text.redaction import redact
from sayso.core.transitions.decision_checks import may_decide
from sayso.errors import NotFound
from service.core.operations.masking import mask_typed
from service.core.store.suspensions.reading import split_readable
from service.core.wiring import Wiring
from service.edge.web.additions import InboxLine, InboxSection, RunPage
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, wiring_of

_PAGE = "pages/undo.html"
_MOST = 200
_IN_INBOX = 3

router = APIRouter(route_class=RecordedRoute)


class OfferRow(NamedTuple):
    """An offer to undo a call as pages show it; `presses` is whether one press of the visitor undoes it."""

    record: SuspensionRecord
    item: Item
    tool: str
    run_id: str
    args: JsonObject
    until: Sentence
    presses: bool
    mine: bool

    @property
    def href(self) -> str:
        return f"/items/{self.record.id}/{self.item.item_id}"


@router.get("/undo")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the calls that ran under a veto and can still be undone, the first to end first."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, {}))


@router.post("/undo/{suspension_id}")
async def undo(request: Request, visitor: SignedIn, suspension_id: str) -> Response:
    """Undo a call; a form sent twice undoes once."""
    async with receive(request, visitor, _PAGE, partial(_gather, request, visitor)) as post:
        wiring, by = wiring_of(request), visitor.principal.reviewer("web")
        record = (await wiring.desk.suspensions.read(suspension_id)).record
        if not record.offers_undo:
            raise NotFound(_("This offers to undo no call."))
        decision = DecisionRequest(action="approve", digest=post.get("digest", ""))
        key = f"undo {suspension_id} {post.get('digest', '')}"
        await wiring.desk.decide(suspension_id, record.items[0].item_id, decision, by, key)
    return RedirectResponse(f"/items/{suspension_id}/{record.items[0].item_id}", 303)


async def list_offers(wiring: Wiring, by: Actor) -> list[OfferRow]:
    """Return the offers that end first, with their secrets masked."""
    ids = await wiring.runs.undoable(limit=_MOST)
    records, _damaged = split_readable(await wiring.desk.suspensions.read_page(ids))
    return [_describe(record, item, by) for record in records for item in record.items if item.open]


def _describe(record: SuspensionRecord, item: Item, by: Actor) -> OfferRow:
    masked = next(other for other in mask_typed(record).items if other.item_id == item.item_id)
    args = redact(masked.tool.args, None, item.terms.secrets).args
    mine = may_decide(record, item, by)
    tool, run_id = (item.reverses.tool, item.reverses.run_id) if item.reverses is not None else (item.tool.name, "")
    until = compose(_("can be undone until %(until)s"), until=Moment(item.terms.deadline_at_ms))
    return OfferRow(record, item, tool, run_id, args, until, mine and item.terms.step_up is None, mine)


async def _gather(request: Request, visitor: Visitor, _post: Post) -> dict[str, Any]:
    rows = await list_offers(wiring_of(request), visitor.principal.reviewer("web"))
    mine = [row for row in rows if row.mine]
    return {
        "title": _("Undo"),
        "now_ms": now_ms(),
        "mine": mine,
        "elsewhere": [row for row in rows if not row.mine],
    }


async def add_to_inbox(wiring: Wiring, visitor: Visitor) -> InboxSection | None:
    """Return the calls that this person can undo, those that end first."""
    mine = [row for row in await list_offers(wiring, visitor.principal.reviewer("web")) if row.mine]
    if not mine:
        return None
    lines = tuple(map(_write_line, mine[:_IN_INBOX]))
    return InboxSection("undo", _("Calls that you can undo"), "/undo", lines, len(mine) - len(lines))


def _write_line(row: OfferRow) -> InboxLine:
    until = Moment(row.item.terms.deadline_at_ms)
    detail = compose(_("%(agent)s · until %(until)s"), agent=row.record.run.agent, until=until)
    return InboxLine(f"/undo#{row.record.id}", (row.tool,), detail)


async def add_to_run(page: RunPage) -> Mapping[str, object]:
    """Return the calls of a run that can still be undone."""
    return {"undoable": [row for row in await list_offers(page.wiring, page.by) if row.run_id == page.run_id]}
