"""The first steps on a new desk: start the demo agent, decide its call, see the receipt; then connect an agent."""

import asyncio
import json
import re
from functools import partial
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import now_ms
from sayso.core.packages import install_command
from sayso.core.records.items import Item
from sayso.core.sentences.outcomes import describe_outcome
from sayso.core.text.language import _
from service.core.operations.runs import is_demo_served, start_demo
from service.core.store.suspensions.reading import split_readable
from service.edge.web.content.cards import Card, item_href, make_cards
from service.edge.web.inbox import SKIPPED
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, read_post, set_cookie, wiring_of

_PAGE = "pages/welcome.html"
_UNFIT = re.compile(r"[^A-Za-z0-9._-]")  # what the id of a rule cannot have

router = APIRouter(route_class=RecordedRoute)


class Decided(NamedTuple):
    """The latest decided item: where its receipt is, its outcome, and whether its call ran."""

    href: str
    outcome: str
    ran: bool
    rule: str


@router.get("/welcome")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the first steps as far as they are done."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, {}))


@router.post("/welcome/demo")
async def start(request: Request, visitor: SignedIn) -> Response:
    """Start the demo agent."""
    async with receive(request, visitor, _PAGE, partial(_gather, request, visitor)):
        await start_demo(wiring_of(request), visitor.name)
    return RedirectResponse("/welcome", 303)


@router.post("/welcome/skip")
async def skip(request: Request, visitor: SignedIn) -> Response:
    """Go to the inbox, which no longer leads here in this browser."""
    await read_post(request, visitor)
    response = RedirectResponse("/", 303)
    set_cookie(response, wiring_of(request).settings, SKIPPED, "1", 30 * 86_400)
    return response


def write_rule(item: Item) -> str:
    """Return a rule for calls like this one, as YAML: JSON strings are YAML strings."""
    lines = [
        f"- id: ask-{_UNFIT.sub('-', item.tool.name)[:60]}",
        f"  tool: {json.dumps(item.tool.name)}",
        "  action: request_approval",
        "  reason: Calls of this tool need a person",
    ]
    for name, value in item.tool.args.items():
        if name.isascii() and name.isidentifier() and isinstance(value, int | float) and not isinstance(value, bool):
            lines.insert(2, f"  when: args.{name} >= {json.dumps(value)}")
            break
    return "\n".join(lines)


async def _gather(request: Request, visitor: Visitor, _post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    records, _damaged = split_readable(await wiring.desk.suspensions.read_page(await wiring.runs.decided(limit=1)))
    ended = [(record, item) for record in records for item in record.items if item.outcome is not None]
    decided = None
    if ended:
        record, item = ended[-1]
        ran = item.permit is not None and item.permit.success is not None
        decided = Decided(item_href(record, item), describe_outcome(item), ran, write_rule(item))
    started = bool(await wiring.runs.list_ids(1))
    return {
        "title": _("First steps"),
        "started": started,
        "served": started or await is_demo_served(wiring),
        "cards": await _list_waiting(request, visitor),
        "decided": decided,
        "url": wiring.settings.public_url,
        "install": install_command,
        "now_ms": now_ms(),
    }


async def _list_waiting(request: Request, visitor: Visitor) -> list[Card]:
    wiring = wiring_of(request)
    records, _ = split_readable(await wiring.desk.suspensions.read_page(await wiring.runs.inbox(limit=20)))
    definitions = await wiring.runs.find_definitions(records)
    reviewer, freezes = visitor.principal.reviewer("web"), await wiring.freezes.known()
    cards = await asyncio.to_thread(make_cards, records, reviewer, freezes, now_ms(), definitions=definitions)
    return [card for card in cards if not card.ineligibility][:3]
