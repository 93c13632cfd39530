"""Flags of an item in the inbox."""

from sayso.core.records.decisions import Actor
from sayso.core.records.items import Item
from sayso.core.records.terms import FallbackAction
from sayso.core.rendering.flags import name_flags
from sayso.core.rendering.views import View


def list_flags(item: Item, view: View, reviewer: Actor, *, held: bool) -> tuple[str, ...]:
    """Return the two most severe flags of an open item, as the reviewer sees it."""
    return name_flags(
        item.tool.name,
        view,
        doubt=item.doubt is not None,
        resembles=bool(item.resembles),
        unattended=item.terms.fallback.action is FallbackAction.APPROVE,
        alone=item.terms.reviewers == (reviewer.id,),
        held=held,
    )
