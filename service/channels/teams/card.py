"""The card of an item as an Adaptive Card.

Texts from outside are text runs, which have no Markdown. Runs of spaces become no-break spaces, because the clients
collapse them. Arguments that do not fit are omitted as a whole, and the card says so.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from sayso.core.canonical_json import canonical_json
from sayso.core.records.items import LONGEST_TEXT
from sayso.core.text.invisible import UNCHECKED, write_signs
from sayso.core.text.language import cut
from service.channels.base import CardAction, Rendered, allowed_actions, name_action
from service.channels.cards import Card, Entry, Line, build_digest

MESSAGE_BYTES = 28_000  # the longest card as JSON, in UTF-16
DIGEST_BYTES = 26_000  # the largest entries of a digest, which leave room for its title and rest
LINE_CHARS = 300
CLOSING_CHARS = 600
DECISIONS = 5
MOST_CHOICES = 50
REASON_CHARS = 2000

DECIDES = frozenset(CardAction) - {CardAction.OPEN, CardAction.EDIT}
CARD_TYPE = "application/vnd.microsoft.card.adaptive"

_FUNCTIONS = re.compile(r"\{\{\s*(DATE|TIME)\s*\(", re.IGNORECASE)
"""Clients replace these functions, so a text with one is not shown as it is."""

_SPACES = re.compile("^ | {2,}")
_SIGNS = str.maketrans({"\n": "↵ ", "\t": "⇥ "})  # signs for breaks inside of a text run, where clients show none
Element = dict[str, Any]

_FRAME: Element = {
    "type": "AdaptiveCard",
    "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
    "version": "1.4",
}


def render_card(card: Card, decides: frozenset[CardAction] = DECIDES) -> Rendered:
    """Return the Adaptive Card; `decides` are the actions that the channel takes."""
    args = card.args_text
    literal = _FUNCTIONS.search(args) is None
    complete = literal and not card.masked
    rendered = _fill(card, args if literal else "", complete=complete, decides=decides)
    if count_bytes(rendered.body) > MESSAGE_BYTES:
        rendered = _fill(card, "", complete=False, decides=decides)
    return rendered


def render_digest(cards: Sequence[Card]) -> Element:
    """Return the Adaptive Card about many open items."""
    digest = build_digest(cards, DIGEST_BYTES, lambda entry: count_bytes(_write_entry(entry)))
    rows = [row for entry in digest.entries for row in _write_entry(entry)]
    title, rest = _text(_run(digest.title, weight="Bolder", size="Medium")), [_text(_run(digest.rest))]
    return {**_FRAME, "body": [title, *rows, *(rest if digest.rest else [])]}


def count_bytes(body: Any) -> int:
    """Return the size of JSON as Teams counts it at most: in UTF-16."""
    return len(json.dumps(body, ensure_ascii=False).encode("utf-16-le", "surrogatepass"))


def _fill(card: Card, args: str, *, complete: bool, decides: frozenset[CardAction]) -> Rendered:
    actions = allowed_actions(card, complete=complete, decides=decides & DECIDES)
    if card.choices is not None and len(card.choices) > MOST_CHOICES:
        actions -= {CardAction.VALUE}
    elements = list(_list_elements(card, args))
    body: Element = {
        **_FRAME,
        "body": elements,
        "actions": [*_write_actions(card, actions), {"type": "Action.OpenUrl", "title": "Open", "url": card.link}],
    }
    if card.live and decides:
        body["refresh"] = {"action": _execute("Refresh", "refresh", card)}
    return Rendered(body, "\n".join(map(read_text, elements)), complete, actions)


def read_text(element: Element) -> str:
    """Return the text of an element as a reader sees it, with plain spaces."""
    return "".join(run["text"] for run in element["inlines"]).replace("\u00a0", " ")


def _list_elements(card: Card, args: str) -> Iterator[Element]:
    if card.urgent and card.live:
        yield _text(_run("Urgent", weight="Bolder", color="Attention"))
    yield _text(_run(card.headline, weight="Bolder", size="Medium"))
    yield from (_labelled(Line("Warning", warning)) for warning in card.warnings)
    yield from map(_labelled, card.facts)
    if args:
        yield _text(_run(f"{', '.join(card.args_title)}:", weight="Bolder"))
        yield from (_text(_run(line, fontType="Monospace"), spacing="None") for line in args.split("\n"))
    else:
        count = len(card.args_text)
        yield _text(_run(f"The arguments have {count} characters that cannot be shown here. Open the item to decide."))
    if card.masked:
        yield _text(_run(card.masked_note))
    if card.claims:
        yield _text(_run(UNCHECKED, italic=True), separator=True)
        yield from map(_labelled, card.claims)
    yield from (_labelled(Line("Decision", decision)) for decision in card.decisions[-DECISIONS:])
    if card.closing:
        yield _text(_run("Closed: ", weight="Bolder"), _run(cut(card.closing, CLOSING_CHARS)), separator=True)


def _write_actions(card: Card, actions: frozenset[CardAction]) -> Iterator[Element]:
    names = {action: name_action(card, action) for action in actions}
    if CardAction.APPROVE in actions:
        yield _execute(names[CardAction.APPROVE], CardAction.APPROVE, card, "positive")
    if CardAction.VALUE in actions:
        yield _ask(names[CardAction.VALUE], _write_input(card), _execute("Send", CardAction.VALUE, card))
    if CardAction.DENY in actions:
        deny = "Keep it" if card.reverses else "Deny"
        asked = _write_field("reason", "Reason, if you give one", REASON_CHARS)
        yield _ask(names[CardAction.DENY], asked, _execute(deny, CardAction.DENY, card, "destructive"))
    if CardAction.CHANGES in actions:
        asked = _write_field("changes", "What to change; the agent gets it", REASON_CHARS)
        yield _ask(names[CardAction.CHANGES], asked, _execute("Request changes", CardAction.CHANGES, card))
    if CardAction.ASK in actions:
        asked = _write_field("question", "Question to the requester", LONGEST_TEXT)
        yield _ask(names[CardAction.ASK], asked, _execute("Send question", CardAction.ASK, card))
    if CardAction.UNDO in actions:
        yield _execute(names[CardAction.UNDO], CardAction.UNDO, card)


def _write_field(name: str, label: str, most: int) -> Element:
    return {"type": "Input.Text", "id": name, "isMultiline": True, "maxLength": most, "label": label}


def _write_input(card: Card) -> Element:
    if card.choices is None:
        return {"type": "Input.Text", "id": "value", "isMultiline": True, "label": "Value, as text or JSON"}
    texts = [(canonical_json(choice).decode(), choice) for choice in card.choices]
    choices = [
        {"title": write_signs(choice if isinstance(choice, str) else text), "value": text} for text, choice in texts
    ]
    return {"type": "Input.ChoiceSet", "id": "value", "style": "compact", "label": "Value", "choices": choices}


def _write_entry(entry: Entry) -> list[Element]:
    opens = {"type": "Action.OpenUrl", "url": entry.link}
    return [_text(_run(entry.text), separator=True), _text(_run(entry.link, selectAction=opens), spacing="None")]


def _ask(title: str, field: Element, action: Element) -> Element:
    shown = {"type": "AdaptiveCard", "body": [field], "actions": [action]}
    return {"type": "Action.ShowCard", "title": title, "card": shown}


def _execute(title: str, verb: str, card: Card, style: str = "") -> Element:
    """Return a control that leads to the bot; those of an offer to undo a call have no style."""
    data = {"suspension_id": card.suspension_id, "item_id": card.item_id, "digest": card.digest}
    action = {"type": "Action.Execute", "title": title, "verb": str(verb), "data": data}
    return {**action, "style": style} if style and not card.reverses else action


def _labelled(line: Line) -> Element:
    return _text(_run(f"{line.label}: ", weight="Bolder"), _run(cut(line.text, LINE_CHARS)))


def _text(*runs: Element, **fields: Any) -> Element:
    return {"type": "RichTextBlock", **fields, "inlines": list(runs)}


def _run(text: str, **fields: Any) -> Element:
    kept = _SPACES.sub(lambda match: "\u00a0" * len(match[0]), text.translate(_SIGNS))
    return {"type": "TextRun", "text": kept or "\u00a0", **fields}
