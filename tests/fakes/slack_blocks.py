"""Slack's limits on messages and views, as its servers check them; slack-sdk's models judge as well."""

from collections.abc import Iterator, Sequence
from typing import Any

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
MESSAGE_CHARS = 13_200

_ELEMENTS = {"actions": 25, "context": 10}
_RICH = {"rich_text_section", "rich_text_preformatted", "rich_text_quote"}
_TEXT_LIMITS = {"header": 150, "section": 3000}


def find_message_faults(message: dict[str, Any]) -> list[str]:
    """Return why Slack would refuse the message; empty for a valid one."""
    blocks = message.get("blocks")
    if blocks is None:
        return [] if message.get("text") else ["no_text"]
    faults = list(_check_blocks(blocks, MESSAGE_BLOCKS))
    if sum(len(text) for text in _texts(blocks)) > MESSAGE_CHARS:
        faults.append("msg_blocks_too_long")
    return faults


def find_view_faults(view: dict[str, Any]) -> list[str]:
    """Return why Slack would refuse the view; empty for a valid one."""
    faults = list(_check_blocks(view.get("blocks"), VIEW_BLOCKS))
    if view.get("type") not in ("modal", "home"):
        faults.append(f"a view of the type {view.get('type')}")
    if view.get("type") == "modal":
        inputs = any(one["type"] == "input" for one in view["blocks"])
        faults += ["a modal without a title"] if not view.get("title") else []
        faults += ["inputs without submit"] if inputs and not view.get("submit") else []
    keys = [one.get("block_id") for one in view["blocks"] if one.get("block_id")]
    faults += ["block_id twice"] if len(keys) != len(set(keys)) else []
    known = {key: value for key, value in view.items() if key != "blocks"}
    try:
        View(**known, blocks=[{"type": "divider"}]).validate_json()
    except SlackObjectFormationError as error:
        faults.append(str(error))
    return faults


def _check_blocks(blocks: Any, most: int) -> Iterator[str]:
    if not isinstance(blocks, list) or not 0 < len(blocks) <= most:
        yield f"not 1 to {most} blocks"
        return
    for block in blocks:
        yield from _check_block(block)
        try:
            parsed = Block.parse(block)
            if parsed is None:
                yield f"an unknown block: {block.get('type')}"
            else:
                parsed.to_dict()
        except (SlackObjectFormationError, TypeError) as error:
            yield f"{block.get('type')}: {error}"


def _check_block(block: dict[str, Any]) -> Iterator[str]:
    kind = block["type"]
    if kind in _TEXT_LIMITS:
        yield from _check_text(block.get("text"), _TEXT_LIMITS[kind])
    elements: Sequence[dict[str, Any]] = block.get("elements", ())
    if kind in _ELEMENTS and not 0 < len(elements) <= _ELEMENTS[kind]:
        yield f"{kind} with {len(elements)} elements"
    for element in elements:
        if kind == "rich_text":
            yield from _check_rich(element)
        elif kind == "context":
            yield from _check_text(element, 3000)
        elif kind == "actions":
            yield from _check_button(element)
    actions = [one.get("action_id") for one in elements if "action_id" in one]
    if len(actions) != len(set(actions)):
        yield "action_id twice"
    if kind == "input":
        yield from _check_input(block)


def _check_rich(element: dict[str, Any]) -> Iterator[str]:
    if element.get("type") not in _RICH or not element.get("elements"):
        yield f"a rich-text element {element.get('type')}"
        return
    for one in element["elements"]:
        if one.get("type") == "link" and set(one) == {"type", "url"} and one["url"].startswith("http"):
            continue
        if one.get("type") != "text" or not isinstance(one.get("text"), str) or not one["text"]:
            yield "an empty or unknown rich-text part"
        if set(one) - {"type", "text", "style"} or set(one.get("style", ())) - {"bold", "code", "italic", "strike"}:
            yield "an unknown rich-text field"


def _check_button(element: dict[str, Any]) -> Iterator[str]:
    if element.get("type") != "button":
        yield f"an element {element.get('type')}"
    yield from _check_text(element.get("text"), 75)
    if len(element.get("action_id", "")) > 255 or len(element.get("value", "")) > 2000:
        yield "an action_id or value that is too long"
    if len(element.get("url", "")) > 3000 or element.get("style", "primary") not in ("primary", "danger"):
        yield "a wrong url or style"


def _check_input(block: dict[str, Any]) -> Iterator[str]:
    yield from _check_text(block.get("label"), 2000)
    element = block.get("element", {})
    if element.get("type") == "plain_text_input":
        if len(element.get("initial_value", "")) > min(3000, element.get("max_length", 3000)):
            yield "an initial value that is too long"
        if not 0 < element.get("max_length", 3000) <= 3000:
            yield "a wrong max_length"
    elif element.get("type") == "static_select":
        options = element.get("options", [])
        if not 0 < len(options) <= 100:
            yield "not 1 to 100 options"
        for option in options:
            yield from _check_text(option.get("text"), 75)
            if len(option.get("value", "")) > 150:
                yield "a value that is too long"
        if "initial_option" in element and element["initial_option"] not in options:
            yield "an initial option that is none of the options"
    else:
        yield f"an input of the type {element.get('type')}"


def _check_text(text: Any, most: int) -> Iterator[str]:
    if not isinstance(text, dict) or text.get("type") not in ("plain_text", "mrkdwn"):
        yield "no text object"
    elif not 0 < len(text.get("text", "")) <= most:
        yield f"must be 1 to {most} characters"


def _texts(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for one in part:
            yield from _texts(one)
    elif isinstance(part, dict):
        for key, value in part.items():
            if key == "text" and isinstance(value, str):
                yield value
            elif isinstance(value, list | dict):
                yield from _texts(value)


def read_screen(blocks: Any) -> str:
    """Return what a reader of the message sees, one line for each part."""
    lines: list[str] = []
    for block in blocks:
        for part in [block, *block.get("elements", ())]:
            inner = part.get("elements", [part]) if part.get("type", "").startswith("rich_text_") else [part]
            text = "".join(_shown(one) for one in inner)
            lines += [text] if text else []
    return "\n".join(lines)


def _shown(part: dict[str, Any]) -> str:
    text = part.get("text")
    if part.get("type") == "link":
        return str(part["url"])
    if isinstance(text, str) and part.get("type") == "text":
        return text
    holder = part if part.get("type") in ("plain_text", "mrkdwn") else text
    if not isinstance(holder, dict):
        return ""
    plain = str(holder["text"])
    unescaped = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return unescaped if holder["type"] == "mrkdwn" else plain


def list_buttons(blocks: Any) -> list[dict[str, Any]]:
    """Return the buttons of a message."""
    return [one for block in blocks if block["type"] == "actions" for one in block["elements"]]
