"""Lengths of texts as providers count them."""


def count_units(text: str) -> int:
    """Return the length in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def cut(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with `…` where it was cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
