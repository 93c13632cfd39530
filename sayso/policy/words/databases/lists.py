"""Lists of words that are written as a text."""


def parse_list(text: str) -> frozenset[str]:
    """Return the words of a text that blanks part."""
    return frozenset(text.split())
