"""The pages of runs: all of them, one of them, and the end of one that is not to go on."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import Conflict
from sayso.problems import Problem
from sayso.records.items import Item
from sayso.records.suspensions import RunStatus, Status, SuspensionRecord
from sayso.sentences.outcomes import describe_state
from sayso.text.summaries import Summary, summarize
from sayso.transitions.item_states import find_item_state
from service.store.runs.runs import Run
from service.store.suspensions.reading import UnreadableRecord, split_readable
from service.web.content.cards import item_href
from service.web.content.external_events import describe_both, read_external_events
from service.web.content.trails import MOST_ENTRIES, read_trail
from service.web.errors import show_again
from service.web.form_posts import EarlierSignIn, check_session, describe_refusal, read_form, read_post
from service.web.pages import render, show
from service.web.sessions import SignedIn, Visitor, wiring_of
from service.web.sign_ins import find_sender

PAGE = 25
_AT_ONCE = 100
_MOST_LOOKED_THROUGH = 1000
_MOST_PAUSES = 50

router = APIRouter()

_Line = tuple[str, str, Summary, str]


@router.get("/runs")
async def list_runs(
    request: Request,
    visitor: SignedIn,
    status: Annotated[str, Query(max_length=20)] = "",
    agent: Annotated[str, Query(max_length=200)] = "",
    skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Response:
    """Show the runs, newest first."""
    wanted = RunStatus(status) if status in list(RunStatus) else None
    runs, damaged, following = await _find(request, visitor, wanted, agent.strip(), skip)
    return await show(
        request,
        visitor,
        "pages/runs.html",
        title="Runs",
        runs=runs,
        damaged=damaged,
        statuses=list(RunStatus),
        status=wanted or "",
        agent=agent.strip(),
        skip=skip,
        following=following,
        searched=_MOST_LOOKED_THROUGH,
    )


@router.get("/runs/{run_id}")
async def read(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Show one run: where it stands, what came of it, what was asked, and everything that happened."""
    return await show(request, visitor, "pages/run.html", **await _gather(request, visitor, run_id))


@router.post("/runs/{run_id}")
async def revive(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Have a run that was given up tried again."""
    await read_post(request, visitor)
    wiring = wiring_of(request)
    run = await wiring.runs.read(run_id)
    try:
        await wiring.desk.revive(run.suspension_id, visitor.principal.actor("web"))
    except Conflict:
        context = await _gather(request, visitor, run_id)
        context["banner"] = f"Only a failed run can be retried. This run is {describe_state(context['run'].status)}."
        pending = await wiring.runs.count_pending()

        def again(problem: Problem) -> Response:
            return render(request, "pages/run.html", code=problem.status, visitor=visitor, pending=pending, **context)

        show_again(request, again)
        raise
    return RedirectResponse(f"/runs/{run_id}", 303)


@router.get("/runs/{run_id}/cancel")
async def ask_cancel(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Ask whether the run is really to be cancelled."""
    run = await wiring_of(request).runs.read(run_id)
    if run.status.ended:
        return RedirectResponse(f"/runs/{run.id}", 303)
    return await show(
        request, visitor, "pages/cancel.html", title="Cancel run", run=run, run_id=None, sentence="", reason=""
    )


@router.post("/runs/{run_id}/cancel")
async def cancel(request: Request, run_id: str) -> Response:
    """Cancel the run."""
    wiring = wiring_of(request)
    post = await read_form(request)
    visitor = await find_sender(request, post)
    reason = post.get("reason", "").replace("\r\n", "\n").strip()[:2000]
    try:
        check_session(post, visitor)
        await wiring.desk.cancel(run_id, visitor.principal.actor("web"), reason or None)
    except (Conflict, EarlierSignIn) as error:
        run = await wiring.runs.read(run_id)
        sentence = describe_refusal(error)

        def again(problem: Problem) -> Response:
            return render(
                request,
                "pages/cancel.html",
                title="Cancel run",
                code=problem.status,
                visitor=visitor,
                run=run,
                sentence=sentence,
                reason=reason,
            )

        show_again(request, again)
        raise
    return RedirectResponse(f"/runs/{run_id}", 303)


async def _gather(request: Request, visitor: Visitor, run_id: str) -> dict[str, Any]:
    wiring = wiring_of(request)
    run = await wiring.runs.read(run_id)
    end = await wiring.trails.find_end(run_id)  # before the events: there may be more meanwhile
    trail = await read_trail(wiring.runs, run_id)
    told = await read_external_events(wiring.external_events, run_id)
    chain = await wiring.desk.suspensions.read_chain(run.suspension_id, _MOST_PAUSES)
    records, damaged = split_readable(chain)
    return {
        "title": f"Run of {run.agent}",
        "run": run,
        "run_id": run.id,
        "lines": describe_both(trail, told.entries),
        "external_cut": told.cut,
        "trail_fault": end.fault,
        "trail_cut": len(trail) >= MOST_ENTRIES,
        "given_up": bool(records) and records[-1].status is Status.FAILED,
        "damaged": damaged,
        "banner": "",
        "suspensions": await asyncio.to_thread(_list_suspensions, records),
        "suspensions_cut": bool(records) and not damaged and records[0].previous_id is not None,
    }


def _list_suspensions(records: Sequence[SuspensionRecord]) -> list[tuple[SuspensionRecord, list[_Line]]]:
    return [(record, [_line(record, item) for item in record.items]) for record in records if record.items]


def _line(record: SuspensionRecord, item: Item) -> _Line:
    return item_href(record, item), item.tool.name, summarize(item.tool.args), find_item_state(record, item)


async def _find(
    request: Request, visitor: Visitor, status: RunStatus | None, agent: str, skip: int
) -> tuple[list[Run], list[UnreadableRecord], int | None]:
    """Return the runs behind `skip` others, what is unreadable there, and how many to skip for more, or None."""
    wiring = wiring_of(request)
    found: list[Run] = []
    damaged: list[UnreadableRecord] = []
    place = skip
    while place < skip + _MOST_LOOKED_THROUGH:
        runs = await wiring.runs.list_runs(status=status, skip=place, limit=_AT_ONCE)
        for run in runs:
            if len(found) == PAGE:
                return found, damaged, place
            place += 1
            if isinstance(run, UnreadableRecord):
                damaged.append(run)
            elif agent.casefold() in run.agent.casefold():
                found.append(run)
        if len(runs) < _AT_ONCE:
            return found, damaged, None
    return found, damaged, place
