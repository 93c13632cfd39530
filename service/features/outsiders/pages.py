"""The pages of invitations: the form on an item's page, and what somebody outside sees behind their link.

Opening a link changes nothing. A link that nobody was sent is answered as one that waits for its code.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.problems import Problem
from sayso.core.records.decisions import DecisionAction
from sayso.core.records.proofs import OUTSIDER_PREFIX
from sayso.core.rendering.money import names_minor_unit
from sayso.core.rendering.renderers import render_call
from sayso.core.sentences.deadlines import describe_deadline
from sayso.core.text.language import _, mark
from sayso.core.transitions.deliveries import is_live
from sayso.core.transitions.outsiders import InvitationState, find_state, is_proven, may_be_asked
from sayso.errors import Conflict, InvalidInput, NotAllowed, SaysoError, TooManyRequests
from sayso.wire.outsiders import DAY_S, InviteRequest
from service.channels.base import DeliveryFailed
from service.channels.kinds import Channels
from service.edge.web.additions import ItemForm, ItemPage, ItemVisit
from service.edge.web.content import details
from service.edge.web.content.blocks import make_blocks
from service.edge.web.content.effects import make_effect
from service.edge.web.pages import render, show_again
from service.edge.web.sessions import (
    Post,
    RecordedRoute,
    SignedIn,
    process_of,
    read_form,
    read_post,
    read_reason,
    wiring_of,
)
from service.features.outsiders.inviting import FROZEN, Link, Opened, Outsiders
from service.features.outsiders.mails import PATH, hash_secret

router = APIRouter(route_class=RecordedRoute)
_PAGE = "pages/outside.html"
_SPANS_S = (3_600, 4 * 3_600, DAY_S, 3 * DAY_S, 7 * DAY_S)
_WORDS = {
    3_600: mark("1 hour"),
    4 * 3_600: mark("4 hours"),
    DAY_S: mark("1 day"),
    3 * DAY_S: mark("3 days"),
    7 * DAY_S: mark("7 days"),
}
_STATES = {
    InvitationState.OPEN: mark("open until"),
    InvitationState.DECIDED: mark("decided"),
    InvitationState.REVOKED: mark("revoked"),
    InvitationState.GUESSED: mark("closed after wrong codes"),
    InvitationState.RESOLVED: mark("no longer needed"),
    InvitationState.EXPIRED: mark("expired"),
    InvitationState.CHANGED: mark("the request has changed"),
}
_ENDS = {
    InvitationState.REVOKED: mark("This invitation was revoked."),
    InvitationState.GUESSED: mark("Too many wrong codes were entered, so this invitation is closed."),
    InvitationState.RESOLVED: mark("This no longer needs your decision."),
    InvitationState.EXPIRED: mark("This invitation has expired."),
    InvitationState.CHANGED: mark("The request has changed since you were invited."),
    FROZEN: mark("This is on hold for now. Open the link again later."),
}
_AGAIN = (InvitationState.REVOKED, InvitationState.GUESSED, InvitationState.EXPIRED, InvitationState.CHANGED)
_WRONG = mark("This code is not right, or no longer valid. Check the newest mail, or have another code sent.")


async def add_to_item(page: ItemPage) -> Mapping[str, object]:
    """Return the invitations to an item, and what the form for one more needs if its rule allows an address."""
    record, item = page.view.record, page.item
    known = [
        (invitation, state, _(_STATES[state]))
        for invitation in item.invitations
        for state in [find_state(record, item, invitation, page.now_ms)]
    ]
    allowed = item.terms.outsiders if may_be_asked(item) and is_live(record, item) else ()
    spans = [(span_s, _(_WORDS[span_s])) for span_s in _SPANS_S]
    return {"invitations": known, "outsiders": allowed, "invitation_spans": spans, "default_span": DAY_S}


async def invite(visit: ItemVisit) -> None:
    """Invite an address; a form sent twice invites once."""
    post, span = visit.post, visit.post.get("expires", "")
    if span not in [str(span_s) for span_s in _SPANS_S]:
        raise InvalidInput(_("Choose how long the invitation is valid."))
    sent = InviteRequest.model_construct(
        address=post.get("address", "")[:300],
        digest=post.get("digest", ""),
        note=post.get("note", "").replace("\r\n", "\n"),
        expires_in_s=int(span),
    )
    operations, key = wiring_of(visit.request).feature(Outsiders), f"web {visit.item_id} {post.get('nonce', '')[:60]}"
    place = visit.suspension_id, visit.item_id
    await operations.invite(_channels(visit.request), place, sent, visit.by, key)


FORM = ItemForm("outside", ("address", "note", "expires"), invite)


@router.post("/items/{suspension_id}/{item_id}/uninvite")
async def uninvite(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """End an invitation."""
    post = await read_post(request, visitor)
    by, which = visitor.principal.reviewer("web"), post.get("which", "")
    await wiring_of(request).desk.revoke_invitation(suspension_id, item_id, which, by)
    return RedirectResponse(f"/items/{suspension_id}/{item_id}#outside", 303)


@router.get(PATH)
async def open_link(request: Request, suspension_id: str, item_id: str, token: str) -> Response:
    """Offer to mail a code, or say why the link decides nothing. This changes nothing."""
    link = Link(suspension_id, item_id, token)
    return await _show(request, link, step="link")


@router.post(PATH)
async def act(request: Request, suspension_id: str, item_id: str, token: str) -> Response:
    """Mail a code, take one, or record the decision."""
    link, post = Link(suspension_id, item_id, token), await read_form(request)
    step = {"send": _send, "enter": _enter, "decide": _decide}.get(post.get("act", ""))
    if step is None:
        raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
    return await step(request, link, post)


async def _send(request: Request, link: Link, _post: Post) -> Response:
    try:
        await _operations(request).mail_code(_channels(request), link)
    except DeliveryFailed:
        sentence = _("The code could not be mailed. Try again in a minute.")
        return await _show(request, link, step="link", code=503, sentence=sentence)
    except TooManyRequests as error:
        sentence = _("A code was mailed just now, or too many were. Wait a minute before you ask for another.")
        await _refuse(request, link, error, step="code", sentence=sentence)
        raise
    except Conflict as error:
        await _refuse(request, link, error, step="link")
        raise
    return await _show(request, link, step="code")


async def _enter(request: Request, link: Link, post: Post) -> Response:
    try:
        proof = await _operations(request).enter_code(link, post.get("code", "")[:40])
    except Conflict as error:
        await _refuse(request, link, error, step="link")
        raise
    if proof:
        return await _show(request, link, step="item", proof=proof)
    return await _show(request, link, step="code", code=422, sentence=_(_WRONG))


async def _decide(request: Request, link: Link, post: Post) -> Response:
    proof, reason = post.get("proof", "")[:100], read_reason(post)
    try:
        await _operations(request).decide(link, post.get("action", ""), reason, proof)
    except SaysoError as error:
        late = isinstance(error, NotAllowed)
        sentence = _("The code was entered too long ago. Ask for another one.") if late else ""
        sentence = _("Write why you deny.") if isinstance(error, InvalidInput) else sentence
        await _refuse(request, link, error, step="item", proof=proof, reason=reason, sentence=sentence)
        raise
    return RedirectResponse(request.url.path, 303)


async def _refuse(request: Request, link: Link, error: SaysoError, *, step: str, **context: Any) -> None:
    """Show the refusal on the page of the link, or that the link has ended."""
    opened = await _operations(request).find(link)
    context = await _gather(request, opened, step, **context)

    def again(problem: Problem) -> Response:
        ended = context["step"] == "end"
        shown = {**context, "sentence": "" if ended else context.get("sentence") or _(error.message)}
        return render(request, _PAGE, code=problem.status, **shown)

    show_again(request, again)


async def _show(request: Request, link: Link, *, step: str, code: int = 200, **context: Any) -> Response:
    opened = await _operations(request).find(link)
    context = await _gather(request, opened, step, **context)
    return await asyncio.to_thread(partial(render, request, _PAGE, code=code, **context))


async def _gather(
    request: Request, opened: Opened | None, step: str, *, proof: str = "", reason: str = "", **context: Any
) -> dict[str, Any]:
    """Return what the page shows: of an item only with a proof, and nothing of a link that nobody was sent."""
    known: dict[str, Any] = {"title": _("Your decision"), "step": step, "proof": "", "reason": reason, **context}
    if opened is None:
        return known | {"step": "link" if step == "item" else step}
    if opened.state != InvitationState.OPEN:
        return known | {"step": "end", **_describe_end(opened)}
    if step != "item" or not is_proven(opened.invitation, hash_secret(proof), opened.now_ms):
        return known | {"step": "link" if step == "item" else step}
    definition = await process_of(request).wiring.runs.definition(opened.item.tool.definition)
    return known | {"proof": proof, **await asyncio.to_thread(_describe, opened, definition)}


def _describe(opened: Opened, definition: Any) -> dict[str, Any]:
    """Return the one item, masked as its rule says, and who invited."""
    schema = definition.parameters if definition is not None else None
    view = details.look_at(opened.record, opened.item, definition, shown=False)
    item, minor = view.item, schema is not None and names_minor_unit(schema)
    call = render_call(item.tool.name, item.tool.args, schema)
    return {
        "item": item,
        "agent": view.record.run.agent,
        "view": call,
        "blocks": make_blocks(call, schema, minor=minor),
        "effect": make_effect(item),
        "deadline": describe_deadline(view.record, item),
        "invitation": opened.invitation,
        "now_ms": opened.now_ms,
        "has_secrets": view.has_secrets,
    }


def _describe_end(opened: Opened) -> dict[str, str]:
    """Return why a link decides nothing, and what to do."""
    invitation = opened.invitation
    if opened.state == InvitationState.DECIDED:
        made = [
            decision for decision in opened.item.decisions if decision.by.id == OUTSIDER_PREFIX + invitation.address
        ]
        soon = opened.item.undoable.decision if opened.item.undoable is not None else None
        action = made[-1].action if made else soon.action if soon is not None else None
        said = _("You denied this.") if action is DecisionAction.DENY else _("You approved this.")
        return {"end": said if action is not None else _("You have decided."), "advice": _("You can close this page.")}
    advice = ""
    if opened.state in _AGAIN:
        advice = _("Ask %(who)s for another invitation, if you should still decide.", who=invitation.by)
    elif opened.state == InvitationState.RESOLVED:
        advice = _("You can close this page.")
    return {"end": _(_ENDS[opened.state]), "advice": advice}


def _operations(request: Request) -> Outsiders:
    return process_of(request).wiring.feature(Outsiders)


def _channels(request: Request) -> Channels:
    channels: Channels = request.app.state.channels
    return channels
