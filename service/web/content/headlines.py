"""The headline of an item in a list: what would run, from the stored arguments."""

from dataclasses import dataclass

from sayso.records.items import Item
from sayso.text.summaries import Leaf, summarize

_IN_HEADLINE = 2


@dataclass(frozen=True)
class Headline:
    """The tool with the first arguments, the arguments of the second line, and the number and length of the others."""

    tool: str
    first: tuple[Leaf, ...]
    rest: tuple[Leaf, ...]
    hidden_values: int
    hidden_chars: int


def make_headline(item: Item) -> Headline:
    """Return the headline of an item whose secrets are masked."""
    summary = summarize(item.tool.args)
    first, rest = summary.shown[:_IN_HEADLINE], summary.shown[_IN_HEADLINE:]
    return Headline(item.tool.name, first, rest, summary.hidden_values, summary.hidden_chars)
