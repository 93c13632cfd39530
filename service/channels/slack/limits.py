"""Limits of Slack for messages and modals, and its count of characters."""

SECTION_CHARS = 3000  # also the most text that one rich-text block is given
PLAIN_CHARS = 150
BUTTON_CHARS = 75
ACTION_ID_CHARS = 255
MESSAGE_BLOCKS = 50
MESSAGE_CHARS = 12_000  # the text of all blocks of a message; Slack answers `msg_blocks_too_long` a little above
MODAL_BLOCKS = 100
MODAL_TITLE_CHARS = 24
LABEL_CHARS = 2000
INPUT_CHARS = 3000
OPTIONS = 100
OPTION_CHARS = 75
METADATA_CHARS = 3000


def count_chars(text: str) -> int:
    """Return the length as Slack counts it at most: UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters as Slack counts them, with `…` where it was cut."""
    if count_chars(text) <= most:
        return text
    kept = text[: most - 1]
    while count_chars(kept) > most - 1:
        kept = kept[:-1]
    return f"{kept}…"
