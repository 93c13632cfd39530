"""What an edit changes and what the rules say of it, and what differs from calls that people decided before."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import DAY_MS
from sayso.core.policy.counters.restraining import describe_denial, is_denied
from sayso.core.policy.external import FinalJudgement
from sayso.core.policy.rules import ASKING
from sayso.core.precedents import find_measures, is_near
from sayso.core.records.decisions import Actor, DecisionAction, DecisionRequest, Shown
from sayso.core.records.envelopes import Revision
from sayso.core.records.items import Answer, Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.rendering.money import names_minor_unit
from sayso.core.rendering.renderers import render_call
from sayso.core.sentences.deadlines import Sentence
from sayso.core.sentences.outcomes import describe_earlier_denial, describe_near_denial, describe_revision
from sayso.core.text.language import _, mark, ngettext
from sayso.core.text.redaction import Redacted
from sayso.core.text.summaries import hash_display, write_shown
from sayso.core.transitions.deciding import find_item
from sayso.errors import InvalidInput, NotFound, PolicyForbids, Unreadable
from service.core.operations.masking import find_secrets
from service.core.store.precedents import Precedents, kind_of
from service.core.wiring import Wiring
from service.edge.web.content.blocks import Blocks, make_blocks
from service.edge.web.content.cards import item_href
from service.edge.web.content.details import Change, ItemView, compare_args
from service.edge.web.content.diffs import write_diff
from service.edge.web.content.effects import Effect, make_effect
from service.edge.web.content.versions import Version, list_versions
from service.edge.web.sessions import Post
from service.forms.fields import is_change

STEP = "step"
"""The control of buttons that send no decision.

`review` shows the changes of an edit, `preview` also asks a worker what they would do, `change` goes back to its
fields, and `ask` asks once more before a call with a severe warning. A step with a colon, such as `add:f3`, changes the
form of a nested value.
"""

UNCHANGED = mark("Change something, or stop editing.")


@dataclass(frozen=True)
class EditReview:
    """The leaves of the edited arguments, and the rules' opinion; nobody can send what they deny."""

    changes: tuple[Change, ...]
    same: tuple[Change, ...]
    opinion: str
    denied: bool = False
    renewed: bool = False
    effect: Effect | None = None

    @property
    def count(self) -> str:
        return ngettext("%(num)s change", "%(num)s changes", len(self.changes))

    @property
    def action(self) -> str:
        name = _("Ask again with %(changes)s") if self.renewed else _("Approve with %(changes)s")
        return name % {"changes": self.count}


PREVIEW = "preview"
REVIEWS = ("review", PREVIEW)
_STEPS = {"review": Answer.EDIT, PREVIEW: Answer.EDIT, "change": Answer.EDIT, "ask": Answer.APPROVE}


def find_step(post: Post) -> str:
    """Return the step that a form asks for; empty where it sends a decision."""
    step, answer = post.get(STEP, ""), post.get("answer")
    changes = is_change(step) and answer in (Answer.EDIT, Answer.VALUE)
    return step if changes or (step and _STEPS.get(step) == answer) else ""


async def review_edit(
    wiring: Wiring, suspension_id: str, item: Item, decision: DecisionRequest, by: Actor, *, ask: bool
) -> EditReview:
    """Return what an edit changes and what the rules say of it; with `ask`, let a worker say what it would do.

    Raises `InvalidInput` for an edit that changes nothing. A preview may have changed the digest since the form was
    made: nothing is recorded here, and the page shows the item as it is.
    """
    definition = await wiring.runs.definition(item.tool.definition or "")
    schema = definition.parameters if definition is not None else None
    minor = schema is not None and names_minor_unit(schema)
    compare = partial(compare_args, minor=minor, schema=schema)
    rows = await asyncio.to_thread(compare, item.tool.args, decision.args or {})
    decision = decision.model_copy(update={"digest": item.digest}) if item.tool.previews else decision
    try:
        review = make_review(rows, await wiring.desk.judge_edit(suspension_id, item.item_id, decision, by))
    except PolicyForbids as error:
        review = make_review(rows, None, error.message)
    if not review.changes:
        raise InvalidInput(_(UNCHANGED))
    if ask:
        saved = await wiring.desk.request_preview(suspension_id, item.item_id, decision.args, by)
        item = find_item(saved.record, item.item_id)
    return replace(review, effect=make_effect(item, decision.args))


def make_review(rows: Sequence[Change], judged: FinalJudgement | None, refusal: str = "") -> EditReview:
    """Return the review of compared arguments. With `refusal`, the rules deny them."""
    changes = tuple(row for row in rows if row.state != "same")
    same = tuple(row for row in rows if row.state == "same")
    if judged is None:
        return EditReview(changes, same, _("Would be denied: %(refusal)s", refusal=refusal), denied=True)
    return EditReview(changes, same, _describe(judged), renewed=judged.renewed is not None)


def _describe(judged: FinalJudgement) -> str:
    decision, renewed = judged
    if decision is None:
        return _("The rules do not evaluate this call.")
    name = _("rule %(name)s", name=decision.policy_id) if decision.policy_id else _("the default")
    if renewed is not None:
        return _(
            "Must be asked again: %(rule)s applies to the changed arguments. Nothing runs before that decision.",
            rule=name,
        )
    return _("Still asks: %(rule)s.", rule=name) if decision.action in ASKING else _("Allowed: %(rule)s.", rule=name)


MOST_PATHS, MOST_PATH_CHARS = 20, 200
MOST_LOOK_MS = DAY_MS
_PLACES = re.compile(r"([0-9]{1,6}(,[0-9]{1,6})*)?")
_SPAN = re.compile(r"[0-9]{1,15}")


class Display(NamedTuple):
    """The paths of the values in each displayed row in order, and the hash of all their cells."""

    paths: tuple[tuple[str, ...], ...]
    hash: str


def make_display(
    item: Item, version: Version | None, schema: JsonObject | None, blocks: Blocks | None = None
) -> Display:
    """Return what the page displays: the arguments, or their comparison with another reviewer's version."""
    if version is not None:
        return compare_display(compare_args(item.tool.args, version.args, schema=schema))
    if not item.tool.args:
        return Display((), hash_display([]))
    blocks = blocks or make_blocks(render_call(item.tool.name, item.tool.args, schema), schema)
    return Display(tuple(tuple(block.paths) for block in (*blocks.first, *blocks.rest)), blocks.hash)


def compare_display(rows: Sequence[Change]) -> Display:
    """Return what the page displays of two arguments beside each other."""
    cells = [(" ".join(filter(None, (row.title, write_shown(row.path)))), *_list_cells(row)) for row in rows]
    return Display(tuple((row.path,) for row in rows), hash_display(cells))


def _list_cells(row: Change) -> tuple[str, ...]:
    if row.diff:
        return (write_diff(row.diff),)
    if row.pieces:
        return ("".join(write_shown(piece.text, breaks=True) for piece in row.pieces),)
    before = _("not sent") if row.state == "added" else write_shown(row.before, breaks=True)
    after = _("not sent") if row.state == "removed" else write_shown(row.after, breaks=True)
    return before, after


def read_shown(
    view: ItemView, definition: ToolDefinition | None, edited: JsonObject | None, post: Post
) -> Shown | None:
    """Return what the page reports as shown.

    None means not measured: no report, a report that does not fit, a page that displayed something else, or masked
    secrets. A report gives no rights, so it is never a reason to refuse a decision.
    """
    unseen, look_ms = post.get("unseen"), read_look_ms(post)
    masked = view.has_secrets and not view.shown
    if masked or look_ms is None or unseen is None or not _PLACES.fullmatch(unseen):
        return None
    schema = definition.parameters if definition is not None else None
    displays = [make_display(view.item, version, schema) for version in (None, *list_versions(view.item))]
    if edited is not None:
        review = make_review(compare_args(view.item.tool.args, edited, schema=schema), None)
        displays.append(compare_display((*review.changes, *review.same)))
    display = next((display for display in displays if display.hash == post.get("display")), None)
    missing = {int(place) for place in unseen.split(",") if place}
    if display is None or max(missing, default=-1) >= len(display.paths):
        return None
    paths = [path for place, inside in enumerate(display.paths) if place not in missing for path in inside]
    return make_shown(display.hash, sum(map(len, display.paths)), paths, look_ms, named=not view.has_secrets)


def read_look_ms(post: Post) -> int | None:
    """Return the look that the page reports, at most a day; None where it was not measured, as without scripts."""
    look = post.get("look_ms", "")
    return min(int(look), MOST_LOOK_MS) if _SPAN.fullmatch(look) else None


def make_shown(display_hash: str, values: int, paths: Sequence[str], look_ms: int, *, named: bool = True) -> Shown:
    """Return what was shown; the paths of the shown values are `named` only if they are few and short."""
    named = named and len(paths) <= MOST_PATHS and max(map(len, paths), default=0) <= MOST_PATH_CHARS
    return Shown(
        display_hash=display_hash,
        values=values,
        values_shown=len(paths),
        paths=tuple(paths) if named else (),
        look_ms=look_ms,
    )


MOST_CHANGES = 12
MOST_DIFFERING = 4  # the values that are named of a near call


class Since(NamedTuple):
    """The last approved call, when it was approved, the first values that differ, and the number of equal ones.

    `more` is the number of the others that differ, and `fresh` are the paths of recipients that the last call lacked.
    """

    href: str
    at_ms: int
    changes: tuple[Change, ...]
    same: int
    more: int
    fresh: frozenset[str]


class Denied(NamedTuple):
    """The last denial of the same call, or of a near one: its sentence, its reason, its item's page, what differs."""

    sentence: Sentence
    reason: str
    href: str
    changes: tuple[Change, ...] = ()
    more: int = 0
    requested: bool = False  # whether its changes were requested, and this is the new version


async def describe_precedents(
    wiring: Wiring,
    record: SuspensionRecord,
    item: Item,
    reviewer: str,
    definition: ToolDefinition | None,
    secrets: Redacted,
) -> dict[str, Denied | Since | None]:
    """Return what an item's page shows of earlier decisions, with secrets masked."""
    denied, since = await asyncio.gather(
        find_denied(wiring, record, item, definition, secrets),
        find_since(wiring, record, item, reviewer, definition),
    )
    return {"denied": denied, "since": since}


async def find_denied(
    wiring: Wiring, record: SuspensionRecord, item: Item, definition: ToolDefinition | None, secrets: Redacted
) -> Denied | None:
    """Return the last denial of the same call, else of a near one, in this run or thread, or of this agent."""
    if item.revises is not None:
        return await _find_revised(wiring, item.revises, item, definition, secrets)
    denial = await wiring.part(Precedents).find_denial(record, item)
    if denial is None:
        return await _find_near(wiring, record, item, definition, secrets)
    sentence = describe_earlier_denial(denial, record.run.id, record.run.thread_id)
    return Denied(sentence, secrets.scrub(denial.message), f"/items/{denial.suspension_id}/{denial.item_id}")


async def _find_revised(
    wiring: Wiring, revises: Revision, item: Item, definition: ToolDefinition | None, secrets: Redacted
) -> Denied | None:
    """Return the earlier version of a call, with the changes that were requested, and those that were made."""
    try:
        earlier = (await wiring.desk.suspensions.read(revises.suspension_id)).record
        last = find_item(earlier, revises.item_id)
    except (NotFound, Unreadable):
        return None
    schema = definition.parameters if definition is not None else None
    asked = next((each for each in reversed(last.decisions) if each.changes is not None), None)
    reason = find_secrets(last, schema).scrub(secrets.scrub(asked.message or "")) if asked is not None else ""
    rows = await asyncio.to_thread(_compare, last, item, schema) if last.erasure is None else []
    first = tuple(rows[:MOST_DIFFERING])
    href = item_href(earlier, last)
    return Denied(describe_revision(last), reason, href, first, len(rows) - len(first), requested=True)


async def _find_near(
    wiring: Wiring, record: SuspensionRecord, item: Item, definition: ToolDefinition | None, secrets: Redacted
) -> Denied | None:
    schema = definition.parameters if definition is not None else None
    for suspension_id, item_id in await wiring.part(Precedents).find_near(record, item):
        try:
            earlier = (await wiring.desk.suspensions.read(suspension_id)).record
            last = find_item(earlier, item_id)
        except (NotFound, Unreadable):
            continue
        if last.erasure is None and is_denied(last):
            rows = await asyncio.to_thread(_compare_near, last, item, schema)
            if rows:
                denial = describe_denial(earlier, last).denial
                sentence = describe_near_denial(denial, record.run.id, record.run.thread_id)
                reason = find_secrets(last, schema).scrub(secrets.scrub(denial.message))
                first = tuple(rows[:MOST_DIFFERING])
                return Denied(sentence, reason, item_href(earlier, last), first, len(rows) - len(first))
    return None


def _compare_near(last: Item, item: Item, schema: JsonObject | None) -> list[Change]:
    """Return what differs between near calls, with secrets masked; empty for other calls."""
    near = is_near(find_secrets(last, schema).args, find_secrets(item, schema).args)
    return _compare(last, item, schema) if near else []


def _compare(last: Item, item: Item, schema: JsonObject | None) -> list[Change]:
    """Return what differs between two calls, with secrets masked."""
    before, after = find_secrets(last, schema).args, find_secrets(item, schema).args
    minor = schema is not None and names_minor_unit(schema)
    return [row for row in compare_args(before, after, minor=minor, schema=schema) if row.state != "same"]


async def find_since(
    wiring: Wiring, record: SuspensionRecord, item: Item, reviewer: str, definition: ToolDefinition | None
) -> Since | None:
    """Return the comparison with the reviewer's last approval; None without one, and where a call has secrets."""
    if not item.open or item.doubt is not None:
        return None
    place = await wiring.part(Precedents).find_last(reviewer, kind_of(record, item.tool.name))
    if place is None or place == (record.id, item.item_id):
        return None
    try:
        earlier = (await wiring.desk.suspensions.read(place[0])).record
        last = find_item(earlier, place[1])
    except (NotFound, Unreadable):
        return None
    if last.erasure is not None:
        return None
    own = [decision for decision in last.decisions if decision.by.id == reviewer]
    approval = next((decision for decision in reversed(own) if decision.action is DecisionAction.APPROVE), None)
    if approval is None:
        return None
    before = last.tool.args if approval.args is None else approval.args

    def compare() -> Since | None:
        schema = definition.parameters if definition is not None else None
        if find_secrets(item, schema).masked or find_secrets(last, schema).masked:
            return None
        minor = schema is not None and names_minor_unit(schema)
        href = item_href(earlier, last)
        return compare_calls(before, item.tool.args, href, approval.at_ms, minor=minor, schema=schema)

    return await asyncio.to_thread(compare)  # thousands of values take hundreds of milliseconds


def compare_calls(
    before: JsonObject,
    after: JsonObject,
    href: str,
    at_ms: int,
    *,
    minor: bool = False,
    schema: JsonObject | None = None,
) -> Since:
    """Return what differs between two calls; keywords are as in `compare_args`."""
    rows = compare_args(before, after, minor=minor, schema=schema)
    changes = [row for row in rows if row.state != "same"]
    known = find_measures(before).recipients
    new = {text for recipient, text in find_measures(after).recipients.items() if recipient not in known}
    fresh = frozenset(row.path for row in changes if row.after in new)
    first = tuple(changes[:MOST_CHANGES])
    return Since(href, at_ms, first, len(rows) - len(changes), len(changes) - len(first), fresh)
