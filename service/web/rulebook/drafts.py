"""A draft of rules: its faults by line, and what it would have done with the last recorded calls. For admins."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from sayso.core.text.language import _, mark
from sayso.core.text.redaction import redact
from sayso.core.text.summaries import Summary, summarize
from sayso.errors import InvalidInput, SaysoError
from sayso.features.whatif.replays import Changed, Comparison, Effect, RecordedCall, compare
from service.auth.reviewers import require_role
from service.operations.rule_checks import find_known
from service.policy.recorded_calls import MOST_CALLS, read_recorded
from service.web.errors import show_page_again
from service.web.form_posts import RecordedRoute, check_admin, describe_refusal, read_form
from service.web.pages import show
from service.web.sessions import SignedIn, Visitor, wiring_of

MOST_ROWS = 200
"""The limit of listed calls of one kind of change; the count is of all."""

_EFFECTS = {Effect.ALLOWED: mark("allowed"), Effect.ASKED: mark("asked"), Effect.DENIED: mark("denied")}
_FILE = "draft"
_PAGE = "pages/rule_draft.html"

router = APIRouter(route_class=RecordedRoute)


@dataclass(frozen=True)
class CallRow:
    """A recorded call in a list, with secrets masked."""

    href: str
    tool: str
    summary: Summary
    agent: str
    at_ms: int
    verdict: str
    before: str
    now: str
    reason: str


@dataclass(frozen=True)
class ChangeGroup:
    """Calls with the same change; `denied` counts those that people denied."""

    before: str
    now: str
    count: int
    denied: int
    risky: bool
    rows: Sequence[CallRow]


@dataclass(frozen=True)
class Replay:
    """What a draft would have done with the recorded calls."""

    count: int
    same: int
    changes: Sequence[ChangeGroup]
    missing: Sequence[tuple[str, int, Sequence[CallRow]]]

    @property
    def changed(self) -> int:
        return sum(change.count for change in self.changes)


@router.get("/rules/-/draft")
async def read(request: Request, visitor: SignedIn) -> Response:
    """Show the form, with the rules of this service's file to begin with."""
    require_role(visitor.principal.roles, "admin")
    source = wiring_of(request).rules.read_source()
    text = source[1].decode("utf-8-sig") if source is not None else ""
    return await show(request, visitor, _PAGE, **_describe(text))


@router.post("/rules/-/draft")
async def try_draft(request: Request, visitor: SignedIn) -> Response:
    """Check the draft, and judge the last recorded calls again by it. Nothing is saved."""
    post = await read_form(request)
    text = post.get("text", "").replace("\r\n", "\n")
    try:
        check_admin(post, visitor)
        context = await _try(request, visitor, text)
    except SaysoError as error:
        if visitor.is_admin:
            sentence = describe_refusal(error)
            show_page_again(request, _PAGE, visitor=visitor, **{**_describe(text), "sentence": sentence})
        raise
    return await show(request, visitor, _PAGE, **{**_describe(text), **context})


async def _try(request: Request, visitor: Visitor, text: str) -> dict[str, Any]:
    if not text.strip():
        raise InvalidInput(_("Paste the rules to try."))
    wiring = wiring_of(request)
    known, evaluations = await find_known(wiring), wiring.desk.evaluations
    lists = await asyncio.to_thread(wiring.rulebook.read_lists)
    checked = await evaluations.check_rules(text, _FILE, known, lists=lists, caller=visitor.name)
    if checked.faults:
        return {"checked": checked}
    calls = await read_recorded(wiring.runs, wiring.desk.suspensions)
    judged = await evaluations.rejudge(text, _FILE, calls, known, lists=lists, caller=visitor.name)
    return {"checked": checked, "replay": await asyncio.to_thread(lambda: _summarize(compare(calls, judged)))}


def _describe(text: str) -> dict[str, Any]:
    return {
        "title": _("Try a draft"),
        "sentence": "",
        "draft": text,
        "checked": None,
        "replay": None,
        "most": MOST_CALLS,
    }


def _summarize(comparison: Comparison) -> Replay:
    changes = [_describe_change(before, now, calls) for (before, now), calls in comparison.changed.items()]
    missing = [(_(fact), len(calls), [*map(_row, calls[:MOST_ROWS])]) for fact, calls in comparison.missing.items()]
    same = comparison.same.total()
    count = same + sum(change.count for change in changes) + sum(number for _fact, number, _calls in missing)
    return Replay(count, same, changes, missing)


def _describe_change(before: Effect, now: Effect, calls: Sequence[Changed]) -> ChangeGroup:
    return ChangeGroup(
        before=_(_EFFECTS[before]),
        now=_(_EFFECTS[now]),
        count=len(calls),
        denied=sum(entry.call.verdict == "denied" for entry in calls),
        risky=now is Effect.ALLOWED,
        rows=[_row(entry.call, entry) for entry in calls[:MOST_ROWS]],
    )


def _row(call: RecordedCall, changed: Changed | None = None) -> CallRow:
    redacted = redact(call.event.tool_args, None, call.secrets)
    now = changed.now if changed is not None else None
    return CallRow(
        href=f"/items/{call.suspension_id}/{call.item_id}" if call.item_id else f"/runs/{call.event.run_id}",
        tool=call.event.tool_name or "",
        summary=summarize(redacted.args),
        agent=call.event.agent,
        at_ms=call.at_ms,
        verdict=call.verdict,
        before=call.rule_id or "",
        now=(now.rule_id or "") if now is not None else "",
        reason=redacted.scrub(now.error or now.reason) if now is not None else "",
    )
