"""Versions of the arguments that reviewers approved under a quorum, and the reader's own decision."""

from collections.abc import Sequence
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject, digest_json
from sayso.core.precedents import Measures, find_unusual
from sayso.core.records.decisions import Actor, Decision, DecisionAction
from sayso.core.records.items import Answer, Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.rendering.money import names_minor_unit
from sayso.core.rendering.renderers import render_call
from sayso.core.rendering.views import Flag
from sayso.core.sentences import join_words
from sayso.core.sentences.items import count_approval, describe_approval, describe_ineligibility
from sayso.core.sentences.stages import list_stages
from sayso.core.text.language import _
from sayso.core.transitions.closing import args_of
from sayso.core.transitions.deciding import find_own, without_own
from sayso.core.transitions.deliveries import is_live
from sayso.core.transitions.inquiring import digest_version, may_confirm
from sayso.core.transitions.quorum import find_args, needs_confirmation
from sayso.errors import InvalidInput
from service.edge.web.content.details import Change, compare_args

VERSION = "version"  # the control and the query parameter that name a version by its digest


class Version(NamedTuple):
    """Edited arguments, and the reviewers who approved exactly them."""

    digest: str
    args: JsonObject
    reviewers: tuple[str, ...]

    @property
    def name(self) -> str:
        return _("%(who)s’s version", who=join_words(self.reviewers))


def list_versions(item: Item) -> list[Version]:
    """Return the versions of an open item that waits for more approvals, in the order of their first approval."""
    versions: dict[str, Version] = {}
    for decision in item.current if item.open else ():
        args = args_of(item, decision)
        if decision.action is DecisionAction.APPROVE and args != item.tool.args:
            digest = digest_json(args)
            earlier = versions[digest].reviewers if digest in versions else ()
            versions[digest] = Version(digest, args, (*earlier, decision.by.id))
    return list(versions.values())


def find_digest(record: SuspensionRecord, item: Item, by: Actor) -> str:
    """Return the digest of the call that the reader has to confirm, because the agent acts for them, or nothing."""
    args = find_args(item)
    asks = is_live(record, item) and may_confirm(record, item, by) and needs_confirmation(item)
    return digest_version(record, item, args) if asks and args is not None else ""


def choose_version(
    record: SuspensionRecord, item: Item, masked: Item, by: Actor, listed: Sequence[Version], chosen: str | None
) -> Version | None:
    """Return the chosen version, or the one that the reader has to confirm, as the masked item shows it.

    None are the requested arguments.
    """
    if not find_digest(record, item, by):
        return next((version for version in listed if version.digest == chosen), None)
    args, shown = find_args(item), find_args(masked)
    if args is None or shown is None or args == item.tool.args:
        return None
    return Version(digest_json(args), shown, tuple(made.by.id for made in item.current if args_of(item, made) == args))


def find_version(item: Item, digest: str) -> Version:
    """Return the version of that digest; raises `InvalidInput`."""
    for version in list_versions(item):
        if version.digest == digest:
            return version
    raise InvalidInput(_("No reviewer has approved that version. Choose one of the versions on the item's page."))


class Own(NamedTuple):
    """The reader's decision that counts, and what the item still waits for."""

    decision: Decision
    sentence: str

    @property
    def digest(self) -> str:
        """The version that was approved; empty for the requested arguments."""
        return digest_json(self.decision.args) if self.decision.args is not None else ""

    @property
    def approves(self) -> bool:
        return self.decision.action is DecisionAction.APPROVE

    @property
    def denies(self) -> bool:
        return self.decision.action is DecisionAction.DENY


class Alternative(NamedTuple):
    """Arguments that are not shown, and how they differ from the requested ones; those have no digest.

    `plain` ones can be approved unopened: everything that differs is named, and nothing must be typed. With `caution`
    the page asks once more.
    """

    digest: str
    name: str
    effect: str
    changes: tuple[Change, ...]
    flags: tuple[Flag, ...]
    plain: bool
    caution: bool
    tally: str


MOST_NAMED, MOST_NAMED_CHARS = 12, 200  # what differs in a version that can be approved unopened


def describe_versions(
    record: SuspensionRecord,
    item: Item,
    by: Actor,
    versions: Sequence[Version],
    shown: Version | None,
    definition: ToolDefinition | None,
    earlier: Sequence[Measures],
) -> dict[str, object]:
    """Return the versions, the one that is shown, and the others with what differs."""
    others = list_alternatives(record, item, by, versions, shown, definition, earlier)
    return {"versions": versions, "version": shown, "alternatives": others}


def list_alternatives(
    record: SuspensionRecord,
    item: Item,
    by: Actor,
    versions: Sequence[Version],
    shown: Version | None,
    definition: ToolDefinition | None,
    earlier: Sequence[Measures],
) -> list[Alternative]:
    """Return the other versions, and the requested arguments where a version is shown."""
    if not versions:
        return []
    schema = definition.parameters if definition is not None else None
    minor = schema is not None and names_minor_unit(schema)
    others = [*versions, Version("", item.tool.args, ())] if shown is not None else versions
    known = render_call(item.tool.name, item.tool.args if shown is None else shown.args, schema).flags
    alternatives = []
    for version in others:
        if shown is not None and version.digest == shown.digest:
            continue
        compared = compare_args(item.tool.args, version.args, minor=minor, schema=schema)
        rows = [row for row in compared if row.state != "same"]
        view = render_call(item.tool.name, version.args, schema)
        flags = tuple(flag for flag in (*view.flags, *find_unusual(version.args, earlier)) if flag not in known)
        longest = max((len(text) for row in rows for text in (row.before, row.after)), default=0)
        short = len(rows) <= MOST_NAMED and longest <= MOST_NAMED_CHARS
        alternatives.append(
            Alternative(
                version.digest,
                version.name if version.digest else _("As requested"),
                view.effect,
                tuple(rows) if short else (),
                flags,
                plain=short and not (item.terms.match_number or item.terms.step_up) and by.id not in version.reviewers,
                caution=view.severe,
                tally=count_approval(record, item, by, version.args),
            )
        )
    return alternatives


def describe_right(record: SuspensionRecord, item: Item, visitor: Actor, version: Version | None) -> dict[str, object]:
    """Return why the visitor cannot decide, or which decision of theirs another would replace."""
    ineligibility, own = describe_ineligibility(record, item, visitor), find_own(item, visitor.id)
    changeable = None if own is None else Own(own, ineligibility)
    if own is not None:
        item = without_own(item, own, record.updated_at_ms)
        items = tuple(item if other.item_id == item.item_id else other for other in record.items)
        record = record.model_copy(update={"items": items})
        reason = describe_ineligibility(record, item, visitor)
        ineligibility, changeable = (ineligibility, None) if reason else ("", changeable)
    described = _describe_quorum(record, item, visitor, version)
    return {"ineligibility": ineligibility, "own": changeable, "staging": list_stages(item), **described}


def _describe_quorum(record: SuspensionRecord, item: Item, visitor: Actor, version: Version | None) -> dict[str, str]:
    if not item.open or Answer.APPROVE not in item.allowed:
        return {"approval": "", "tally": ""}
    args = version.args if version is not None else item.tool.args
    return {
        "approval": describe_approval(record, item, visitor, args),
        "tally": count_approval(record, item, visitor, args),
    }
