"""The pages of replays, for admins, and of the candidate in shadow, which everybody reads and admins change."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.rendering.money import write_sum
from sayso.core.text.language import _
from sayso.core.text.summaries import Summary, summarize
from sayso.errors import InvalidInput
from sayso.features.whatif.matrix import Cell, Listed
from sayso.features.whatif.text import describe_effect, describe_past, describe_review_time, describe_status
from sayso.wire.rulebook import Effect, Past, ReplayStatus
from service.edge.web.pages import receive, show
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, read_post, wiring_of
from service.features.rulebook.versions import read_version
from service.features.whatif import shadows
from service.features.whatif.replays import ReplayRequest, RuleReplays
from service.features.whatif.store import ReplayStore

_FILE = "candidate"
_FORM = "pages/replays.html"

router = APIRouter(route_class=RecordedRoute)


@dataclass(frozen=True)
class MatrixCell:
    """A count of the matrix, with its sums in words; `risky` where a denial would be undone."""

    count: int
    sums: Sequence[str]
    changed: bool
    risky: bool


class MatrixRow(NamedTuple):
    """The calls with one past, and with rules to compare with also one effect, by what would happen now."""

    past: str
    was: str
    cells: Sequence[MatrixCell | None]


class ListedRow(NamedTuple):
    """A call in a list."""

    href: str
    call: Listed
    summary: Summary | None


@dataclass(frozen=True)
class ChangedCalls:
    """The listed calls of one cell."""

    past: str
    was: str
    now: str
    count: int
    risky: bool
    rows: Sequence[ListedRow]


@router.get("/rules/-/replays")
async def read(request: Request, visitor: SignedIn, version: Annotated[str, Query(max_length=100)] = "") -> Response:
    """Show the form, with a version's rules or those of this service's file, and the replays of the last day."""
    rules = wiring_of(request).rules
    source = rules.read_source()
    text = source[1].decode("utf-8-sig") if source is not None else ""
    if version:
        text = (await rules.versions.read(version)).text.removeprefix("\ufeff")
    return await show(request, visitor, _FORM, **await _describe_form(request, {"text": text}))


@router.post("/rules/-/replays")
async def start(request: Request, visitor: SignedIn) -> Response:
    """Start a replay, and lead to it."""
    async with receive(request, visitor, _FORM, partial(_describe_form, request)) as post:
        text = post.get("text", "").replace("\r\n", "\n")
        if not text.strip():
            raise InvalidInput("Paste the rules to try.")
        since, until = _read_day(post.get("since", "")), _read_day(post.get("until", ""))
        path = post.get("path", "").strip()
        end_ms = round((until + timedelta(days=1)).timestamp() * 1000)
        lists = await asyncio.to_thread(wiring_of(request).rulebook.read_lists)
        asked = ReplayRequest(text, _FILE, round(since.timestamp() * 1000), end_ms, path or None, lists=lists)
        replay = await replays_of(request).start(asked, visitor.name)
    return RedirectResponse(f"/rules/-/replays/{replay.id}", 303)


@router.get("/rules/-/replays/{replay_id}")
async def read_one(request: Request, visitor: SignedIn, replay_id: str) -> Response:
    """Show a replay: its progress, which the browser reads again, or its result."""
    wiring = wiring_of(request)
    replay = await wiring.part(ReplayStore).read(replay_id, await wiring.schedule.now_ms())
    tally = replay.result
    estimates = (tally.find_typical_look_ms(), tally.estimate_saved_ms(), tally.estimate_added_ms())
    cells = tally.list_cells()
    rows = dict.fromkeys((cell.past, cell.was) for cell in cells)
    by_place = {(cell.past, cell.was, cell.now): cell for cell in cells}
    page = await show(
        request,
        visitor,
        "pages/replay.html",
        title=_("Shadow") if replay.shadow else _("Replay"),
        replay=replay,
        tally=tally,
        rows=[
            MatrixRow(describe_past(past), was, [_describe_cell(by_place.get((past, was, now))) for now in Effect])
            for past, was in rows
        ],
        summed=any(cell.sums for cell in tally.list_cells()),
        effects={effect: describe_effect(effect) for effect in Effect},
        changes=[_describe_change(cell) for cell in tally.list_cells() if cell.listed],
        review_time=describe_review_time(tally.look_times.total(), *estimates),
    )
    if not replay.status.ended:
        page.headers["Refresh"] = "2"
    return page


@router.post("/rules/-/replays/{replay_id}/delete")
async def delete(request: Request, visitor: SignedIn, replay_id: str) -> Response:
    """End and delete a replay."""
    await read_post(request, visitor)
    await replays_of(request).delete(replay_id)
    return RedirectResponse("/rules/-/replays", 303)


def replays_of(request: Request) -> RuleReplays:
    """Return the replays of this process."""
    replays: RuleReplays = request.app.state.rule_replays
    return replays


async def _describe_form(request: Request, post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    now_ms = await wiring.schedule.now_ms()
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    return {
        "title": _("Replay"),
        "draft": post.get("text", "").replace("\r\n", "\n"),
        "since": post.get("since", str(today - timedelta(days=7))),
        "until": post.get("until", str(today)),
        "path": post.get("path", ""),
        "replays": await wiring.part(ReplayStore).list_all(now_ms),
        "statuses": {status: describe_status(status) for status in ReplayStatus},
    }


def _read_day(text: str) -> datetime:
    try:
        return datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError as error:
        raise InvalidInput("Enter both days as 2026-11-01.") from error


def _describe_cell(cell: Cell | None) -> MatrixCell | None:
    if cell is None:
        return None
    sums = [write_sum(number, currency) for currency, number in sorted(cell.sums.items())]
    return MatrixCell(cell.count, sums, cell.changed, _is_risky(cell))


def _describe_change(cell: Cell) -> ChangedCalls:
    rows = [
        ListedRow(
            f"/items/{call.suspension_id}/{call.item_id}" if call.item_id else f"/runs/{call.run_id}",
            call,
            summarize(call.args) if call.args else None,
        )
        for call in cell.listed
    ]
    return ChangedCalls(describe_past(cell.past), cell.was, cell.now, cell.count, _is_risky(cell), rows)


def _is_risky(cell: Cell) -> bool:
    return cell.changed and cell.now is Effect.ALLOWED and cell.past in (Past.DENIED, Past.REFUSED)


_PAGE = "pages/rule_shadow.html"
_PATH = "/rules/-/shadow"


@router.get(_PATH)
async def show_shadows(request: Request, visitor: SignedIn) -> Response:
    """Show the candidate in shadow, and those before it."""
    return await show(request, visitor, _PAGE, **await _gather(request, {}))


@router.post(_PATH)
async def change(request: Request, visitor: SignedIn) -> Response:
    """Begin or end a shadow, put the candidate in force, or compare it with what was done."""
    async with receive(request, visitor, _PAGE, partial(_gather, request)) as post:
        return RedirectResponse(await _act(request, visitor, post), 303)


async def _act(request: Request, visitor: Visitor, post: Post) -> str:
    wiring, act, version = wiring_of(request), post.get("act"), post.get("version", "")
    if act == "compare":
        replay = await shadows.report_shadow(wiring, replays_of(request), visitor.name, version)
        return f"/rules/-/replays/{replay.id}"
    if act == "end":
        await shadows.end_shadow(wiring, version, visitor.name)
    elif act == "promote":
        await shadows.promote_shadow(wiring, version, visitor.name, post.get("replaces", ""))
        return f"/rules/-/versions/{version}"
    elif version:
        await shadows.begin_shadow(wiring, version, visitor.name)
    else:
        text = post.get("text", "").replace("\r\n", "\n")
        if not text.strip():
            raise InvalidInput("Paste the rules of the candidate.")
        lists = await asyncio.to_thread(wiring.rulebook.read_lists)
        await shadows.begin_file_shadow(wiring, text, _FILE, visitor.name, lists)
    return _PATH


async def _gather(request: Request, post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    state = await shadows.read_shadows(wiring)
    in_force = await wiring.rules.versions.read_in_force()
    current = await read_version(wiring, state.current.version) if state.current is not None else None
    return {
        "title": _("Shadow"),
        "state": state,
        "current": current,
        "in_force": in_force,
        "needed": wiring.settings.policy_attestations,
        "draft": post.get("text", "").replace("\r\n", "\n"),
    }
