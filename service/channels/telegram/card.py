"""The card of an item as a Telegram message in HTML, where no text from outside becomes a link."""

from base64 import urlsafe_b64encode
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from sayso.core.text.invisible import UNCHECKED
from sayso.core.text.language import count_units
from service.channels.base import CardAction, Rendered, allowed_actions, name_action
from service.channels.cards import FRAME_CHARS, Card, Line, build_digest

MESSAGE_UNITS = 4096  # the longest text without its tags, in UTF-16 units
CALLBACK_BYTES = 64  # the most bytes that a button carries
LINE_UNITS = 140
CLOSING_UNITS = 400
DECISIONS = 3  # with all parts at their longest, the message has room for the note that the arguments do not fit
DECIDES = frozenset(CardAction) - {CardAction.OPEN, CardAction.EDIT}

_ROWS = (
    (CardAction.APPROVE, CardAction.VALUE, CardAction.DENY, CardAction.UNDO),
    (CardAction.CHANGES, CardAction.ASK),
)
"""The rows of buttons; on a phone a row has room for three short names."""

_CODES = {
    CardAction.APPROVE: "a",
    CardAction.VALUE: "v",
    CardAction.DENY: "d",
    CardAction.CHANGES: "c",
    CardAction.ASK: "q",
    CardAction.UNDO: "u",
}
_ACTIONS = {code: action for action, code in _CODES.items()}
_PREFIX = "sus_"
_MARK_CHARS = 22  # the least of the digest that a button carries: 128 bits
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class Control(NamedTuple):
    """What a button names: an action, the item, and the beginning of the digest that the card shows."""

    action: CardAction
    suspension_id: str
    item_id: str
    mark: str


class Part(NamedTuple):
    """A part of a message: in HTML, and as a reader sees it."""

    html: str
    text: str


def render_card(card: Card, decides: frozenset[CardAction] = DECIDES) -> Rendered:
    """Return the message of a card; `decides` are the actions that the channel takes."""
    before, after = list(_write_facts(card)), list(_write_rest(card))
    host = urlsplit(card.link).hostname or ""  # Telegram accepts no other addresses in buttons
    button = {"text": "Open", "url": card.link} if "." in host or ":" in host else None
    if not button:
        after.append(Part(f"<b>Open:</b> {_block('code', card.link).html}", f"Open: {card.link}"))
    args = [_plain(f"{', '.join(card.args_title)}:"), _block("pre", card.args_text)]
    whole = _join([*before, *args, *after])
    fits = count_units(whole.text) <= MESSAGE_UNITS
    if not fits:
        note = f"The arguments have {len(card.args_text)} characters, too many to show here. Open the item to decide."
        whole = _join([*before, _plain(note), *after])
    complete = fits and not card.masked
    actions = allowed_actions(card, complete=complete, decides=decides & DECIDES)
    data = {action: write_data(card, action) for action in actions - {CardAction.OPEN}}
    actions -= {action for action, text in data.items() if not text}
    rows = [
        [{"text": name_action(card, action), "callback_data": data[action]} for action in row if data.get(action)]
        for row in _ROWS
    ]
    body = {
        "text": whole.html,
        "parse_mode": "HTML",
        "link_preview_options": {"is_disabled": True},
        "reply_markup": {"inline_keyboard": [row for row in (*rows, [button] if button else []) if row]},
    }
    return Rendered(body, whole.text, complete, frozenset(actions))


def write_digest(cards: Sequence[Card]) -> str:
    """Return the text of a message about many open items, in HTML."""
    free = MESSAGE_UNITS - FRAME_CHARS
    digest = build_digest(cards, free, lambda entry: count_units(f"{entry.text}\n{entry.link}\n"))
    parts = [_plain(digest.title)]
    for entry in digest.entries:
        parts += [_block("code", entry.text), Part(escape(entry.link), entry.link)]
    return _join([*parts, *([_plain(digest.rest)] if digest.rest else [])]).html


def write_data(card: Card, action: CardAction) -> str:
    """Return what a button carries, with as much of the digest as fits; empty for an item that does not fit."""
    start = f"{_CODES.get(action, '')}{card.suspension_id.removeprefix(_PREFIX)}.{card.item_id.removeprefix('i')}."
    mark = _pack(card.digest)[: CALLBACK_BYTES - len(start.encode())]
    known = card.suspension_id.startswith(_PREFIX) and card.item_id.startswith("i") and action in _CODES
    return f"{start}{mark}" if known and len(mark) >= _MARK_CHARS else ""


def read_data(data: str) -> Control | None:
    """Return what a button names, or None for anything that is no data of a card."""
    parts = data[1:].split(".")
    action = _ACTIONS.get(data[:1])
    if action is None or len(parts) != 3 or not all(parts):
        return None
    return Control(action, f"{_PREFIX}{parts[0]}", f"i{parts[1]}", parts[2])


def matches(control: Control, digest: str) -> bool:
    """Return whether the card of a button showed the item with this digest."""
    mark = _pack(digest)
    return len(control.mark) >= _MARK_CHARS and mark.startswith(control.mark)


def escape(text: str) -> str:
    """Return a text that is no markup."""
    return text.translate(_ESCAPES)


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` units, with `…` where it was cut."""
    if count_units(text) <= most:
        return text
    return f"{text.encode('utf-16-le', 'surrogatepass')[: 2 * most - 2].decode('utf-16-le', 'ignore')}…"


def _pack(digest: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")


def _write_facts(card: Card) -> Iterator[Part]:
    if card.urgent and card.live:
        yield _plain("Urgent")
    yield Part(f"<b>{escape(card.headline)}</b>", card.headline)
    yield from (_labelled(Line("Warning", warning)) for warning in card.warnings)
    yield from map(_labelled, card.facts)


def _write_rest(card: Card) -> Iterator[Part]:
    if card.masked:
        yield _plain(card.masked_note)
    if card.claims:
        quote = _join([_labelled(claim) for claim in card.claims])
        yield Part(f"<i>{escape(UNCHECKED)}</i>", UNCHECKED)
        yield Part(f"<blockquote>{quote.html}</blockquote>", quote.text)
    yield from (_labelled(Line("Decision", decision)) for decision in card.decisions[-DECISIONS:])
    if card.closing:
        text = cut(card.closing, CLOSING_UNITS)
        yield Part(f"<b>Closed:</b> {_block('code', text).html}", f"Closed: {text}")


def _labelled(line: Line) -> Part:
    text = cut(line.text, LINE_UNITS)
    return Part(f"<b>{escape(line.label)}:</b> {_block('code', text).html}", f"{line.label}: {text}")


def _plain(text: str) -> Part:
    return Part(f"<b>{escape(text)}</b>", text)


def _block(tag: str, text: str) -> Part:
    return Part(f"<{tag}>{escape(text)}</{tag}>", text)


def _join(parts: Sequence[Part]) -> Part:
    return Part("\n".join(part.html for part in parts), "\n".join(part.text for part in parts))
