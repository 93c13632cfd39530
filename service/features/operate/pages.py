"""The pages to operate Sayso: the state of each part with freezes, and the channels with test cards and previews."""

import asyncio
import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from sayso.core.clock import now_ms
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import ASKING, PolicyRule
from sayso.core.records.freezes import ALL, SCOPE_PATTERN
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput, SaysoError
from service.channels.config import Setting
from service.channels.kinds import Channels
from service.channels.previews import Answer, Preview, build_sample_card, read_sample, render_previews, send_test_card
from service.core.operations.known_names import Held, check_known, count_held, freeze_known, list_known
from service.core.wiring import Wiring
from service.edge.web.pages import receive, show, show_page_again
from service.edge.web.sessions import (
    Post,
    RecordedRoute,
    SignedIn,
    check_session,
    describe_refusal,
    read_post,
    read_reason,
    wiring_of,
)
from service.edge.web.sign_ins import receive_form
from service.features.operate.diagnostics import Finding, diagnose

KEPT_MS = 5_000  # the age, ms, up to which findings are shown again: every change refreshes the open pages


class Checked(NamedTuple):
    """All findings of a tenant, and when the check began."""

    findings: tuple[Finding, ...]
    at_ms: int


class Checks:
    """The latest findings of this process. One check at a time serves all visitors."""

    def __init__(self) -> None:
        self._checked: dict[str, Checked] = {}
        self._lock = asyncio.Lock()

    async def find(self, wiring: Wiring, kinds: dict[str, str], *, fresh: bool = False) -> Checked:
        """Return the findings as of some seconds ago or, with `fresh`, as of now."""
        async with self._lock:
            known, at_ms = self._checked.get(wiring.tenant), now_ms()
            if fresh or known is None or not 0 <= at_ms - known.at_ms < KEPT_MS:
                known = Checked(tuple([finding async for finding in diagnose(wiring, kinds, fresh=fresh)]), at_ms)
                self._checked[wiring.tenant] = known
            return known


async def find_checked(request: Request, *, fresh: bool = False) -> Checked:
    """Return the findings for the visitor's tenant."""
    channels: Channels = request.app.state.channels
    checks: Checks = request.app.state.checks
    return await checks.find(
        wiring_of(request), {name: channel.kind for name, channel in channels.by_name.items()}, fresh=fresh
    )


_PAGE = "pages/channels.html"

router = APIRouter(route_class=RecordedRoute)


class ChannelRow(NamedTuple):
    """A configured channel, and the reviewers with an address on it."""

    name: str
    kind: str
    destination: str
    settings: tuple[Setting, ...]
    people: tuple[str, ...]


@router.get("/channels")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the channels, with the preview of a rule's sample call."""
    return await show(request, visitor, _PAGE, **await _gather(request, {}))


@router.post("/channels")
async def act(request: Request, visitor: SignedIn) -> Response:
    """Preview the call of the form, or send a test card."""
    answers: Sequence[Answer] = ()
    async with receive(request, visitor, _PAGE, partial(_gather, request, refused=True)) as post:
        if "test" in post:
            person = post.get("person", "").strip()
            answers = await send_test_card(wiring_of(request), _open(request), post["test"], person, visitor.name)
        return await show(request, visitor, _PAGE, **await _gather(request, post, answers))


async def _gather(
    request: Request, post: Post, answers: Sequence[Answer] = (), *, refused: bool = False
) -> dict[str, Any]:
    wiring, channels = wiring_of(request), _open(request)
    policy = wiring.rules.policy()
    asking = [rule for rule in policy.rules if rule.action in ASKING]
    rule_id = post.get("rule", asking[0].rule_id if asking else "")
    call = post.get("call") or _write_sample(next((rule for rule in asking if rule.rule_id == rule_id), None))
    previews: tuple[Preview, ...] = ()
    if not refused and rule_id and channels.by_name:
        previews = await asyncio.to_thread(_preview, channels, policy, rule_id, call, wiring.settings.public_url)
    wiring, channels = wiring_of(request), _open(request)
    linked: dict[str, list[str]] = {name: [] for name in channels.by_name}
    for person in await wiring.reviewers.list_all():
        for name in {contact.channel for contact in await wiring.contacts.list_of(person.name) if person.active}:
            linked.setdefault(name, []).append(person.name)
    return {
        "title": _("Channels"),
        "channels": [
            ChannelRow(name, channel.kind, channel.destination, settings, tuple(linked[name]))
            for name, channel, settings in channels.list_settings()
        ],
        "rules": [rule.rule_id for rule in asking],
        "rule_id": rule_id,
        "call": call,
        "previews": previews,
        "tested": post.get("test", ""),
        "answers": answers,
    }


def _preview(channels: Channels, policy: Policy, rule_id: str, call: str, public_url: str) -> tuple[Preview, ...]:
    card = build_sample_card(policy, rule_id, read_sample(call.encode(), "The sample"), now_ms(), public_url)
    return render_previews(channels.by_name.values(), card)


def _write_sample(rule: PolicyRule | None) -> str:
    named = rule.condition.tools if rule is not None else ()
    tools = [tool for tool in named if not any(sign in tool for sign in "*?[")]
    return json.dumps({"tool": tools[0] if tools else "sample_tool", "args": {"order": "A-1", "amount": 250}}, indent=2)


def _open(request: Request) -> Channels:
    channels: Channels = request.app.state.channels
    return channels


_OPERATE_PAGE = "pages/operate.html"
_PARTS = {
    "durability": mark("Store"),
    "secrets": mark("Secrets"),
    "time": mark("Time"),
    "clock": mark("Clock"),
    "workers": mark("Workers"),
    "queue": mark("Queue"),
    "freezes": mark("Freezes"),
    "homes": mark("Homes of processes"),
    "limits": mark("Limits"),
    "records": mark("Records"),
    "inbox": mark("Inbox"),
    "trails": mark("Audit trails"),
    "keys": mark("Keys"),
    "activity": mark("Activity"),
    "rules held": mark("Rules in use"),
    "rules held back": mark("Rules held back"),
    "rules": mark("Rules"),
    "channels": mark("Deliveries"),
    "archive": mark("Archive"),
    "webhooks": mark("Webhooks and dead letters"),
    "store": mark("Store"),
}
"""The parts of the diagnostics as the page names them."""


class Line(NamedTuple):
    """The state of one part."""

    part: str
    ok: bool
    message: str
    todo: str


@router.get("/operate")
async def read_operation(request: Request, visitor: SignedIn) -> Response:
    """Show the state of each part, what is frozen, and recent freezes."""
    await wiring_of(request).freezes.known(fresh=True)
    return await show(request, visitor, _OPERATE_PAGE, **await _gather_operate(request, {}))


@router.get("/freezes")
async def redirect(_visitor: SignedIn) -> Response:
    """Lead to the page, whose path was `/freezes`."""
    return RedirectResponse("/operate", 308)


@router.post("/operate")
async def freeze(request: Request) -> Response:
    """Show what the freeze of the form would stop; with `confirm`, freeze it."""
    post, visitor = await receive_form(request)
    wiring = wiring_of(request)
    try:
        check_session(post, visitor)
        scope, unseen = _read_scope(post), "unseen" in post
        reason = read_reason(post)
        if not reason:
            raise InvalidInput(_("Enter the reason. Everybody sees it."))
        if post.get("confirm") == scope:
            await freeze_known(wiring, scope, reason, visitor.principal.actor("web"), confirmed=unseen)
            return RedirectResponse("/operate", 303)
        if "*" in scope:
            raise InvalidInput(_("A freeze names one tool or agent, not a pattern. Freeze each by its name."))
        if not unseen:
            await check_known(wiring, scope)
    except SaysoError as error:
        context = {**await _gather_operate(request, post), "sentence": describe_refusal(error)}
        show_page_again(request, _OPERATE_PAGE, visitor=visitor, **context)
        raise
    held = await count_held(wiring_of(request))
    fields = {name: post[name] for name in ("scope", "kind", "named", "unseen") if post.get(name)}
    return await show(
        request,
        visitor,
        "pages/freeze.html",
        title=_("Freeze"),
        freezing=scope,
        stops=describe_stops(held, scope),
        cut=held.cut,
        fields={**fields, "reason": read_reason(post)},
    )


@router.post("/operate/{freeze_id:path}/unfreeze")
async def unfreeze(request: Request, visitor: SignedIn, freeze_id: str) -> Response:
    """Unfreeze what an id or a scope names; after a clock jump the form says what happens to the deadlines."""
    post = await read_post(request, visitor)
    deadlines: Literal["move", "pass"] = "pass" if post.get("deadlines") == "pass" else "move"
    by, checked = visitor.principal.actor("web"), post.get("checked", "").strip()[:2000]
    await wiring_of(request).freezes.unfreeze(freeze_id, by, deadlines, checked)
    return RedirectResponse("/operate", 303)


def describe_stops(held: Held, scope: str) -> str:
    """Return what a freeze of the scope would stop now."""
    waiting, starting = held.waiting[scope], held.starting[scope]
    if not waiting and not starting:
        return _("It stops nothing at the moment. New calls will not start.")
    return _(
        "It stops %(waiting)s waiting and %(starting)s about to start. New calls will not start.",
        waiting=waiting,
        starting=starting,
    )


async def _gather_operate(request: Request, post: Post) -> dict[str, Any]:
    wiring = wiring_of(request)
    known, checked = await wiring.freezes.known(), await find_checked(request)
    return {
        "title": _("Operate"),
        "lines": [
            Line(_PARTS.get(finding.part, finding.part), finding.ok, finding.message, finding.todo)
            for finding in checked.findings
        ],
        "checked_at_ms": checked.at_ms,
        "ended": [freeze for freeze in reversed(known) if not freeze.in_force][:20],
        "tools": await list_known(wiring, "tool"),
        "agents": await list_known(wiring, "agent"),
        "held": await count_held(wiring),
        "typed": {name: post.get(name, "") for name in ("scope", "kind", "named", "unseen", "reason")},
    }


def _read_scope(post: Post) -> str:
    kind, name = post.get("kind", ""), post.get("named", "").strip()
    scope = f"{kind}:{name}" if name else post.get("scope", "")
    if name and kind not in ("tool", "agent"):
        raise InvalidInput(_("Choose whether the name is that of a tool or of an agent."))
    if not scope:
        raise InvalidInput(_("Choose what to freeze."))
    if scope != ALL and not re.fullmatch(SCOPE_PATTERN, scope):
        raise InvalidInput(_("A name has 1 to 200 characters, all of them visible."))
    return scope
