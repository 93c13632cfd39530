"""Parts of Block Kit messages and views. Texts from outside are literal: nothing in them is markup."""

from collections.abc import Iterable, Iterator
from typing import Any

from service.channels.slack.limits import ACTION_ID_CHARS, BUTTON_CHARS, PLAIN_CHARS, SECTION_CHARS, count_chars, cut

Block = dict[str, Any]

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def escape(text: str) -> str:
    """Return a text for an mrkdwn field, in which it can form neither mention nor link."""
    return text.translate(_ESCAPES)


def plain(text: str, most: int = PLAIN_CHARS) -> Block:
    """Return a plain text object; it is never empty."""
    return {"type": "plain_text", "text": cut(text, most) or " ", "emoji": False}


def header(text: str) -> Block:
    """Return a heading."""
    return {"type": "header", "text": plain(text)}


def context(text: str) -> Block:
    """Return a small line in plain text."""
    return {"type": "context", "elements": [plain(text, SECTION_CHARS)]}


def divider() -> Block:
    """Return a horizontal line."""
    return {"type": "divider"}


def literal(text: str, *, bold: bool = False, code: bool = False) -> Block:
    """Return text for a rich-text part."""
    style = {name: True for name, chosen in (("bold", bold), ("code", code)) if chosen}
    return {"type": "text", "text": text, **({"style": style} if style else {})}


def link(url: str) -> Block:
    """Return a link for a rich-text part, which shows its address."""
    return {"type": "link", "url": url}


def labelled(label: str, text: str, *, code: bool = False) -> Block:
    """Return one line of rich text: the label in bold, then the text."""
    return {"type": "rich_text_section", "elements": [literal(f"{label}: ", bold=True), literal(text, code=code)]}


def preformatted(text: str) -> Block:
    """Return a rich-text part with the text exactly as it is."""
    return {"type": "rich_text_preformatted", "elements": [literal(text)]}


def quote(lines: Iterable[tuple[str, str]]) -> Block:
    """Return a quotation with labelled lines."""
    parts: list[Block] = []
    for place, (label, text) in enumerate(lines):
        parts += [literal(f"{chr(10) if place else ''}{label}: ", bold=True), literal(text)]
    return {"type": "rich_text_quote", "elements": parts}


def rich_texts(elements: Iterable[Block]) -> Iterator[Block]:
    """Yield rich-text blocks with the elements, each block within `SECTION_CHARS` where the elements allow it."""
    group: list[Block] = []
    size = 0
    for element in elements:
        length = count_chars(read_text(element))
        if group and size + length > SECTION_CHARS:
            yield {"type": "rich_text", "elements": group}
            group, size = [], 0
        group.append(element)
        size += length
    if group:
        yield {"type": "rich_text", "elements": group}


def button(text: str, action: str, value: str, *, style: str = "", url: str = "") -> Block:
    """Return a button; one with a `url` opens a page."""
    block = {"type": "button", "text": plain(text, BUTTON_CHARS), "action_id": f"sayso:{action}"[:ACTION_ID_CHARS]}
    return {**block, "value": value, **({"style": style} if style else {}), **({"url": url} if url else {})}


def read_text(part: Any) -> str:
    """Return the text of blocks as a reader sees it."""
    if isinstance(part, list):
        return "".join(map(read_text, part))
    if not isinstance(part, dict):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"])
    text = read_text(part.get("text")) + read_text(part.get("elements")) + read_text(part.get("fields"))
    return text + "\n" if part.get("type") in _LINES else text


_LINES = frozenset({"header", "section", "context", "button", "rich_text_section", "rich_text_preformatted"}) | {
    "rich_text_quote"
}
"""The types that end a line."""
