"""What people decided before: the last denial of the same call, and what differs from the last one approved."""

import asyncio
from typing import NamedTuple

from sayso.core.canonical_json import JsonObject
from sayso.core.precedents import find_measures
from sayso.core.records.decisions import DecisionAction
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.rendering.money import names_minor_unit
from sayso.core.sentences.outcomes import describe_earlier_denial
from sayso.core.sentences.times import Sentence
from sayso.core.text.redaction import Redacted
from sayso.core.transitions.deciding import find_item
from sayso.errors import NotFound, Unreadable
from service.core.operations.masking import find_secrets
from service.core.store.precedents import Precedents, kind_of
from service.core.wiring import Wiring
from service.edge.web.content.cards import item_href
from service.edge.web.content.details import Change, compare_args

MOST_CHANGES = 12


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
    """The last denial of the same call: its sentence, its reason and its item's page."""

    sentence: Sentence
    reason: str
    href: str


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
        find_denied(wiring, record, item, secrets), find_since(wiring, record, item, reviewer, definition)
    )
    return {"denied": denied, "since": since}


async def find_denied(wiring: Wiring, record: SuspensionRecord, item: Item, secrets: Redacted) -> Denied | None:
    """Return the last denial of the same call in this run or thread, or of this agent; None without one."""
    denial = await wiring.part(Precedents).find_denial(record, item)
    if denial is None:
        return None
    sentence = describe_earlier_denial(denial, record.run.id, record.run.thread_id)
    return Denied(sentence, secrets.scrub(denial.message), f"/items/{denial.suspension_id}/{denial.item_id}")


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
        return compare_calls(before, item.tool.args, item_href(earlier, last), approval.at_ms, minor=minor)

    return await asyncio.to_thread(compare)  # thousands of values take hundreds of milliseconds


def compare_calls(before: JsonObject, after: JsonObject, href: str, at_ms: int, *, minor: bool = False) -> Since:
    """Return what differs between two calls; `minor` is as in `compare_args`."""
    rows = compare_args(before, after, minor=minor)
    changes = [row for row in rows if row.state != "same"]
    known = find_measures(before).recipients
    new = {text for recipient, text in find_measures(after).recipients.items() if recipient not in known}
    fresh = frozenset(row.path for row in changes if row.after in new)
    first = tuple(changes[:MOST_CHANGES])
    return Since(href, at_ms, first, len(rows) - len(changes), len(changes) - len(first), fresh)
