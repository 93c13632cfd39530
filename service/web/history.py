"""The page of what has been decided, the latest first, to be found again by verdict, agent and text."""

import asyncio
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso.records.suspensions import SuspensionRecord
from sayso.text.summaries import write_pretty
from sayso.transitions.item_states import ItemState
from service.store.suspensions.reading import UnreadableRecord, id_of
from service.web.content.cards import Row, make_rows
from service.web.pages import show
from service.web.sessions import SignedIn, Visitor, wiring_of

PAGE = 25
_AT_ONCE = 100
_MOST_LOOKED_THROUGH = 1000

STATES = tuple(one for one in ItemState if one is not ItemState.OPEN)

router = APIRouter()

Word = Annotated[str, Query(max_length=200)]


@dataclass(frozen=True)
class Wanted:
    """What a reader looks for; empty words look for everything."""

    verdict: str
    agent: str
    text: str

    def takes(self, record: SuspensionRecord, row: Row) -> bool:
        """Whether a row is one of those."""
        if self.verdict and row.state != self.verdict:
            return False
        if self.agent and self.agent.casefold() not in row.agent.casefold():
            return False
        return not self.text or self.text.casefold() in _searched(record, row).casefold()


@router.get("/decided")
async def decided(
    request: Request,
    visitor: SignedIn,
    verdict: Word = "",
    agent: Word = "",
    q: Word = "",
    skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Show what has been decided."""
    wanted = Wanted(verdict if verdict in STATES else "", agent.strip(), q.strip())
    rows, damaged, following = await _find(request, visitor, wanted, skip)
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
        searched=_MOST_LOOKED_THROUGH,
        filtered=any((wanted.verdict, wanted.agent, wanted.text)),
    )


async def _find(
    request: Request, visitor: Visitor, wanted: Wanted, skip: int
) -> tuple[list[Row], list[UnreadableRecord], int | None]:
    """Return the rows behind `skip` suspensions, what is unreadable there, and how many to skip for more, or None."""
    wiring = wiring_of(request)
    rows: list[Row] = []
    damaged: list[UnreadableRecord] = []
    place = skip
    while len(rows) < PAGE and place < skip + _MOST_LOOKED_THROUGH:
        ids = await wiring.runs.decided(place, _AT_ONCE)
        by_id = {id_of(one): one for one in await wiring.desk.suspensions.read_page(ids)}
        for suspension_id in ids:
            if len(rows) >= PAGE:
                return rows, damaged, place
            place += 1
            record = by_id.get(suspension_id)
            if isinstance(record, UnreadableRecord):
                damaged.append(record)
            elif record is not None:
                rows += [row for row in await asyncio.to_thread(make_rows, record) if wanted.takes(record, row)]
        if len(ids) < _AT_ONCE:
            return rows, damaged, None
    return rows, damaged, place


def _searched(record: SuspensionRecord, row: Row) -> str:
    args = "\n".join(write_pretty(item.tool.args) for item in record.items if row.href.endswith(f"/{item.item_id}"))
    return "\n".join((row.tool, row.outcome, row.note, record.run.title, record.id, record.run.id, args))
