"""The pages of runs: the list, one run, and its cancellation."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.errors import Conflict
from sayso.records.items import Item
from sayso.records.suspensions import RunStatus, Status, SuspensionRecord
from sayso.sentences.outcomes import describe_state
from sayso.text.summaries import Summary, summarize
from sayso.transitions.item_states import find_item_state
from service.operations.masking import collect_secrets, find_secrets
from service.store.runs.runs import Run
from service.store.suspensions.reading import UnreadableRecord, split_readable
from service.web.content.cards import item_href
from service.web.content.comments import insert_remarks, list_remarks
from service.web.content.external_events import describe_both, read_external_events
from service.web.content.secrets import mask_lines
from service.web.content.trails import MAX_ENTRIES, read_trail
from service.web.errors import show_page_again
from service.web.form_posts import EarlierSignIn, check_session, describe_refusal, read_form, read_post, read_reason
from service.web.pages import show
from service.web.sessions import SignedIn, wiring_of
from service.web.sign_ins import find_sender

PAGE = 25
_BATCH = 100
_MAX_SEARCHED = 1000
_MAX_SUSPENSIONS = 50

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
    runs, damaged, following = await _find(request, wanted, agent.strip(), skip)
    return await show(
        request,
        visitor,
        "pages/runs.html",
        title="Runs",
        runs=await _mask_titles(request, runs),
        damaged=damaged,
        statuses=list(RunStatus),
        status=wanted or "",
        agent=agent.strip(),
        skip=skip,
        following=following,
        searched=_MAX_SEARCHED,
    )


@router.get("/runs/{run_id}")
async def read(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Show one run: its state and result, its items, and its timeline."""
    return await show(request, visitor, "pages/run.html", **await _gather(request, run_id))


@router.post("/runs/{run_id}")
async def revive(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Retry a run that the workers gave up."""
    await read_post(request, visitor)
    wiring = wiring_of(request)
    run = await wiring.runs.read(run_id)
    try:
        await wiring.desk.revive(run.suspension_id, visitor.principal.actor("web"))
    except Conflict:
        context = await _gather(request, run_id)
        context["banner"] = f"Only a failed run can be retried. This run is {describe_state(context['run'].status)}."
        pending = await wiring.runs.count_pending()
        show_page_again(request, "pages/run.html", visitor=visitor, pending=pending, **context)
        raise
    return RedirectResponse(f"/runs/{run_id}", 303)


@router.get("/runs/{run_id}/cancel")
async def confirm_cancel(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Ask the visitor to confirm the cancellation."""
    run = await wiring_of(request).runs.read(run_id)
    if run.status.ended:
        return RedirectResponse(f"/runs/{run.id}", 303)
    return await show(request, visitor, "pages/cancel.html", title="Cancel run", run=run, sentence="", reason="")


@router.post("/runs/{run_id}/cancel")
async def cancel(request: Request, run_id: str) -> Response:
    """Cancel the run."""
    post = await read_form(request)
    visitor = await find_sender(request, post)
    wiring, reason = wiring_of(request), read_reason(post)
    try:
        check_session(post, visitor)
        await wiring.desk.cancel(run_id, visitor.principal.actor("web"), reason or None)
    except (Conflict, EarlierSignIn) as error:
        run, sentence = await wiring.runs.read(run_id), describe_refusal(error)
        context = {"title": "Cancel run", "run": run, "sentence": sentence, "reason": reason}
        show_page_again(request, "pages/cancel.html", visitor=visitor, **context)
        raise
    return RedirectResponse(f"/runs/{run_id}", 303)


async def _gather(request: Request, run_id: str) -> dict[str, Any]:
    wiring = wiring_of(request)
    run = await wiring.runs.read(run_id)
    end = await wiring.trails.find_end(run_id)  # before the events, because more may be added meanwhile
    trail = await read_trail(wiring.runs, run_id)
    external = await read_external_events(wiring.external_events, run_id)
    chain = await wiring.desk.suspensions.read_chain(run.suspension_id, _MAX_SUSPENSIONS)
    records, damaged = split_readable(chain)
    secrets = collect_secrets(records)
    remarks = list_remarks(await wiring.comments.list_all(run_id), records, secrets)
    return {
        "title": f"Run of {run.agent}",
        "run": run.model_copy(
            update={
                "title": secrets.scrub(run.title),
                "result": secrets.scrub_json(run.result),
                "error": secrets.scrub(run.error) if run.error is not None else None,
            }
        ),
        "run_id": run.id,
        "lines": insert_remarks(mask_lines(describe_both(trail, external.entries), secrets), remarks),
        "remarks": remarks,
        "external_cut": external.cut,
        "trail_fault": end.fault,
        "trail_cut": len(trail) >= MAX_ENTRIES,
        "given_up": bool(records) and records[-1].status is Status.FAILED,
        "damaged": damaged,
        "banner": "",
        "suspensions": await asyncio.to_thread(_list_suspensions, records),
        "suspensions_cut": bool(records) and not damaged and records[0].previous_id is not None,
    }


async def _mask_titles(request: Request, runs: Sequence[Run]) -> list[Run]:
    found = await wiring_of(request).desk.suspensions.read_page([run.suspension_id for run in runs])
    secrets = {record.id: collect_secrets([record]) for record in split_readable(found)[0]}
    return [
        run.model_copy(update={"title": secrets[run.suspension_id].scrub(run.title)})
        if run.suspension_id in secrets
        else run
        for run in runs
    ]


def _list_suspensions(records: Sequence[SuspensionRecord]) -> list[tuple[SuspensionRecord, list[_Line]]]:
    return [(record, [_line(record, item) for item in record.items]) for record in records if record.items]


def _line(record: SuspensionRecord, item: Item) -> _Line:
    return item_href(record, item), item.tool.name, summarize(find_secrets(item).args), find_item_state(record, item)


async def _find(
    request: Request, status: RunStatus | None, agent: str, skip: int
) -> tuple[list[Run], list[UnreadableRecord], int | None]:
    wiring = wiring_of(request)
    found: list[Run] = []
    damaged: list[UnreadableRecord] = []
    position = skip
    while position < skip + _MAX_SEARCHED:
        runs = await wiring.runs.list_runs(status=status, skip=position, limit=_BATCH)
        for run in runs:
            if len(found) == PAGE:
                return found, damaged, position
            position += 1
            if isinstance(run, UnreadableRecord):
                damaged.append(run)
            elif agent.casefold() in run.agent.casefold():
                found.append(run)
        if len(runs) < _BATCH:
            return found, damaged, None
    return found, damaged, position
