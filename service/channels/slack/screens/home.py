"""The app's Home tab: the open items that its reader may decide."""

from collections.abc import Sequence

from sayso.core.clock import iso_utc
from sayso.core.records.decisions import Actor
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.sentences.items import describe_ineligibility, describe_wanted
from sayso.core.text.invisible import write_signs
from service.channels.cards import item_link
from service.channels.slack.screens import blocks as kit
from service.channels.slack.screens.blocks import Block
from service.operations.masking import mask_item

MOST_ITEMS = 30
"""Each takes two of the 100 blocks of a view."""

Pending = tuple[SuspensionRecord, Item]


def list_pending(records: Sequence[SuspensionRecord], by: Actor) -> list[Pending]:
    """Return the open items that a person may decide."""
    return [
        (record, item)
        for record in records
        if record.status is Status.PENDING
        for item in record.items
        if item.open and not describe_ineligibility(record, item, by)
    ]


def build_home(person: str, pending: Sequence[Pending], public_url: str) -> Block:
    """Return the view of a linked person. Arguments are on the item's page only."""
    blocks = [kit.header(f"Open items of {person}")]
    for record, item in pending[:MOST_ITEMS]:
        need = write_signs(", ".join(filter(None, (item.tool.name, describe_wanted(mask_item(item))))))
        until = f"{write_signs(record.run.agent)}, until {iso_utc(item.terms.deadline_at_ms)}"
        button = kit.button("Open", "open", "", url=item_link(public_url, record.id, item.item_id))
        lines = [kit.labelled(kit.cut(need, kit.PLAIN_CHARS), kit.cut(until, kit.PLAIN_CHARS))]
        blocks += [{"type": "rich_text", "elements": lines}, {"type": "actions", "elements": [button]}]
    if not pending:
        blocks.append(kit.context("Nothing waits for you."))
    if len(pending) > MOST_ITEMS:
        blocks.append(kit.context(f"{len(pending) - MOST_ITEMS} more are in the inbox: {public_url}/"))
    return {"type": "home", "callback_id": "sayso:home", "blocks": blocks}


def notice_home(text: str) -> Block:
    """Return the view of somebody who cannot decide here."""
    return {"type": "home", "callback_id": "sayso:home", "blocks": [kit.header("Sayso"), kit.context(text)]}
