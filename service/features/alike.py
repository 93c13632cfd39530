"""The page of alike items: one table, one decision for each ticked row, and the result of each."""

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from sayso import errors
from sayso.core.clock import now_ms
from sayso.core.records.decisions import DIGEST_PATTERN, ActorKind, DecisionRequest, Shown, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.sentences.items import describe_denial
from sayso.core.sentences.outcomes import describe_actor, describe_outcome
from sayso.core.text.language import _, mark
from sayso.core.transitions.deciding import find_item
from sayso.errors import Conflict, InvalidInput, NotFound, SaysoError
from service.core.concurrency import release_apart
from service.core.operations.queries import EVERYTHING
from service.core.store.precedents import Precedents
from service.core.store.suspensions.reading import split_readable
from service.edge.web.content.cards import Card, make_cards
from service.edge.web.content.edits import make_shown, read_look_ms
from service.edge.web.content.kinds import list_arguments
from service.edge.web.content.tables import MOST, Line, Table, make_tables
from service.edge.web.pages import show, show_page_again
from service.edge.web.sessions import (
    Post,
    RecordedRoute,
    SignedIn,
    Visitor,
    check_session,
    describe_refusal,
    read_reason,
    wiring_of,
)
from service.edge.web.sign_ins import receive_form

PICK = "pick."  # the beginning of a checkbox's name; the id of the item's row follows
_PICKED = re.compile(rf"({DIGEST_PATTERN[1:-1]}) (\S{{1,200}})")


class Pick(NamedTuple):
    """An item that was ticked: its digest and its display as the page had them."""

    digest: str
    display: str


class Result(NamedTuple):
    """The result for one item: its `kind`, by which items are counted with `who` decided them, and a sentence."""

    href: str
    tool: str
    kind: str
    sentence: str
    good: bool
    who: str = ""

    @property
    def row_id(self) -> str:
        return "-".join(self.href.split("/")[2:])

    @property
    def phrase(self) -> str:
        return _(_PHRASES[self.kind]) % {"who": self.who}


_PHRASES: Mapping[str, str] = {
    Verdict.APPROVED: mark("approved"),
    Verdict.DENIED: mark("denied"),
    Verdict.ANSWERED: mark("answered"),
    Verdict.FAILED: mark("failed"),
    "waiting": mark("waiting for another reviewer"),
    "undoable": mark("decided, and can still be undone"),
    "changed": mark("changed: look again"),
    "decided": mark("decided by %(who)s"),
    "late": mark("reached the deadline"),
    "cancelled": mark("cancelled"),
    "alone": mark("not decided: open it alone"),
}


def read_picks(post: Post) -> dict[str, Pick]:
    """Return the ticked items by the id of their row; a value that the page did not write is left out."""
    matches = {name.removeprefix(PICK): _PICKED.fullmatch(text) for name, text in post.items() if name.startswith(PICK)}
    return {row_id: Pick(match[1], match[2]) for row_id, match in matches.items() if match is not None}


def read_shown(line: Line, table: Table, pick: Pick, post: Post) -> Shown | None:
    """Return what the page reports as shown of one item; None where it was not measured, as without scripts."""
    unseen, look_ms = post.get("unseen"), read_look_ms(post)
    if unseen is None or look_ms is None or pick.display != line.display:
        return None
    leaves = list_arguments(line.card.item) if line.card.row_id not in unseen.split(",") else table.common
    return make_shown(pick.display, line.values, [leaf.path for leaf in leaves], look_ms)


def describe_result(href: str, record: SuspensionRecord, item_id: str, error: SaysoError | None) -> Result:
    """Return the result of a decision on an item, or of its refusal."""
    item = find_item(record, item_id)
    if error is not None:
        kind, who = _name_refusal(record, item, error)
        return Result(href, item.tool.name, kind, _explain(item, error), good=False, who=who)
    outcome = item.outcome
    if item.undoable is not None:
        sentence = _("You decided. It takes effect in a moment; undo it on its page.")
        return Result(href, item.tool.name, "undoable", sentence, good=True)
    if outcome is None:
        return Result(href, item.tool.name, "waiting", _("You decided. Others must, too."), good=True)
    return Result(href, item.tool.name, outcome.verdict, f"{describe_outcome(item)}.", good=True)


def count_results(results: Iterable[Result]) -> list[str]:
    """Return how many items share a phrase, such as `10 approved` and `1 changed: look again`; the good ones first."""
    counts = Counter((not result.good, result.phrase) for result in results)
    return [f"{count} {phrase}" for (_bad, phrase), count in sorted(counts.items(), key=lambda entry: entry[0][0])]


def _name_refusal(record: SuspensionRecord, item: Item, error: SaysoError) -> tuple[str, str]:
    if isinstance(error, errors.StaleDigest):
        return "changed", ""
    if item.outcome is not None and item.outcome.by.kind is ActorKind.HUMAN:
        return "decided", describe_actor(item.outcome.by)
    if item.outcome is not None or isinstance(error, errors.DeadlinePassed):
        return "late", ""
    return ("cancelled" if record.status is Status.CANCELLED else "alone"), ""


def _explain(item: Item, error: SaysoError) -> str:
    if isinstance(error, errors.StaleDigest):
        return _("The request has changed. Check it again before you decide.")
    return f"{describe_outcome(item)}." if item.outcome is not None else _(error.message)


MOST_SEARCHED = 1_000
_PAGE = "pages/batch.html"
_READ_AT_ONCE = 100

router = APIRouter(route_class=RecordedRoute)

Items = Annotated[list[str] | None, Query(max_length=MOST)]


class Chosen(NamedTuple):
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
    reasons: Mapping[str, tuple[str, ...]] = {}
    try:
        check_session(post, visitor)
        reasons = {line.card.row_id: line.reasons for line in (await _gather(request, visitor, chosen))["lines"]}
        if not picks:
            raise InvalidInput(_("Tick at least one row. Nothing was changed."))
        results = await _decide_all(request, visitor, picks, post)
    except SaysoError as error:
        context = await _gather(request, visitor, chosen, ticked=picks, reason=read_reason(post))
        show_page_again(request, _PAGE, visitor=visitor, **{**context, "problem": describe_refusal(error)})
        raise
    context = await _gather(request, visitor, chosen, ticked=(), reasons=reasons)
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
    desk, results = wiring_of(request).desk, []
    for row_id, pick in picks.items():
        suspension_id, item_id = _split(row_id)
        error: SaysoError | None = None
        try:
            if row_id in alone:
                raise Conflict(_("This item needs a page of its own. Open it and decide it there."))
            decision = _make_decision(pick, post)
            # One that is sent twice counts once, by the digest of its row.
            by, key = visitor.principal.reviewer("web"), f"web-{item_id}-{decision.digest}"
            await desk.decide(suspension_id, item_id, decision, by=by, key=key, shown=shown.get(row_id))
        except NotFound:
            continue
        except SaysoError as refusal:
            error = refusal
        record = (await desk.suspensions.read(suspension_id)).record
        results.append(describe_result(f"/items/{suspension_id}/{item_id}", record, item_id, error))
    return results


def _make_decision(pick: Pick, post: Post) -> DecisionRequest:
    if "deny" in post:
        return DecisionRequest(action="deny", digest=pick.digest, message=read_reason(post) or None)
    return DecisionRequest(action="approve", digest=pick.digest)


async def _gather(
    request: Request,
    visitor: Visitor,
    chosen: Chosen,
    ticked: Collection[str] | None = None,
    reason: str = "",
    reasons: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return what the page shows; without `ticked`, rows start with a tick unless something is unusual.

    `reasons` are what was unusual of rows before others of them were decided: an outlier stays one.
    """
    if chosen.like:
        cards = await _find_alike(request, visitor, chosen.like)
    else:
        cards = await _read_cards(request, visitor, chosen.items)
    tables, alone = await asyncio.to_thread(make_tables, cards, 1)
    tables = [table.keep(reasons) for table in tables]
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
        "denial": describe_denial(first.record, first.item) if first is not None else "",
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
        same = [
            record
            for record in records
            if (record.run.owner, record.run.agent) == (seed.record.run.owner, seed.record.run.agent)
            and any(item.tool.name == seed.item.tool.name for item in record.items)
        ]
        cards += [card for card in await _make_cards(request, visitor, same) if card.alike == seed.alike]
        if len(ids) < _READ_AT_ONCE or len(cards) >= MOST:
            break
    return cards[:MOST]


async def _read_cards(request: Request, visitor: Visitor, row_ids: Iterable[str]) -> list[Card]:
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
