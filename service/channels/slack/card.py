"""The card of an item as a Slack message.

Arguments are rich text: a short value stands behind its path, a long one in a block of its own, exactly as it is. What
the agent claims stands apart, under a mark.
"""

import json
from collections.abc import Iterator, Sequence

from sayso.core.text.invisible import UNCHECKED, write_signs
from sayso.core.text.summaries import Leaf, list_values, write_pretty
from service.channels.base import CardAction, Rendered, allowed_actions, name_action
from service.channels.cards import FRAME_CHARS, Card, Line, build_digest
from service.channels.slack import blocks as kit
from service.channels.slack import limits
from service.channels.slack.blocks import Block

FACT_CHARS = 500
CLAIM_CHARS = 300
CLAIMS = 5
DECISION_CHARS = 300
DECISIONS = 10
CLOSING_CHARS = 1000
INLINE_CHARS = 80  # longer values, and those with line breaks, get a block of their own
NOTE_CHARS = 500  # kept free for the notes about hidden text and masked values
DECIDES = frozenset(CardAction) - {CardAction.OPEN}

_BUTTONS = (
    (CardAction.APPROVE, "primary"),
    (CardAction.VALUE, "primary"),
    (CardAction.EDIT, ""),
    (CardAction.DENY, "danger"),
    (CardAction.CHANGES, ""),
    (CardAction.ASK, ""),
    (CardAction.UNDO, ""),
)


def render_card(card: Card, decides: frozenset[CardAction] = DECIDES) -> Rendered:
    """Return the message of a card; `decides` are the actions that the channel takes."""
    before = [kit.header(card.headline), *kit.rich_texts(_list_facts(card))]
    after = list(_write_rest(card))
    used = sum(limits.count_chars(kit.read_text(block)) for block in (*before, *after))
    title = kit.labelled(*card.args_title)
    shown, hidden = _fit(title, list_values(card.args), limits.MESSAGE_CHARS - NOTE_CHARS - used)
    complete = not hidden and not card.masked
    actions = allowed_actions(card, complete=complete, decides=decides & DECIDES)
    if limits.count_chars(write_pretty(card.args)) > limits.INPUT_CHARS:
        actions -= {CardAction.EDIT}
    value = write_reference(card)
    buttons = [
        kit.button(name_action(card, action), action, value, style="" if card.reverses else style)
        for action, style in _BUTTONS
        if action in actions
    ]
    parts = [
        *before,
        kit.divider(),
        *shown,
        *_write_notes(card, hidden),
        *after,
        {"type": "actions", "elements": [*buttons, kit.button("Open", CardAction.OPEN, value, url=card.link)]},
    ]
    urgent = "Urgent: " if card.urgent else ""
    notification = f"{urgent}{card.headline}" if card.live else f"{card.headline}: {card.closing}"
    return Rendered(
        body={"text": kit.escape(limits.cut(notification, limits.SECTION_CHARS)), "blocks": parts},
        text=kit.read_text(parts),
        complete=complete,
        actions=actions,
    )


def render_digest(cards: Sequence[Card]) -> Block:
    """Return the message about many open items."""
    digest = build_digest(
        cards, limits.MESSAGE_CHARS - FRAME_CHARS, lambda entry: limits.count_chars(f"{entry.text} {entry.link}\n")
    )
    rows = (
        {"type": "rich_text_section", "elements": [kit.literal(f"{entry.text} "), kit.link(entry.link)]}
        for entry in digest.entries
    )
    rest = [kit.context(digest.rest)] if digest.rest else []
    return {"text": digest.title, "blocks": [kit.header(digest.title), *kit.rich_texts(rows), *rest]}


def write_reference(card: Card) -> str:
    """Return the value of a card's buttons: the item, and the digest that the card shows."""
    return json.dumps([card.suspension_id, card.item_id, card.digest], separators=(",", ":"))


def _list_facts(card: Card) -> Iterator[Block]:
    for warning in card.warnings:
        yield kit.labelled("Warning", limits.cut(warning, FACT_CHARS))
    if card.urgent and card.live:
        yield kit.labelled("Urgent", "a rule marks this item as urgent")
    yield kit.labelled("Tool", limits.cut(card.tool, FACT_CHARS), code=True)
    yield from (kit.labelled(fact.label, limits.cut(fact.text, FACT_CHARS)) for fact in card.facts)


def _write_rest(card: Card) -> Iterator[Block]:
    claims = [Line(claim.label, limits.cut(claim.text, CLAIM_CHARS)) for claim in card.claims[:CLAIMS]]
    if claims:
        yield kit.divider()
        yield kit.context(UNCHECKED)
        yield {"type": "rich_text", "elements": [kit.quote(claims)]}
    lines = [kit.labelled("Decision", limits.cut(decision, DECISION_CHARS)) for decision in card.decisions[-DECISIONS:]]
    if card.closing:
        lines.append(kit.labelled("Closed", limits.cut(card.closing, CLOSING_CHARS)))
    yield from kit.rich_texts(lines)


def _fit(title: Block, leaves: Sequence[Leaf], free: int) -> tuple[list[Block], int]:
    """Return the title and the blocks of the values that fit, in order, and how many characters do not.

    Two neighbouring blocks hold more than `SECTION_CHARS` together, so `MESSAGE_CHARS` keep within `MESSAGE_BLOCKS`.
    """
    parts: list[Block] = [title]
    for place, leaf in enumerate(leaves):
        row = _write_leaf(leaf)
        size = sum(limits.count_chars(kit.read_text(block)) for block in row)
        if size > min(free, limits.SECTION_CHARS):
            hidden = sum(len(leaf.path) + len(leaf.text) for leaf in leaves[place:])
            return list(kit.rich_texts([*parts, *_write_start(row, free)])), hidden
        parts += row
        free -= size
    return list(kit.rich_texts(parts)), 0


def _write_leaf(leaf: Leaf) -> list[Block]:
    path, text = write_signs(leaf.path) or "value", write_signs(leaf.text)
    if len(text) <= INLINE_CHARS and "\n" not in text:
        return [kit.labelled(path, text, code=True)]
    return [{"type": "rich_text_section", "elements": [kit.literal(f"{path}:", bold=True)]}, kit.preformatted(text)]


def _write_start(row: Sequence[Block], free: int) -> list[Block]:
    """Return the beginning of a value that does not fit, so that a reader recognizes it."""
    most = min(free, limits.SECTION_CHARS) - limits.count_chars(kit.read_text(row[0]))
    if len(row) == 1 or most < INLINE_CHARS:
        return []
    return [row[0], kit.preformatted(limits.cut(kit.read_text(row[1]).removesuffix("\n"), most))]


def _write_notes(card: Card, hidden: int) -> Iterator[Block]:
    if hidden:
        yield kit.context(
            f"Not all arguments fit here: some of the last {hidden} characters are missing. "
            "Open the item to read them and decide."
        )
    if card.masked:
        yield kit.context(card.masked_note)
