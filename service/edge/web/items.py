"""The page of one item: the call, the reason, the deadline, and the forms to decide, claim and ask."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.precedents import Measures, find_unusual
from sayso.core.problems import Problem
from sayso.core.records.decisions import Actor, DecisionRequest, Shown
from sayso.core.records.events import TrailEntry
from sayso.core.records.items import Answer, Item, find_claim, find_open_inquiry
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.records.undoing import is_offer
from sayso.core.rendering.money import names_minor_unit
from sayso.core.rendering.renderers import render_call
from sayso.core.sentences import deadlines
from sayso.core.sentences import items as sentences
from sayso.core.sentences.deliveries import describe_delivery, describe_silence
from sayso.core.sentences.outcomes import (
    describe_failure,
    describe_outcome,
    describe_outcome_when,
    describe_undecided,
)
from sayso.core.sentences.plans import describe_plan
from sayso.core.sentences.rules import describe_repetition, list_remembered
from sayso.core.text.language import _
from sayso.core.text.summaries import summarize
from sayso.core.transitions.deciding import find_item
from sayso.core.transitions.deliveries import is_live
from sayso.core.transitions.states import ItemState, find_item_state
from sayso.core.transitions.superseding import is_superseded
from sayso.errors import InvalidInput, SaysoError
from service.core.operations.masking import find_secrets, note_seen
from service.core.operations.open_items import count_mine
from service.core.store.channels import ChannelNotes
from service.core.store.precedents import Precedents, kind_of
from service.core.store.runs.external_events import ExternalEvents
from service.core.wiring import Wiring
from service.edge.web.additions import DecisionForm, DecisionPart, ItemForm, ItemPage, ItemVisit, additions_of
from service.edge.web.content import details, edits, versions
from service.edge.web.content.blocks import make_blocks
from service.edge.web.content.details import SHOW
from service.edge.web.content.edits import describe_precedents
from service.edge.web.content.effects import make_effect
from service.edge.web.content.facts import MAX_ENTRIES, read_trail
from service.edge.web.content.runs import describe_both, read_external_events
from service.edge.web.content.stages import list_stages, write_banner, write_refusal
from service.edge.web.pages import render, show, show_again
from service.edge.web.sessions import (
    REFRESH_HEADER,
    Post,
    RecordedRoute,
    SignedIn,
    Visitor,
    check_session,
    wiring_of,
)
from service.edge.web.sign_ins import receive_form
from service.forms.answers import Forms, change_forms, make_forms, mark_problems, read_answer, refill
from service.forms.controls import normalize
from service.forms.fields import is_change

router = APIRouter(route_class=RecordedRoute)


@router.get("/items/{suspension_id}/{item_id}")
async def read(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Show the item."""
    visit = ItemVisit(request, visitor, suspension_id, item_id)
    context = await _gather(visit)
    ahead = "prefetch" in request.headers.get("sec-purpose", "")
    by_itself = "quiet" in request.query_params  # it follows a decision beside the inbox; see split.js
    if request.method == "GET" and not ahead and not by_itself and REFRESH_HEADER not in request.headers:
        record: SuspensionRecord = context["record"]
        if await note_seen(wiring_of(request), record, visitor.principal, "web", item_id) is not record:
            context = await _gather(visit)
    return await show(request, visitor, "pages/item.html", **context)


@router.post("/items/{suspension_id}/{item_id}")
async def decide(request: Request, suspension_id: str, item_id: str) -> Response:
    """Record a decision, or extend the deadline; a repeated form counts once."""
    post, visitor = await receive_form(request)
    visit = ItemVisit(request, visitor, suspension_id, item_id, post)
    form = _find_form(visit)
    try:
        check_session(post, visitor)
        if form is not None:
            await form.send(visit)
            return RedirectResponse(f"{request.url.path}#{form.name}", 303)
        if (shown := await _show_step(visit)) is not None:
            return shown
        await (_extend if "until" in post else _decide)(visit)
    except SaysoError as error:
        await _show_again(visit, error)
        raise
    if "until" in post:
        forms: Forms = (await _gather(visit))["forms"]
        typed = refill(forms, post)
        if typed != forms._replace(chosen=typed.chosen):  # the form also has an unfinished decision
            return await _show(visit, forms=typed, editing=typed.chosen == Answer.EDIT)
    return RedirectResponse(request.url.path, 303)


async def _show_step(visit: ItemVisit) -> Response | None:
    """Return the page after a step that records nothing; None for a form that decides."""
    post, step = visit.post, edits.find_step(visit.post)
    if post.get(SHOW) == "only":
        return await _show(visit)
    for part in _list_parts(visit.request):
        if part.asks(post):
            item, decision, _shown = await _read_decision(visit)
            return await _show(visit, **await part.preview(_make_form(visit, item, decision)))
    if step == "ask":
        return await _show(visit, sure=True)
    return await _show_edit(visit, step) if step else None


async def _show(visit: ItemVisit, **changes: object) -> Response:
    return await show(visit.request, visit.visitor, "pages/item.html", **{**await _gather(visit), **changes})


def _find_form(visit: ItemVisit) -> ItemForm | None:
    """Return the form beside the decision that was sent, if it was none with a decision."""
    forms = (addition.form for addition in additions_of(visit.request) if addition.form is not None)
    return next((form for form in forms if form.name == visit.post.get("part")), None)


async def _extend(visit: ItemVisit) -> None:
    desk, until = wiring_of(visit.request).desk, visit.post["until"]
    suspension = await desk.suspensions.read(visit.suspension_id)
    item = find_item(suspension.record, visit.item_id)
    waits = item.open and suspension.record.status is Status.PENDING
    if waits and until == str(item.terms.deadline_at_ms):
        return  # the form was sent twice
    if not (until.isascii() and until.isdigit() and len(until) <= 15):
        raise InvalidInput(_("Choose one of the new deadlines."))
    if waits and not item.terms.deadline_at_ms < int(until) <= item.terms.extend_until_ms:
        raise InvalidInput(_("The deadline cannot move to that time, or it has moved since. Choose again."))
    await desk.extend(visit.suspension_id, visit.item_id, int(until), visit.by)


async def _show_edit(visit: ItemVisit, step: str) -> Response:
    """Show what an edit changes and what the rules say of it, or its fields again. Records nothing."""
    review = None
    if step in edits.REVIEWS:
        item, decision, _shown = await _read_decision(visit)
        about = (wiring_of(visit.request), visit.suspension_id, item, decision, visit.by)
        review = await edits.review_edit(*about, ask=step == edits.PREVIEW)
    known: Forms = (await _gather(visit))["forms"]
    if is_change(step):
        forms = await asyncio.to_thread(change_forms, known, visit.post, step)
    else:
        forms = await asyncio.to_thread(refill, known, visit.post)
    edit: dict[str, object] = {"forms": forms, "editing": forms.chosen == Answer.EDIT}
    edit["review"] = review if Answer.EDIT in forms.allowed else None
    if review is not None:
        edit["display"] = edits.compare_display((*review.changes, *review.same)).hash
    return await _show(visit, **edit)


def _make_form(visit: ItemVisit, item: Item, decision: DecisionRequest) -> DecisionForm:
    wiring, principal = wiring_of(visit.request), visit.visitor.principal
    return DecisionForm(wiring, visit.suspension_id, item, decision, principal, visit.post)


def _list_parts(request: Request) -> list[DecisionPart]:
    return [addition.decision for addition in additions_of(request) if addition.decision is not None]


async def _decide(visit: ItemVisit) -> None:
    item, decision, shown = await _read_decision(visit)
    # A reviewer decides once per digest, and again after a decision was taken out; a repeated form is the same request.
    turn, replaced = (visit.post.get(name, "")[:60] for name in ("turn", "replaced"))
    key = "-".join(filter(None, ("web", visit.item_id, decision.digest, turn, replaced)))
    for part in _list_parts(visit.request):
        decision = await part.complete(_make_form(visit, item, decision))
    desk = wiring_of(visit.request).desk
    await desk.decide(visit.suspension_id, visit.item_id, decision, visit.by, key, shown=shown, replaced=replaced)


async def read_form(request: Request, visitor: Visitor, suspension_id: str, item_id: str, post: Post) -> DecisionForm:
    """Return the decision of an item's form; raises as sending it does."""
    visit = ItemVisit(request, visitor, suspension_id, item_id, post)
    item, decision, _shown = await _read_decision(visit)
    return _make_form(visit, item, decision)


async def _read_decision(visit: ItemVisit) -> tuple[Item, DecisionRequest, Shown | None]:
    wiring, post = wiring_of(visit.request), visit.post
    suspension = await wiring.desk.suspensions.read(visit.suspension_id)
    item = find_item(suspension.record, visit.item_id)
    definition = await wiring.runs.definition(item.tool.definition)
    view = await asyncio.to_thread(details.look_at, suspension.record, item, definition, shown=SHOW in post)
    await details.check_shown(wiring.part(ChannelNotes), visit.visitor.name, view, post.get("answer", ""))
    limit_bytes = wiring.settings.body_limit_bytes
    decision = await asyncio.to_thread(
        lambda: read_answer(make_forms(item, definition, nested=True), post, limit_bytes)
    )
    if versions.VERSION in post:
        decision = decision.model_copy(update={"args": versions.find_version(item, post[versions.VERSION]).args})
    shown = await asyncio.to_thread(edits.read_shown, view, definition, decision.args, post)
    return item, decision, shown


async def _show_again(visit: ItemVisit, error: SaysoError) -> None:
    context, form = await _gather(visit), _find_form(visit)
    forms: Forms = context["forms"]
    record: SuspensionRecord = context["record"]
    item: Item = context["item"]
    if form is None:
        forms = await asyncio.to_thread(lambda: mark_problems(refill(forms, visit.post), error, item.target_arg))
        context |= {"forms": forms, "editing": context["editing"] or visit.post.get("answer") == Answer.EDIT}
    else:
        typed = {name: normalize(visit.post.get(name, "")) for name in form.fields}
        context["refused"] = {"part": form.name, "typed": typed, "text": write_refusal(error, record, item)}
    pending = await count_mine(wiring_of(visit.request), visit.by)

    def again(problem: Problem) -> Response:
        context["banner"] = write_banner(error, problem, record, item, forms) if form is None else None
        code, visitor = problem.status, visit.visitor
        return render(visit.request, "pages/item.html", code=code, visitor=visitor, pending=pending, **context)

    show_again(visit.request, again)


async def _follow(wiring: Wiring, run_id: str) -> dict[str, Any]:
    """Return the run, and the mark of its changes before it is read."""
    seen = await wiring.watch.mark(run_id)
    return {"run": await wiring.runs.read(run_id), "run_id": run_id, "run_seen": seen}


async def _gather(visit: ItemVisit) -> dict[str, Any]:
    """Return what the page shows. Secrets are masked unless the form asks for them, which is logged."""
    request, post, wiring = visit.request, visit.post, wiring_of(visit.request)
    suspension = await wiring.desk.suspensions.read(visit.suspension_id)
    record, item = suspension.record, find_item(suspension.record, visit.item_id)
    followed = await _follow(wiring, record.run.id)
    end, trail, external, definition, earlier = await asyncio.gather(
        wiring.trails.find_end(record.run.id),
        read_trail(wiring.runs, record.run.id),
        read_external_events(wiring.part(ExternalEvents), record.run.id, until_ms=record.created_at_ms),
        wiring.runs.definition(item.tool.definition),
        wiring.part(Precedents).find_all(kind_of(record, item.tool.name)),
    )
    view = await asyncio.to_thread(details.look_at, record, item, definition, shown=SHOW in post)
    if view.shown:
        await details.note_shown(wiring.part(ChannelNotes), visit.visitor.name, record, item)
    forms = await asyncio.to_thread(view.make_forms, definition)
    listed = versions.list_versions(item) if view.shown or not view.has_secrets else []
    chosen = post.get(versions.VERSION) or request.query_params.get(versions.VERSION)
    version = versions.choose_version(record, item, view.item, visit.by, listed, chosen)
    lines = view.mask_lines(describe_both(trail, external.entries))
    page = ItemPage(wiring, visit.visitor.name, item, view, lines, post, suspension.now_ms)
    freezes, fault, precedents, added = await asyncio.gather(
        wiring.freezes.known(),
        wiring.trails.find_slice_fault(record.run.id, trail),
        describe_precedents(wiring, record, item, visit.visitor.name, definition, view.secrets),
        asyncio.gather(*(part.item(page) for part in additions_of(request) if part.item is not None)),
    )
    return {
        "title": item.tool.name,
        "now_ms": suspension.now_ms,
        "record": view.record,
        "item": view.item,
        "has_secrets": view.has_secrets,
        "shown": view.shown,
        "hold": deadlines.describe_hold(record, item, freezes, suspension.now_ms),
        **followed,
        "definition": definition,
        "external_cut": external.cut,
        "trail_fault": end.fault or fault,
        "forms": forms,
        "editing": request.query_params.get("answer") == Answer.EDIT and Answer.EDIT in forms.allowed,
        "lines": lines,
        **_describe_trail(record, item, view, definition, trail),
        **await asyncio.to_thread(_describe, record, item, visit.by, suspension.now_ms, version),
        **await asyncio.to_thread(_describe_args, view.record, view.item, version, definition, earlier),
        **await asyncio.to_thread(
            versions.describe_versions, view.record, view.item, visit.by, listed, version, definition, earlier
        ),
        **precedents,
        **{name: value for part in added for name, value in part.items()},
    }


def _describe_trail(
    record: SuspensionRecord,
    item: Item,
    view: details.ItemView,
    definition: ToolDefinition | None,
    trail: Sequence[TrailEntry],
) -> dict[str, object]:
    result = view.mask_result(details.find_result(item, record.id, trail))
    in_doubt, text = find_item_state(record, item) is ItemState.IN_DOUBT, details.find_model_text(record.id, trail)
    return {
        "doubt_href": details.find_doubt(item, record.id, trail) if in_doubt else "",
        "why": details.find_why(item, record.id, trail),
        "claims": details.find_claims(view.record, definition, view.secrets.scrub(text)),
        "trail_cut": len(trail) >= MAX_ENTRIES,
        "result": result,
        "failure": view.secrets.scrub(describe_failure(record, item, result.error if result is not None else "")),
        "stages": list_stages(view.record, view.item, result),
        "undecided": describe_undecided(record, item),
        **_link_repeated(record, item),
    }


def _link_repeated(record: SuspensionRecord, item: Item) -> dict[str, str]:
    """Return the pages of the items that replace this one, and that it replaces; empty without one."""
    replaces = record.resume.mode == "poll" and record.previous_id is not None and item.doubt is None
    return {
        "asked_again": f"/items/{record.following_id}/{item.item_id}" if is_superseded(record) else "",
        "asked_before": f"/items/{record.previous_id}/{item.item_id}" if replaces else "",
    }


def _describe(
    record: SuspensionRecord, item: Item, visitor: Actor, now_ms: int, version: versions.Version | None
) -> dict[str, object]:
    return {
        "review": None,
        "banner": None,
        "refused": None,
        "sure": False,
        "item_state": find_item_state(record, item),
        "extensions": details.list_extensions(item) if record.status is Status.PENDING else [],
        "takes_answers": item.open and record.status is Status.PENDING,
        "fallback": deadlines.describe_fallback(record, item),
        "deadline": deadlines.describe_deadline(record, item),
        "next_step": deadlines.describe_next_step(record, item),
        "number": sentences.describe_number(record, item),
        "denial": sentences.describe_denial(record, item) if Answer.DENY in item.allowed else "",
        "denial_name": sentences.name_denial(record, item),
        "stays": is_offer(item) and item.outcome is not None and not item.outcome.may_run,
        "requester": sentences.list_requesters(record, item)[0],
        "reviewers": sentences.describe_reviewers(record, item),
        "quorum": sentences.describe_quorum(item),
        "confirmation": sentences.describe_confirmation(item),
        "confirming": versions.find_digest(record, item, visitor),
        "plan": describe_plan(item.mandate) if item.mandate is not None else None,
        "resemblance": sentences.describe_resemblance(item.resembles),
        "origins": sentences.describe_origins(record.run, record.progress),
        "deadlock": sentences.describe_deadlock(record, item),
        "deliveries": [(delivery.state, describe_delivery(delivery)) for delivery in item.deliveries],
        "silence": describe_silence(item.deliveries, live=is_live(record, item)),
        "claim": find_claim(item.claim, now_ms) if item.open else None,
        "waits_for_answer": find_open_inquiry(item.inquiries) is not None,
        "outcome": describe_outcome(item),
        "outcome_when": describe_outcome_when(item),
        **versions.describe_right(record, item, visitor, version),
    }


def _describe_args(
    record: SuspensionRecord,
    item: Item,
    version: versions.Version | None,
    definition: ToolDefinition | None,
    earlier: Sequence[Measures],
) -> dict[str, object]:
    """Return what quotes arguments, of a record whose secrets are masked."""
    schema = definition.parameters if definition is not None else None
    decided = item.outcome.args if item.outcome is not None else None
    args = version.args if version is not None else item.tool.args
    view, minor = render_call(item.tool.name, args, schema), schema is not None and names_minor_unit(schema)
    compare = partial(details.compare_args, item.tool.args, minor=minor, schema=schema)
    return {
        "blocks": (blocks := make_blocks(view, schema, minor=minor)),
        "wanted": _("may already have run") if item.doubt is not None else sentences.describe_wanted(item),
        "effect": make_effect(item, version.args if version is not None else None),
        "display": edits.make_display(item, version, schema, blocks).hash,
        "remembered": list_remembered(item),
        "repetition": describe_repetition(item),
        "minor": minor,
        "staged": details.list_staged(item, minor=minor, schema=schema),
        "version_changes": compare(args) if version is not None else [],
        "view": replace(view, flags=(*view.flags, *find_unusual(args, earlier))),
        "differences": details.list_differences(item, minor=minor, schema=schema),
        "changes": compare(decided) if decided is not None else [],
        "decisions": details.list_decisions(item, minor=minor, schema=schema),
        "siblings": [
            (other, summarize(find_secrets(other).args), find_item_state(record, other))
            for other in record.items
            if other.item_id != item.item_id
        ],
    }
