"""The page of decided items, latest first, with filters."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso.records.suspensions import SuspensionRecord
from sayso.text.summaries import write_pretty
from sayso.transitions.item_states import ItemState
from service.operations.masking import mask_record
from service.store.suspensions.reading import UnreadableRecord, id_of
from service.web.content.cards import Row, make_rows
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of

PAGE = 25
_BATCH = 100
_MAX_SEARCHED = 1000

STATES = tuple(state for state in ItemState if state is not ItemState.OPEN)

router = APIRouter()

Text = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True)
class Filter:
    """A reader's filter; an empty field matches everything."""

    verdict: str
    agent: str
    text: str

    def __bool__(self) -> bool:
        return any((self.verdict, self.agent, self.text))

    def matches(self, record: SuspensionRecord, row: Row) -> bool:
        if self.verdict and row.state != self.verdict:
            return False
        if self.agent and self.agent.casefold() not in row.agent.casefold():
            return False
        return not self.text or self.text.casefold() in _searchable(record, row).casefold()


@router.get("/decided")
async def decided(
    request: Request,
    visitor: SignedIn,
    verdict: Text = "",
    agent: Text = "",
    q: Text = "",
    skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Show decided items."""
    wanted = Filter(verdict if verdict in STATES else "", agent.strip(), q.strip())
    rows, damaged, following = await _find(request, wanted, skip)
    return await show(
        request,
        visitor,
        "pages/decided.html",
        title="Decided",
        rows=rows,
        damaged=damaged,
        wanted=wanted,
        states=STATES,
        skip=skip,
        following=following,
        searched=_MAX_SEARCHED,
    )


async def _find(request: Request, wanted: Filter, skip: int) -> tuple[list[Row], list[UnreadableRecord], int | None]:
    wiring = wiring_of(request)
    rows: list[Row] = []
    damaged: list[UnreadableRecord] = []
    position = skip
    while len(rows) < PAGE and position < skip + _MAX_SEARCHED:
        ids = await wiring.runs.decided(position, _BATCH)
        by_id = {id_of(found): found for found in await wiring.desk.suspensions.read_page(ids)}
        for suspension_id in ids:
            if len(rows) >= PAGE:
                return rows, damaged, position
            position += 1
            record = by_id.get(suspension_id)
            if isinstance(record, UnreadableRecord):
                damaged.append(record)
            elif record is not None:
                masked = mask_record(record)
                rows += [row for row in await asyncio.to_thread(make_rows, masked) if wanted.matches(masked, row)]
        if len(ids) < _BATCH:
            return rows, damaged, None
    return rows, damaged, position


def _searchable(record: SuspensionRecord, row: Row) -> str:
    args = "\n".join(write_pretty(item.tool.args) for item in record.items if row.href.endswith(f"/{item.item_id}"))
    return "\n".join((row.tool, row.outcome, row.note, record.run.title, record.id, record.run.id, args))
