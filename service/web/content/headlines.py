"""The headline of an item in a list: what would run, from the stored arguments."""

import re
from dataclasses import dataclass

from sayso.core.records.items import Item
from sayso.core.rendering.views import View
from sayso.core.text.summaries import Leaf, summarize

_IN_HEADLINE = 2


@dataclass(frozen=True)
class Headline:
    """The tool with the first arguments, the arguments of the second line, and the number of the others."""

    tool: str
    first: tuple[Leaf, ...]
    rest: tuple[Leaf, ...]
    hidden_values: int


def make_headline(item: Item, view: View) -> Headline:
    """Return the headline of an item whose secrets are masked, without arguments that the view's headline names."""
    summary = summarize(item.tool.args)
    shown = tuple(leaf for leaf in summary.shown if view.renderer == "tree" or not _names(view.headline, leaf))
    return Headline(item.tool.name, shown[:_IN_HEADLINE], shown[_IN_HEADLINE:], summary.hidden_values)


def _names(headline: str, leaf: Leaf) -> bool:
    return not leaf.cut and bool(re.search(rf"(?<!\w){re.escape(leaf.text)}(?!\w)", headline))
