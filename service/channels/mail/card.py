"""Cards as mails: a text and an HTML part, each with one link to the item's page, which requires a sign-in."""

from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape
from markupsafe import escape

from sayso.core.text.invisible import UNCHECKED
from sayso.core.text.language import cut
from service.channels.base import Rendered, allowed_actions
from service.channels.cards import Card, Line
from service.channels.digests import Digest, Entry, build_digest
from service.settings import CHECKOUT

LARGEST_HTML_BYTES = 100_000
"""Some mail programs clip a message at 102 kB."""

DIGEST_BYTES = 80_000
"""The largest entries of a digest, without the frame of the mail."""

LONGEST_LINE_CHARS = 1_000
LONGEST_SUBJECT_CHARS = 150


class MailBody(NamedTuple):
    """The parts of a mail. The subject is the same for all mails of an item, because threads depend on it."""

    subject: str
    text: str
    html: str


def render_card(card: Card) -> Rendered:
    """Return the card as a mail. Arguments that do not fit are left out as a whole, and both parts say so."""
    body = _fill(card, card.args_text)
    complete = not card.masked
    if len(body.html.encode()) > LARGEST_HTML_BYTES:
        body, complete = _fill(card, ""), False
    actions = allowed_actions(card, complete=complete, decides=frozenset())
    return Rendered(body, body.text, complete, actions)


def render_code(person: str, code: str, page: str) -> MailBody:
    """Return the mail with the code that links its address to a person."""
    context = {"person": person, "code": code, "page": page}
    return MailBody(
        "Sayso: your code", *(_ENVIRONMENT.get_template(f"mail/code.{part}").render(context) for part in _PARTS)
    )


def render_digest(cards: Sequence[Card]) -> MailBody:
    """Return the mail about many open items."""
    digest = build_digest(cards, DIGEST_BYTES, _count_bytes)
    context: dict[str, Digest] = {"digest": digest}
    parts = (_ENVIRONMENT.get_template(f"mail/digest.{part}").render(context) for part in _PARTS)
    return MailBody(one_line(f"[Sayso] {digest.title}", LONGEST_SUBJECT_CHARS), *parts)


def one_line(text: str, limit: int) -> str:
    """Return the text on one line, for a header."""
    return cut(" ".join(text.split()), limit)


def _fill(card: Card, args_text: str) -> MailBody:
    context = {
        "card": card,
        "facts": [Line(label, _shorten(text)) for label, text in card.facts],
        "claims": [Line(label, _shorten(text)) for label, text in card.claims],
        "args_text": args_text,
        "omitted": len(card.args_text) if not args_text else 0,
        "UNCHECKED": UNCHECKED,
    }
    subject = one_line(f"[Sayso] {card.tool} for {card.agent}", LONGEST_SUBJECT_CHARS)
    return MailBody(subject, *(_ENVIRONMENT.get_template(f"mail/card.{part}").render(context) for part in _PARTS))


def _shorten(text: str) -> str:
    """Return a text without its end where it is too long, and say so."""
    if len(text) <= LONGEST_LINE_CHARS:
        return text
    rest = len(text) - LONGEST_LINE_CHARS
    return f"{text[:LONGEST_LINE_CHARS]}… ({rest} more characters are on the page)"


def _count_bytes(entry: Entry) -> int:
    """Return the size of an entry in HTML, with room for its tags."""
    return len(str(escape(f"{entry.text}{entry.link}")).encode()) + 400


_PARTS = ("txt", "html")
_ENVIRONMENT = Environment(
    loader=FileSystemLoader(CHECKOUT / "templates"),
    autoescape=select_autoescape(("html",)),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
