"""The page of alike items: one table, one decision for each ticked row."""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso.core.clock import now_ms
from sayso.core.records.decisions import DecisionRequest, Shown
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.sentences.items import describe_denial
from sayso.core.text.language import _
from sayso.errors import Conflict, InvalidInput, NotFound, SaysoError
from service.concurrency import release_apart
from service.store.runs.precedents import Precedents
from service.store.suspensions.reading import split_readable
from service.web.alike.results import PICK, Pick, Result, count_results, describe_result, read_picks, read_shown
from service.web.content.alike.tables import MOST, make_tables
from service.web.content.cards import Card, make_cards
from service.web.content.queries import EVERYTHING
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_session, describe_refusal, read_reason
from service.web.pages import show
from service.web.sessions import SignedIn, Visitor, wiring_of
from service.web.sign_ins import receive_form

MOST_SEARCHED = 1_000
_PAGE = "pages/batch.html"
_READ_AT_ONCE = 100

router = APIRouter(route_class=RecordedRoute)

Items = Annotated[list[str] | None, Query(max_length=MOST)]


@dataclass(frozen=True)
class Chosen:
    """What the page shows: the items like one, or the selected ones, by the ids of their rows in the inbox."""

    like: str
    items: tuple[str, ...]


@router.get("/batch/{like}")
async def read_alike(request: Request, visitor: SignedIn, like: str) -> Response:
    """Show the items like one, given the id of its row in the inbox."""
    return await _show(request, visitor, Chosen(like, ()))


@router.get("/batch")
async def read(request: Request, visitor: SignedIn, item: Items = None) -> Response:
    """Show the selected items; those that need a page of their own are named below the tables."""
    return await _show(request, visitor, Chosen("", tuple(item or ())))


async def _show(request: Request, visitor: Visitor, chosen: Chosen) -> Response:
    context = await _gather(request, visitor, chosen)
    response = await show(request, visitor, _PAGE, **context)
    release_apart((*(line.card for line in context["lines"]), *context["lines"], *context["alone"]))
    return response


@router.post("/batch")
async def decide(request: Request) -> Response:
    """Decide each ticked item by itself, and show the results."""
    post, visitor = await receive_form(request)
    chosen = Chosen("", tuple(post.get("items", "").split()[:MOST]))
    picks = dict(list(read_picks(post).items())[:MOST])
    try:
        check_session(post, visitor)
        if not picks:
            raise InvalidInput(_("Tick at least one row. Nothing was changed."))
        results = await _decide_all(request, visitor, picks, post)
    except SaysoError as error:
        context = await _gather(request, visitor, chosen, ticked=picks, reason=read_reason(post))
        show_page_again(request, _PAGE, visitor=visitor, **{**context, "problem": describe_refusal(error)})
        raise
    context = await _gather(request, visitor, chosen, ticked=())
    return await show(request, visitor, _PAGE, **{**context, "results": results, "counts": count_results(results)})


async def _decide_all(request: Request, visitor: Visitor, picks: Mapping[str, Pick], post: Post) -> list[Result]:
    cards = await _read_cards(request, visitor, picks)
    tables, _others = await asyncio.to_thread(make_tables, cards, 1)
    shown = {
        line.card.row_id: read_shown(line, table, picks[line.card.row_id], post)
        for table in tables
        for line in table.lines
    }
    alone = {card.row_id for card in cards if not card.alike and not card.ineligibility}
    results = []
    for row_id, pick in picks.items():
        error: SaysoError | None = None
        try:
            if row_id in alone:
                raise Conflict(_("This item needs a page of its own. Open it and decide it there."))
            await _send(request, visitor, row_id, _make_decision(pick, post), shown.get(row_id))
        except NotFound:
            continue
        except SaysoError as refusal:
            error = refusal
        suspension_id, item_id = _split(row_id)
        record = (await wiring_of(request).desk.suspensions.read(suspension_id)).record
        results.append(describe_result(f"/items/{suspension_id}/{item_id}", record, item_id, error))
    return results


async def _send(
    request: Request, visitor: Visitor, row_id: str, decision: DecisionRequest, shown: Shown | None
) -> None:
    """Send one decision with the digest of its row; one that is sent twice counts once."""
    suspension_id, item_id = _split(row_id)
    by, key = visitor.principal.reviewer("web"), f"web-{item_id}-{decision.digest}"
    await wiring_of(request).desk.decide(suspension_id, item_id, decision, by=by, key=key, shown=shown)


def _make_decision(pick: Pick, post: Post) -> DecisionRequest:
    if "deny" in post:
        return DecisionRequest(action="deny", digest=pick.digest, message=read_reason(post) or None)
    return DecisionRequest(action="approve", digest=pick.digest)


async def _gather(
    request: Request, visitor: Visitor, chosen: Chosen, ticked: Collection[str] | None = None, reason: str = ""
) -> dict[str, Any]:
    """Return what the page shows; without `ticked`, rows start with a tick unless something is unusual."""
    if chosen.like:
        cards = await _find_alike(request, visitor, chosen.like)
    else:
        cards = await _read_cards(request, visitor, chosen.items)
    tables, alone = await asyncio.to_thread(make_tables, cards, 1)
    lines = [line for table in tables for line in table.lines]
    first = lines[0].card if lines else None
    return {
        "title": f"{len(lines)} × {tables[0].title}" if len(tables) == 1 else _("Selected items"),
        "items": [*(line.card.row_id for line in lines), *(card.row_id for card in alone)],
        "tables": tables,
        "alone": alone,
        "lines": lines,
        "ticked": {line.card.row_id for line in lines if not line.reasons} if ticked is None else {*ticked},
        "typed": reason,
        "pick": PICK,
        "denial": describe_denial(first.record) if first is not None else "",
        "problem": "",
        "results": [],
        "counts": [],
    }


async def _find_alike(request: Request, visitor: Visitor, row_id: str) -> list[Card]:
    """Return the open items like this one, the earliest deadline first, from the first pages of the inbox."""
    wiring = wiring_of(request)
    (seed,) = await _read_cards(request, visitor, [row_id]) or (None,)
    if seed is None or not seed.alike:
        return [seed] if seed is not None else []
    cards: list[Card] = []
    for position in range(0, MOST_SEARCHED, _READ_AT_ONCE):
        ids = await wiring.runs.inbox(position, _READ_AT_ONCE)
        records, _ = split_readable(await wiring.desk.suspensions.read_page(ids))
        same = [record for record in records if _may_hold(record, seed)]
        cards += [card for card in await _make_cards(request, visitor, same) if card.alike == seed.alike]
        if len(ids) < _READ_AT_ONCE or len(cards) >= MOST:
            break
    return cards[:MOST]


def _may_hold(record: SuspensionRecord, seed: Card) -> bool:
    same_agent = (record.run.owner, record.run.agent) == (seed.record.run.owner, seed.record.run.agent)
    return same_agent and any(item.tool.name == seed.item.tool.name for item in record.items)


async def _read_cards(request: Request, visitor: Visitor, row_ids: Iterable[str]) -> list[Card]:
    """Return the cards of these rows that are still open."""
    wanted = {*row_ids}
    ids = [*dict.fromkeys(_split(row_id)[0] for row_id in wanted)]
    records, _ = split_readable(await wiring_of(request).desk.suspensions.read_page(ids))
    return [card for card in await _make_cards(request, visitor, records) if card.row_id in wanted]


async def _make_cards(request: Request, visitor: Visitor, records: list[SuspensionRecord]) -> list[Card]:
    wiring, reviewer = wiring_of(request), visitor.principal.reviewer("web")
    freezes, definitions = await wiring.freezes.known(), await wiring.runs.find_definitions(records)
    earlier = await wiring.part(Precedents).find_earlier(records)
    facts = (reviewer, freezes, now_ms(), EVERYTHING, definitions, earlier)
    cards = await asyncio.to_thread(make_cards, records, *facts)
    release_apart(records)
    return cards


def _split(row_id: str) -> tuple[str, str]:
    suspension_id, _, item_id = row_id.rpartition("-")
    return suspension_id, item_id
