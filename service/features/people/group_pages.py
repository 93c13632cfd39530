"""The pages of groups, and of who is asked when under a rule and what happens at the deadline."""

import re
from functools import partial
from itertools import groupby
from typing import Annotated, Any, NamedTuple
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import now_ms
from sayso.core.policy.rules import ASKING
from sayso.core.sentences import name_reviewers
from sayso.core.sentences.deadlines import describe_local
from sayso.core.text.language import _, mark
from sayso.errors import SaysoError
from service.channels.previews import SampleCall
from service.core.auth.groups import may_edit
from service.core.auth.roles import require_permission
from service.core.store.directory import Group
from service.edge.web.pages import receive, show, show_page_again
from service.edge.web.sessions import Post, RecordedRoute, SignedIn, Visitor, describe_refusal, wiring_of
from service.features.people.account_pages import read_moment, read_working_hours, write_working_hours
from service.features.people.who import Asked, Plan, plan

_PAGE = "pages/groups.html"
_DONE = {
    "created": mark("The group is created. Rules can name it now."),
    "changed": mark("The group is changed. This takes effect everywhere within a second."),
    "deleted": mark("The group is deleted."),
}

router = APIRouter(route_class=RecordedRoute)


class GroupForm(NamedTuple):
    """A group as its form shows it."""

    group: Group
    may_edit: bool
    members: str
    editors: str
    typed: Post


@router.get("/groups")
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the groups."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor, {}), done=_DONE.get(done, ""))


@router.post("/groups")
async def create(request: Request, visitor: SignedIn) -> Response:
    """Create the group of the form."""
    async with receive(request, visitor, _PAGE, partial(_gather, request, visitor)) as post:
        members, editors = _read_names(post, "members"), _read_names(post, "editors")
        working = read_working_hours(post)
        groups = wiring_of(request).groups
        await groups.create(post.get("name", "").strip(), members, editors, visitor.name, working)
    return RedirectResponse("/groups?done=created", 303)


@router.post("/groups/{name}")
async def change(request: Request, visitor: SignedIn, name: str) -> Response:
    """Change or delete a group."""
    groups = wiring_of(request).groups
    async with receive(request, visitor, _PAGE, partial(_gather, request, visitor, changed=name)) as post:
        deletes = post.get("act") == "delete"
        if deletes:
            require_permission(visitor.rights, "manage_groups")
            await groups.delete(name, visitor.name)
        else:
            known, rights = await groups.read(name), visitor.rights
            editors = _read_names(post, "editors") if rights.has("manage_groups") else known.editors
            working = read_working_hours(post)
            await groups.update(name, _read_names(post, "members"), editors, visitor.name, rights, working)
    return RedirectResponse(f"/groups?done={'deleted' if deletes else 'changed'}", 303)


async def _gather(request: Request, visitor: Visitor, post: Post, changed: str | None = None) -> dict[str, Any]:
    groups = await wiring_of(request).groups.list_all()
    return {
        "title": _("Groups"),
        "groups": [_form(group, visitor, post if group.name == changed else None) for group in groups],
        "typed": {**write_working_hours(None), **(post if changed is None else {})},
    }


def _form(group: Group, visitor: Visitor, post: Post | None) -> GroupForm:
    zone = group.working_hours.time_zone if group.working_hours is not None else ""
    saved = {**write_working_hours(group.working_hours), "time_zone": zone}
    return GroupForm(
        group=group,
        may_edit=may_edit(group, visitor.name, visitor.rights),
        members=post.get("members", "") if post is not None else "\n".join(group.members),
        editors=post.get("editors", "") if post is not None else "\n".join(group.editors),
        typed=post if post is not None else saved,
    )


def _read_names(post: Post, field: str) -> tuple[str, ...]:
    """Return the names of a field, separated by spaces, commas or lines."""
    return tuple(name for name in re.split(r"[\s,;]+", post.get(field, "")) if name)


_WHO_PAGE = "pages/who.html"


@router.get("/who")
async def read_who(
    request: Request,
    visitor: SignedIn,
    rule: Annotated[str, Query(max_length=200)] = "",
    at: Annotated[str, Query(max_length=40)] = "",
) -> Response:
    """Show who would be asked under a rule at a time; by default now, under the first rule that asks."""
    wiring = wiring_of(request)
    zone = ZoneInfo((await wiring.duty.find_preferences(visitor.name)).time_zone)
    rules = [asking.rule_id for asking in wiring.rules.policy().rules if asking.action in ASKING]
    context: dict[str, Any] = {
        "title": _("Who is asked"),
        "rules": rules,
        "rule_id": rule or (rules[0] if rules else ""),
        "at": at or describe_local(now_ms(), zone).replace(" ", "T"),
        "zone": zone,
        **describe_plan(None),
    }
    try:
        forecast = None
        if context["rule_id"]:
            at_ms = read_moment(context["at"], zone, _("Enter a time such as 2026-12-24T18:00."))
            channels, call = request.app.state.channels, SampleCall(tool="refund")
            forecast = await plan(wiring, channels, wiring.rules.policy(), context["rule_id"], call, at_ms)
    except SaysoError as error:
        show_page_again(request, _WHO_PAGE, visitor=visitor, **{**context, "sentence": describe_refusal(error)})
        raise
    return await show(request, visitor, _WHO_PAGE, **{**context, **describe_plan(forecast)})


def describe_plan(plan: Plan | None) -> dict[str, object]:
    """Return what `parts/plan.html` shows of a plan."""
    asked: tuple[Asked, ...] = plan.asked if plan is not None else ()
    steps = [(step, [*rows]) for step, rows in groupby(asked, lambda entry: entry.step)]
    names = {entry.reviewer: name_reviewers([entry.reviewer]) if entry.reviewer else _("everybody") for entry in asked}
    return {"plan": plan, "steps": steps, "names": names}
