"""What is unusual about a call among earlier approved calls of the same agent and tool."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import ceil
from statistics import median

from sayso.canonical_json import JsonObject
from sayso.precedents.measures import Measures, find_measures
from sayso.rendering.calls import shorten
from sayso.rendering.views import Flag
from sayso.text.language import _

ENOUGH = 5
"""The earlier calls below which nothing is called unusual."""

ENOUGH_FOR_P95 = 20
FAR_TIMES = 5
"""The multiple of a median from which a number is far off, however few numbers there are."""


def find_unusual(args: JsonObject, earlier: Sequence[Measures]) -> list[Flag]:
    """Return a flag for a recipient never seen, and one for each quantity above the 95th percentile."""
    if len(earlier) < ENOUGH:
        return []
    measures = find_measures(args)
    return [*_check_recipients(measures, earlier), *_check_quantities(measures, earlier)]


def is_far(number: Decimal, known: Sequence[Decimal]) -> bool:
    """Whether a number is more than five times the median of these."""
    middle = median(known)
    return middle > 0 and number > FAR_TIMES * middle


def name_ratio(number: Decimal, known: Sequence[Decimal]) -> str:
    """Return how much larger a number is than usual, such as `38x usual`."""
    middle = median(known)
    ratio = number / middle if middle > 0 else Decimal(0)
    return _("%(times)sx usual", times=f"{ratio:.0f}") if ratio >= 2 else _("more than usual")


def _check_quantities(measures: Measures, earlier: Sequence[Measures]) -> Iterator[Flag]:
    for key, number in measures.quantities.items():
        known = sorted(call.quantities[key] for call in earlier if key in call.quantities)
        if len(known) < ENOUGH or number <= known[ceil(0.95 * len(known)) - 1]:
            continue
        if len(known) < ENOUGH_FOR_P95 and not is_far(number, known):
            continue
        label = name_ratio(number, known)
        sentence = _(
            "%(label)s: %(name)s %(number)s is above 95%% of the last %(count)s approved calls of this agent; "
            "their median is %(median)s.",
            label=label,
            name=shorten(key),
            number=f"{number:,}",
            count=len(known),
            median=f"{median(known):,}",
        )
        yield Flag(sentence[:1].upper() + sentence[1:], label=label)


def _check_recipients(measures: Measures, earlier: Sequence[Measures]) -> Iterator[Flag]:
    """Flag a new recipient only where recipients recur: a refund usually goes to somebody new."""
    addressed = [call.recipients for call in earlier if call.recipients]
    known = {recipient for recipients in addressed for recipient in recipients}
    if len(addressed) < ENOUGH or 2 * len(known) > sum(map(len, addressed)):
        return
    for recipient, text in measures.recipients.items():
        if recipient not in known:
            sentence = _(
                "New recipient: %(name)s is in none of the last %(count)s approved calls of this agent.",
                name=shorten(text),
                count=len(addressed),
            )
            yield Flag(sentence, label=_("new recipient"))
