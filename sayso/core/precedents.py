"""What is unusual about a call among earlier approved calls of the same agent and tool, and which calls are near."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from math import ceil
from statistics import median

from pydantic import JsonValue
from pydantic_core import to_json

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.rendering.money import AMOUNTS, CURRENCIES, NUMBER, TO, TO_ALSO
from sayso.core.rendering.views import Flag, normalize, shorten
from sayso.core.text.language import _
from sayso.core.text.numbers import write_number

_MOST_VALUES = 200  # values that are read of a call, so that a large one costs no more than a small one
_MOST_QUANTITIES, _MOST_RECIPIENTS, _MOST_PATH_CHARS = 8, 20, 80
_RECIPIENTS = frozenset((*TO, *TO_ALSO, "recipients", "cc", "bcc", "email", "emailaddress", "toemail", "toaddress"))
_AMOUNTS, _CURRENCIES = frozenset(AMOUNTS), frozenset(CURRENCIES)
_NAME_ONLY = re.compile(
    r"(id|number|no|code|port|year|phone|zip|index|version|timestamp|date|time|at|page|offset|line)$"
)
"""Endings of names whose numbers only name something."""


@dataclass(frozen=True)
class Measures:
    """Quantities by path and currency, and recipients by the hash of their text; earlier calls keep the hash alone."""

    quantities: Mapping[str, Decimal]
    recipients: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.quantities or self.recipients)


def find_measures(args: JsonObject) -> Measures:
    """Return the measures of a call, from its first values."""
    values = list(islice(_walk(args), _MOST_VALUES))
    currencies = {value.upper() for _, name, _, value in values if name in _CURRENCIES and isinstance(value, str)}
    currency = currencies.pop() if len(currencies) == 1 else ""
    quantities: dict[str, Decimal] = {}
    recipients: dict[str, str] = {}
    for path, name, is_recipient, value in values:
        number = read_quantity(name, _write_number(value), is_text=isinstance(value, str))
        if number is not None:
            key = f"{path} {currency}" if currency and name in _AMOUNTS else path
            if len(key) <= _MOST_PATH_CHARS:
                quantities[key] = max(number, quantities.get(key, number))
        elif is_recipient and isinstance(value, str) and value.strip():
            recipients[sha256(value.strip().casefold().encode(errors="surrogatepass")).hexdigest()[:12]] = value
    first = dict(islice(quantities.items(), _MOST_QUANTITIES))
    return Measures(first, dict(islice(recipients.items(), _MOST_RECIPIENTS)))


def read_quantity(name: str, text: str, *, is_text: bool) -> Decimal | None:
    """Return a number that measures something, given the normalized name of its argument; amounts may be texts."""
    if (is_text and name not in _AMOUNTS) or _NAME_ONLY.search(name) or not NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def write_measures(measures: Measures) -> str:
    """Return the stored form, without the texts of recipients."""
    quantities = {key: str(number) for key, number in measures.quantities.items()}
    return to_json([quantities, [*measures.recipients]]).decode()


def read_measures(written: str | bytes) -> Measures:
    """Return stored measures; what cannot be read is empty."""
    try:
        quantities, recipients = json.loads(written)
        return Measures({key: Decimal(number) for key, number in quantities.items()}, dict.fromkeys(recipients, ""))
    except (AttributeError, InvalidOperation, TypeError, ValueError):
        return Measures({}, {})


def _write_number(value: JsonValue) -> str:
    """Return a number or a text of its length; Python refuses to write longer integers."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return ""
    return "" if isinstance(value, int) and abs(value) > 10**15 else str(value)


def _walk(args: JsonObject) -> Iterator[tuple[str, str, bool, JsonValue]]:
    """Yield the path without indexes, the normalized name, whether it is below a recipient, and the value of each."""
    stack: list[Iterator[tuple[str, str, bool, JsonValue]]] = [_list_keys("", False, args)]
    while stack:
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        path, name, is_recipient, value = entry
        if isinstance(value, dict):
            stack.append(_list_keys(f"{path}.", is_recipient, value))
        elif isinstance(value, list):
            stack.append(_list_elements(f"{path}[]", name, is_recipient, value))
        else:
            yield entry


def _list_elements(
    path: str, name: str, is_recipient: bool, values: list[JsonValue]
) -> Iterator[tuple[str, str, bool, JsonValue]]:
    for value in values:
        yield path[: _MOST_PATH_CHARS + 1], name, is_recipient, value


_normalize = lru_cache(4096)(normalize)


def _list_keys(before: str, is_recipient: bool, fields: JsonObject) -> Iterator[tuple[str, str, bool, JsonValue]]:
    for key, value in fields.items():
        name = _normalize(key[:_MOST_PATH_CHARS])
        yield f"{before}{key}"[: _MOST_PATH_CHARS + 1], name, is_recipient or name in _RECIPIENTS, value


ENOUGH = 5  # the earlier calls below which nothing is called unusual
ENOUGH_FOR_P95 = 20
FAR_TIMES = 5  # the multiple of a median from which a number is far off, however few numbers there are


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


def _check_quantities(measures: Measures, earlier: Sequence[Measures]) -> Iterator[Flag]:
    for key, number in measures.quantities.items():
        known = sorted(call.quantities[key] for call in earlier if key in call.quantities)
        if len(known) < ENOUGH or number <= known[ceil(0.95 * len(known)) - 1]:
            continue
        if len(known) < ENOUGH_FOR_P95 and not is_far(number, known):
            continue
        middle = median(known)
        ratio = number / middle if middle > 0 else Decimal(0)
        label = _("%(times)sx usual", times=f"{ratio:.0f}") if ratio >= 2 else _("more than usual")
        sentence = _(
            "%(label)s: %(name)s %(number)s is above 95%% of the last %(count)s approved calls of this agent; "
            "their median is %(median)s.",
            label=label,
            name=shorten(key),
            number=write_number(number),
            count=len(known),
            median=write_number(middle),
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


_SUBJECTS = re.compile(
    r"(id|no|key|order|ordernumber|customer|user|person|ticket|case|invoice|contract|path|file|filename|url|uri|host"
    r"|hostname|server|cluster|email|address|table|bucket|repo|repository|service|resource|target|channel|iban|to)$"
)
"""Endings of names whose values say what a call is about."""
_EVERYWHERE = frozenset(
    ("from", "fromaccount", "source", "sourceaccount", "debtor", "sender", "tenant", "tenantid", "workspaceid", "orgid")
)
"""Names whose values most calls of an agent share."""
_MOST_SUBJECTS = 8


def name_subjects(args: JsonObject) -> tuple[str, ...]:
    """Return names that hide what a call is about, and all of it but its quantities; near calls share a name."""
    values = _read_values(args)
    subjects = [[path, value] for path, (value, is_subject) in values.items() if is_subject][:_MOST_SUBJECTS]
    whole = [[path, value] for path, (value, _) in values.items()]
    return tuple(sha256(canonical_json(part)).hexdigest()[:16] for part in (*subjects, *([whole] if whole else ())))


def is_near(before: JsonObject, after: JsonObject) -> bool:
    """Whether two calls of a tool are about the same: quantities aside, they share a subject and half of the rest."""
    old, new = _read_values(before), _read_values(after)
    same = {path for path in old.keys() & new.keys() if old[path] == new[path]}
    differing = len(old.keys() | new.keys()) - len(same)
    return differing <= len(same) if any(new[path][1] for path in same) else bool(same) and not differing


def _read_values(args: JsonObject) -> dict[str, tuple[str, bool]]:
    """Return the first values by path, each with whether it says what the call is about, without quantities."""
    values: dict[str, tuple[str, bool]] = {}
    for path, name, is_recipient, value in islice(_walk(args), _MOST_VALUES):
        written = value if isinstance(value, str) else _write_number(value)
        if not written.strip() or read_quantity(name, written, is_text=isinstance(value, str)) is not None:
            continue
        is_subject = name not in _EVERYWHERE and (is_recipient or _SUBJECTS.search(name) is not None)
        key = f"{path} {len(values)}" if path in values else path
        values[key] = (written.strip().casefold(), is_subject)
    return values
