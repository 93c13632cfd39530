"""Decisions on alike items: what a form sends, and the result of each."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sayso import errors
from sayso.core.records.decisions import DIGEST_PATTERN, ActorKind, Shown, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.sentences.outcomes import describe_actor, describe_outcome
from sayso.core.text.language import _, mark
from sayso.core.transitions.deciding import find_item
from sayso.errors import SaysoError
from service.web.content.alike.kinds import list_arguments
from service.web.content.alike.tables import Line, Table
from service.web.content.deciding.displays import make_shown, read_look_ms
from service.web.form_posts import Post

PICK = "pick."
"""The beginning of a checkbox's name; the id of the item's row follows."""

_PICKED = re.compile(rf"({DIGEST_PATTERN[1:-1]}) (\S{{1,200}})")


@dataclass(frozen=True)
class Pick:
    """An item that was ticked: its digest and its display as the page had them."""

    digest: str
    display: str


@dataclass(frozen=True)
class Result:
    """The result for one item: its `kind`, by which items are counted with `who` decided them, and a sentence."""

    href: str
    tool: str
    kind: str
    sentence: str
    good: bool
    who: str = ""

    @property
    def phrase(self) -> str:
        """The result in a few words."""
        return _(_PHRASES[self.kind]) % {"who": self.who}


_PHRASES: Mapping[str, str] = {
    Verdict.APPROVED: mark("approved"),
    Verdict.DENIED: mark("denied"),
    Verdict.ANSWERED: mark("answered"),
    Verdict.FAILED: mark("failed"),
    "waiting": mark("waiting for another reviewer"),
    "changed": mark("changed: look again"),
    "decided": mark("decided by %(who)s"),
    "late": mark("reached the deadline"),
    "cancelled": mark("cancelled"),
    "alone": mark("not decided: open it alone"),
}


def read_picks(post: Post) -> dict[str, Pick]:
    """Return the ticked items by the id of their row; a value that the page did not write is left out."""
    matches = {name.removeprefix(PICK): _PICKED.fullmatch(text) for name, text in post.items() if name.startswith(PICK)}
    return {row_id: Pick(match[1], match[2]) for row_id, match in matches.items() if match is not None}


def read_shown(line: Line, table: Table, pick: Pick, post: Post) -> Shown | None:
    """Return what the page reports as shown of one item; None where it was not measured, as without scripts."""
    unseen, look_ms = post.get("unseen"), read_look_ms(post)
    if unseen is None or look_ms is None or pick.display != line.display:
        return None
    leaves = list_arguments(line.card.item) if line.card.row_id not in unseen.split(",") else table.common
    return make_shown(pick.display, line.values, [leaf.path for leaf in leaves], look_ms)


def describe_result(href: str, record: SuspensionRecord, item_id: str, error: SaysoError | None) -> Result:
    """Return the result of a decision on an item, or of its refusal."""
    item = find_item(record, item_id)
    if error is not None:
        kind, who = _name_refusal(record, item, error)
        return Result(href, item.tool.name, kind, _explain(item, error), good=False, who=who)
    outcome = item.outcome
    if outcome is None:
        return Result(href, item.tool.name, "waiting", _("You decided. Others must, too."), good=True)
    return Result(href, item.tool.name, outcome.verdict, f"{describe_outcome(item)}.", good=True)


def count_results(results: Iterable[Result]) -> list[str]:
    """Return how many items share a phrase, such as `10 approved` and `1 changed: look again`; the good ones first."""
    counts = Counter((not result.good, result.phrase) for result in results)
    return [f"{count} {phrase}" for (_bad, phrase), count in sorted(counts.items(), key=lambda entry: entry[0][0])]


def _name_refusal(record: SuspensionRecord, item: Item, error: SaysoError) -> tuple[str, str]:
    if isinstance(error, errors.StaleDigest):
        return "changed", ""
    if item.outcome is not None and item.outcome.by.kind is ActorKind.HUMAN:
        return "decided", describe_actor(item.outcome.by)
    if item.outcome is not None or isinstance(error, errors.DeadlinePassed):
        return "late", ""
    return ("cancelled" if record.status is Status.CANCELLED else "alone"), ""


def _explain(item: Item, error: SaysoError) -> str:
    if isinstance(error, errors.StaleDigest):
        return _("The request has changed. Check it again before you decide.")
    return f"{describe_outcome(item)}." if item.outcome is not None else _(error.message)
