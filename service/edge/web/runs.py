"""The pages of runs: the list, one run, its cancellation, and the erasure of its contents."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import now_ms
from sayso.core.records.decisions import Actor
from sayso.core.records.suspensions import RunStatus, Status, SuspensionRecord
from sayso.core.sentences.outcomes import describe_state
from sayso.core.text.language import _
from sayso.core.transitions.decision_checks import check_canceller
from sayso.errors import Conflict, InvalidInput, NotAllowed, NotFound, SaysoError
from service.core.operations.masking import collect_secrets
from service.core.operations.open_items import count_mine
from service.core.operations.runs import erase_run
from service.core.store.runs.external_events import ExternalEvents
from service.core.store.runs.runs import Run
from service.core.store.suspensions.reading import UnreadableRecord, describe_unreadable, split_readable
from service.edge.web.additions import RunPage, additions_of
from service.edge.web.content import runs as content
from service.edge.web.content.cards import item_href
from service.edge.web.content.details import mask_lines
from service.edge.web.content.facts import MAX_ENTRIES, read_trail
from service.edge.web.content.sorting import Keys, read_sorting
from service.edge.web.content.timeline import VOICES
from service.edge.web.pages import show, show_page_again
from service.edge.web.sessions import (
    EarlierSignIn,
    RecordedRoute,
    SignedIn,
    Visitor,
    check_session,
    describe_refusal,
    read_post,
    read_reason,
    wiring_of,
)
from service.edge.web.sign_ins import receive_form


async def find_place(request: Request, wanted: str) -> str | None:
    """Return the path of the run or suspension with this ID; None if there is none, or if this is no ID."""
    wanted = wanted.strip()
    if not wanted.startswith(("run_", "sus_")):
        return None
    wiring = wiring_of(request)
    try:
        return f"/runs/{(await wiring.runs.read(wanted)).id}"
    except NotFound:
        records = await wiring.desk.suspensions.read_page([wanted])
    if not records:
        return None
    record = records[0]
    if isinstance(record, UnreadableRecord):
        raise describe_unreadable(record)
    return item_href(record, record.items[0]) if record.items else f"/runs/{record.run.id}"


PAGE = 25
MOST_SEARCHED = 1000
_SORTED_BY: Keys[Run] = {
    "run": lambda run: (run.title or run.agent).casefold(),
    "agent": lambda run: run.agent.casefold(),
    "by": lambda run: run.owner.casefold(),
    "state": lambda run: run.state,
    "started": lambda run: run.created_at_ms,
}

router = APIRouter(route_class=RecordedRoute)


@router.get("/runs")
async def list_runs(
    request: Request,
    visitor: SignedIn,
    status: Annotated[str, Query(max_length=20)] = "",
    agent: Annotated[str, Query(max_length=200)] = "",
    skip: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    kept: Annotated[str, Query(max_length=60 * PAGE)] = "",
    sort: Annotated[str, Query(max_length=20)] = "",
    place: Annotated[int, Query(ge=0, le=MOST_SEARCHED)] = 0,
) -> Response:
    """Show the runs, newest first. What the search found before, the runs in `kept`, stays above.

    With `sort`, show the latest ones sorted by that column, from the row `place` on.
    """
    wanted = RunStatus(status) if status in list(RunStatus) else None
    ids = kept.split(",")[:PAGE] if kept else []
    sorting, sorted_of, onward = read_sorting(sort, _SORTED_BY), 0, None
    if sorting:
        every, damaged, following = await _find(request, wanted, agent.strip(), 0, [], MOST_SEARCHED)
        runs, sorted_of = sorting.sort(every, _SORTED_BY)[place : place + PAGE], len(every)
        onward = place + PAGE if sorted_of > place + PAGE else None
    else:
        runs, damaged, following = await _find(request, wanted, agent.strip(), skip, ids)
    records = await wiring_of(request).desk.suspensions.read_page([run.suspension_id for run in runs])
    secrets = {record.id: collect_secrets([record]) for record in split_readable(records)[0]}
    return await show(
        request,
        visitor,
        "pages/runs.html",
        title=_("Runs"),
        runs=[
            run.model_copy(update={"title": secrets[run.suspension_id].scrub(run.title)})
            if run.suspension_id in secrets
            else run
            for run in runs
        ],
        damaged=damaged,
        statuses=list(RunStatus),
        status=wanted or "",
        agent=agent.strip(),
        skip=skip,
        following=following if len(runs) >= PAGE and not sorting else None,
        further=following if len(runs) < PAGE and not sorting else None,
        sorting=sorting,
        place=place,
        onward=onward,
        cut=sorted_of if following is not None else 0,
        kept=",".join(run.id for run in runs),
        archived=await wiring_of(request).store.archive.find_last_day(),
    )


@router.get("/runs/{run_id}")
async def read(
    request: Request, visitor: SignedIn, run_id: str, voice: Annotated[str, Query(max_length=20)] = ""
) -> Response:
    """Show one run: its state, its items, its calls and result, and its timeline, of one `voice` if given."""
    return await show(request, visitor, "pages/run.html", **await _gather(request, visitor, run_id, voice))


@router.post("/runs/{run_id}")
async def revive(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Retry a run that the workers gave up."""
    await read_post(request, visitor)
    wiring = wiring_of(request)
    run = await wiring.runs.read(run_id)
    try:
        await wiring.desk.revive(run.suspension_id, visitor.principal.actor("web"))
    except Conflict:
        context = await _gather(request, visitor, run_id)
        context["banner"] = f"Only a failed run can be retried. This run is {describe_state(context['run'].status)}."
        pending = await count_mine(wiring, visitor.principal.reviewer("web"))
        show_page_again(request, "pages/run.html", visitor=visitor, pending=pending, **context)
        raise
    return RedirectResponse(f"/runs/{run_id}", 303)


@router.get("/runs/{run_id}/cancel")
async def confirm_cancel(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Ask the visitor to confirm the cancellation."""
    run = await wiring_of(request).runs.read(run_id)
    if run.status.ended:
        return RedirectResponse(f"/runs/{run.id}", 303)
    return await show(request, visitor, "pages/cancel.html", title=_("Cancel run"), run=run, reason="")


@router.post("/runs/{run_id}/cancel")
async def cancel(request: Request, run_id: str) -> Response:
    """Cancel the run."""
    post, visitor = await receive_form(request)
    wiring, reason = wiring_of(request), read_reason(post)
    try:
        check_session(post, visitor)
        by = visitor.principal.reviewer("web")
        await wiring.desk.cancel(run_id, by, reason or None, is_admin=visitor.rights.has("cancel_any_run"))
    except (Conflict, EarlierSignIn) as error:
        await _ask_again(request, visitor, "pages/cancel.html", _("Cancel run"), run_id, reason, error)
        raise
    return RedirectResponse(f"/runs/{run_id}", 303)


@router.get("/runs/{run_id}/erase")
async def confirm_erasure(request: Request, visitor: SignedIn, run_id: str) -> Response:
    """Ask an admin to confirm the erasure of an ended run's contents."""
    run = await wiring_of(request).runs.read(run_id)
    if run.erasure is not None or not run.status.ended:
        return RedirectResponse(f"/runs/{run.id}", 303)
    return await show(request, visitor, "pages/erase.html", title=_("Erase the contents"), run=run, reason="")


@router.post("/runs/{run_id}/erase")
async def erase(request: Request, run_id: str) -> Response:
    """Erase the contents of an ended run."""
    post, visitor = await receive_form(request)
    wiring, reason = wiring_of(request), read_reason(post)
    try:
        check_session(post, visitor)
        await erase_run(wiring, run_id, visitor.principal.actor("web"), reason)
    except (Conflict, InvalidInput, EarlierSignIn) as error:
        await _ask_again(request, visitor, "pages/erase.html", _("Erase the contents"), run_id, reason, error)
        raise
    return RedirectResponse(f"/runs/{run_id}", 303)


async def _ask_again(
    request: Request, visitor: Visitor, page: str, title: str, run_id: str, reason: str, error: SaysoError
) -> None:
    run, sentence = await wiring_of(request).runs.read(run_id), describe_refusal(error)
    show_page_again(request, page, visitor=visitor, title=title, run=run, sentence=sentence, reason=reason)


async def _gather(request: Request, visitor: Visitor, run_id: str, voice: str = "") -> dict[str, Any]:
    wiring = wiring_of(request)
    run = await wiring.runs.read(run_id)
    run_seen = await wiring.watch.mark(run_id)
    end = await wiring.trails.find_end(run_id)  # before the events, because more may be added meanwhile
    trail = await read_trail(wiring.runs, run_id)
    external = await content.read_external_events(wiring.part(ExternalEvents), run_id)
    records, damaged = split_readable(await wiring.desk.suspensions.read_chain(run.suspension_id, 50))
    secrets = collect_secrets(records)
    added: dict[str, Any] = {"lines": mask_lines(content.describe_both(trail, external.entries), secrets)}
    reviewer = visitor.principal.reviewer("web")
    for addition in additions_of(request):
        page = RunPage(wiring, run_id, records, secrets, added["lines"], reviewer)
        added |= await addition.run(page) if addition.run is not None else {}
    result, freezes = secrets.scrub_json(run.result), await wiring.freezes.known()
    definitions = await wiring.runs.find_definitions(records)
    return {
        "title": _("Run of %(agent)s", agent=run.agent),
        "run": run.model_copy(
            update={
                "title": secrets.scrub(run.title),
                "result": result,
                "error": secrets.scrub(run.error) if run.error is not None else None,
            }
        ),
        "run_id": run.id,
        "run_seen": run_seen,
        "voices": VOICES,
        "voice": voice if voice in VOICES else "",
        **added,
        "lines": [line for line in added["lines"] if voice not in VOICES or line.voice == voice],
        "turns": content.mask_turns(content.list_turns(trail, records), secrets),
        "result": await asyncio.to_thread(content.render_result, result),
        "external_cut": external.cut,
        "trail_fault": end.fault or await wiring.trails.find_fault(run_id),
        "trail_cut": len(trail) >= MAX_ENTRIES,
        "given_up": bool(records) and records[-1].status is Status.FAILED,
        "damaged": damaged,
        "may_cancel": may_cancel(records[-1:], reviewer, is_admin=visitor.rights.has("cancel_any_run")),
        "banner": "",
        "suspensions": await asyncio.to_thread(content.list_rows, records, reviewer, freezes, now_ms(), definitions),
        "suspensions_cut": bool(records) and not damaged and records[0].previous_id is not None,
    }


def may_cancel(latest: Sequence[SuspensionRecord], by: Actor, *, is_admin: bool) -> bool:
    """Return whether this person may cancel a run, by its latest suspension; without one the desk decides."""
    try:
        for record in latest:
            check_canceller(record, by, is_admin=is_admin)
    except NotAllowed:
        return False
    return True


async def _find(
    request: Request, status: RunStatus | None, agent: str, skip: int, kept: list[str], most: int = PAGE
) -> tuple[list[Run], list[UnreadableRecord], int | None]:
    """Return up to `most` runs, those in `kept` that still fit first, its damaged ones, and where the next begins."""
    wiring = wiring_of(request)
    page = [run for run in await wiring.runs.read_many(kept) if isinstance(run, Run) and status in (None, run.status)]
    damaged: list[UnreadableRecord] = []
    position = skip
    while position < skip + MOST_SEARCHED:
        limit = min(100, skip + MOST_SEARCHED - position)
        runs = await wiring.runs.list_runs(status=status, skip=position, limit=limit)
        for run in runs:
            if len(page) >= most:
                return page, damaged, position
            position += 1
            if isinstance(run, UnreadableRecord):
                damaged.append(run)
            elif agent.casefold() in run.agent.casefold() and run.id not in kept:
                page.append(run)
        if len(runs) < limit:
            return page, damaged, None
    return page, damaged, position
