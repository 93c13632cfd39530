"""The channels page for admins: the configured channels, who is linked, test cards, and previews side by side."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sayso.core.clock import now_ms
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import ASKING, PolicyRule
from sayso.core.text.language import _
from sayso.errors import SaysoError
from service.auth.reviewers import require_role
from service.channels.config import Setting, describe_settings
from service.channels.previews import Preview, build_sample_card, read_sample, render_previews
from service.channels.table import Channels
from service.channels.trials import Answer, send_test_card
from service.web.errors import show_page_again
from service.web.form_posts import Post, RecordedRoute, check_admin, describe_refusal, read_form
from service.web.pages import show
from service.web.sessions import SignedIn, Visitor, wiring_of

_PAGE = "pages/channels.html"

router = APIRouter(route_class=RecordedRoute)


@dataclass(frozen=True)
class ChannelRow:
    """A configured channel, and the reviewers with an address on it."""

    name: str
    kind: str
    destination: str
    settings: tuple[Setting, ...]
    people: tuple[str, ...]


@router.get("/channels")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the channels, with the preview of a rule's sample call."""
    require_role(visitor.principal.roles, "admin")
    return await show(request, visitor, _PAGE, **await _gather(request, {}))


@router.post("/channels")
async def act(request: Request, visitor: SignedIn) -> Response:
    """Preview the call of the form, or send a test card."""
    post = await read_form(request)
    answers: Sequence[Answer] = ()
    try:
        check_admin(post, visitor)
        if "test" in post:
            person = post.get("person", "").strip()
            answers = await send_test_card(wiring_of(request), _open(request), post["test"], person, visitor.name)
        context = await _gather(request, post, answers)
    except SaysoError as error:
        await _show_again(request, visitor, post, error)
        raise
    return await show(request, visitor, _PAGE, **context)


async def _show_again(request: Request, visitor: Visitor, post: Post, error: SaysoError) -> None:
    if visitor.is_admin:
        context = await _gather(request, post, sentence=describe_refusal(error))
        show_page_again(request, _PAGE, visitor=visitor, **context)


async def _gather(
    request: Request, post: Post, answers: Sequence[Answer] = (), *, sentence: str = ""
) -> dict[str, Any]:
    wiring, channels = wiring_of(request), _open(request)
    policy = wiring.rules.policy()
    asking = [rule for rule in policy.rules if rule.action in ASKING]
    rule_id = post.get("rule", asking[0].rule_id if asking else "")
    call = post.get("call") or _write_sample(next((rule for rule in asking if rule.rule_id == rule_id), None))
    previews: tuple[Preview, ...] = ()
    if not sentence and rule_id and channels.by_name:
        previews = await asyncio.to_thread(_preview, channels, policy, rule_id, call, wiring.settings.public_url)
    return {
        "title": _("Channels"),
        "sentence": sentence,
        "channels": await _list_rows(request),
        "rules": [rule.rule_id for rule in asking],
        "rule_id": rule_id,
        "call": call,
        "previews": previews,
        "tested": post.get("test", ""),
        "answers": answers,
    }


def _preview(channels: Channels, policy: Policy, rule_id: str, call: str, public_url: str) -> tuple[Preview, ...]:
    sample = read_sample(call.encode(), "The sample")
    card = build_sample_card(policy, rule_id, sample, now_ms(), public_url)
    return render_previews(channels.by_name.values(), card)


async def _list_rows(request: Request) -> list[ChannelRow]:
    wiring, channels = wiring_of(request), _open(request)
    linked: dict[str, list[str]] = {name: [] for name in channels.by_name}
    for person in await wiring.reviewers.list_all():
        for name in {contact.channel for contact in await wiring.contacts.list_of(person.name) if person.active}:
            linked.setdefault(name, []).append(person.name)
    rows = []
    for name, channel in sorted(channels.by_name.items()):
        config = channels.configs.get(name)
        shown = describe_settings(config) if config is not None else ()
        rows.append(ChannelRow(name, channel.kind, channel.destination, shown, tuple(linked[name])))
    return rows


def _write_sample(rule: PolicyRule | None) -> str:
    """Return a call to begin with, for the first tool that the rule names."""
    named = rule.condition.tools if rule is not None else ()
    tools = [tool for tool in named if not any(sign in tool for sign in "*?[")]
    return json.dumps({"tool": tools[0] if tools else "sample_tool", "args": {"order": "A-1", "amount": 250}}, indent=2)


def _open(request: Request) -> Channels:
    channels: Channels = request.app.state.channels
    return channels
