"""Routes and the page form of forwards: a reviewer asks somebody else to decide an item."""

import asyncio
from hashlib import sha256

from fastapi import APIRouter
from pydantic import Field, ValidationError

from sayso.core.records.decisions import DIGEST_PATTERN, LONGEST_FORWARD, Actor, ActorKind, ForwardRequest
from sayso.core.records.terms import GROUP_PREFIX, group_of
from sayso.core.sentences.deliveries import describe_forward
from sayso.core.text.language import _
from sayso.errors import InvalidInput, NotFound
from sayso.wire.models import RequestBody
from sayso.wire.suspensions import SuspensionView
from service.core.auth.reviewers import NOBODY, describe_actor
from service.core.store.suspensions.saving import Saved
from service.core.wiring import Wiring
from service.edge.api.dependencies import IdempotencyKey, ItemId, Parts, Person, SuspensionId
from service.edge.api.routes import SignedInRoute
from service.edge.api.suspensions import view_suspension
from service.edge.http.openapi import WRITES
from service.edge.web.additions import ItemForm, ItemPage, ItemVisit
from service.edge.web.sessions import wiring_of

forwards = APIRouter(prefix="/suspensions", tags=["suspensions"], route_class=SignedInRoute)

MOST_SUGGESTED = 200  # names that the form suggests; others can be typed


class ForwardBody(RequestBody):
    """Who else is asked to decide, and why."""

    to: str = Field(min_length=1, max_length=100, examples=["group:finance"], description="A reviewer or group:NAME.")
    digest: str = Field(pattern=DIGEST_PATTERN, description="The digest of the item as you saw it.")
    note: str = Field(default="", max_length=LONGEST_FORWARD, description="Why; the agent does not see it.")


@forwards.post("/{suspension_id}/items/{item_id}/forward", operation_id="forwardItem", responses=WRITES)
async def forward_item(
    suspension_id: SuspensionId, item_id: ItemId, body: ForwardBody, caller: Person, parts: Parts, key: IdempotencyKey
) -> SuspensionView:
    """Ask another reviewer or a group to decide an item. They alone are asked then; all who may decide still may.

    Deadline and fallback stay, and later escalations join. An item can be forwarded 10 times; the last one counts.
    """
    request = ForwardRequest(**body.model_dump())
    saved = await _forward(parts, suspension_id, item_id, request, caller.reviewer("api"), key)
    return view_suspension(saved.record, await parts.freezes.in_force())


async def _send(visit: ItemVisit) -> None:
    """Ask somebody else for the visitor; a form sent twice counts once."""
    post, suspension_id, item_id = visit.post, visit.suspension_id, visit.item_id
    note = post.get("note", "").replace("\r\n", "\n")
    sent = {"to": post.get("to", "").strip(), "digest": post.get("digest", ""), "note": note}
    try:
        wanted = ForwardRequest.model_validate(sent)
    except ValidationError as error:
        problem = _("Name a reviewer or a group, with a note of at most %(most)s characters.", most=LONGEST_FORWARD)
        raise InvalidInput(problem) from error
    key = sha256(f"{suspension_id} {item_id} {post.get('nonce', '')} {sent}".encode()).hexdigest()
    await _forward(wiring_of(visit.request), suspension_id, item_id, wanted, visit.by, f"web-{key}")


FORM = ItemForm("forward", ("to", "note"), _send)


async def _forward(
    wiring: Wiring, suspension_id: str, item_id: str, request: ForwardRequest, by: Actor, key: str | None
) -> Saved:
    people = await _find_people(wiring, request.to)
    return await wiring.desk.forward(suspension_id, item_id, request, people, by, key)


async def _find_people(wiring: Wiring, to: str) -> list[Actor]:
    """Return the active people behind a reviewer or a group, each with what lets them decide."""
    holders = await asyncio.gather(*map(wiring.reviewers.find_holder, await _list_names(wiring, to)))
    return [
        describe_actor(
            Actor(id=holder.person.name, kind=ActorKind.HUMAN, groups=holder.groups),
            holder.represents,
            NOBODY,
            holder.rights,
        )
        for holder in holders
        if holder is not None
    ]


async def _list_names(wiring: Wiring, reviewer: str) -> tuple[str, ...]:
    group = group_of(reviewer)
    if group is None:
        return (reviewer,)
    try:
        return (await wiring.groups.read(group)).members
    except NotFound:
        return ()


async def add_to_item(page: ItemPage) -> dict[str, object]:
    """Return who forwarded an open item to whom, and the names that a form to forward it suggests."""
    item = page.view.item
    if not item.open:
        return {"forwarded": "", "forward_to": []}
    groups = await page.wiring.reviewers.list_groups(page.person) if item.forwarded is not None else ()
    reader = Actor(id=page.person, kind=ActorKind.HUMAN, groups=groups)
    return {"forwarded": describe_forward(item, reader), "forward_to": await _suggest(page)}


async def _suggest(page: ItemPage) -> list[str]:
    """Return the reviewers of an item and the members of their groups, without who may not decide it."""
    wiring, item = page.wiring, page.view.item
    names = dict.fromkeys(item.terms.reviewers)
    for reviewer in item.terms.reviewers:
        names |= dict.fromkeys(await _list_names(wiring, reviewer))
    if not item.terms.reviewers:
        names = dict.fromkeys(person.name for person in await wiring.reviewers.list_all() if person.active)
        names |= dict.fromkeys(f"{GROUP_PREFIX}{group.name}" for group in await wiring.groups.list_all())
    decided = (decision.by.id for decision in item.decisions)
    excluded = {page.person, *decided, *page.view.record.run.list_excluded(item.terms)}
    return [name for name in names if name not in excluded][:MOST_SUGGESTED]
