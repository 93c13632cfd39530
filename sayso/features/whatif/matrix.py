"""The confusion matrix of a replay: what happened to recorded calls, and their amounts, beside what other rules do."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from pydantic import BaseModel, Field

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.conditions import find_comparisons
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.matching import may_be_about
from sayso.core.policy.rules import ASKING, PolicyRule
from sayso.core.records.base import Immutable
from sayso.core.records.decisions import Verdict
from sayso.core.text.redaction import redact
from sayso.errors import InvalidInput
from sayso.features.whatif.reevaluation import NOT_COUNTED, RecordedCall, Rejudged, effect_of
from sayso.wire.rulebook import Effect, Past

_CONVERTED = re.compile(r"(?:double|int|uint)\(\s*args\.([A-Za-z_]\w*)\s*\)\s*[<>]=?")
_ORDER = ("<", ">", "<=", ">=")
_PATH = re.compile(r"args(?:\.[A-Za-z_]\w*)+")
_CURRENCIES = ("currency", "currencycode", "ccy")
_CURRENCY = re.compile(r"[A-Z]{3}")
_LARGEST = 10**15


class Amount(NamedTuple):
    """A number with its currency, which is empty where the call names none."""

    number: Decimal
    currency: str = ""


class AmountFinder:
    """Finds the amount of a call: at `path`, or else the first number that a rule about its tool compares."""

    def __init__(self, policies: Sequence[Policy], path: str | None = None) -> None:
        if path and not _PATH.fullmatch(path):
            raise InvalidInput(f"{path!r} is not an argument. Write it as args.amount or args.order.total.")
        self._path = path.split(".")[1:] if path else None
        self._compared: list[tuple[PolicyRule, str]] = []
        for rule in (rule for policy in policies for rule in policy.rules if not path):
            when = rule.condition.when or ""
            plain = [clause.arg for clause in find_comparisons(when) if clause.sign in _ORDER and not clause.is_text]
            self._compared += [(rule, name) for name in dict.fromkeys((*plain, *_CONVERTED.findall(when)))]

    def find(self, event: PolicyEvent) -> Amount | None:
        """Return the amount of a call, or None."""
        if self._path is not None:
            *outer, name = self._path
            holder: Any = event.tool_args
            for step in outer:
                holder = holder.get(step) if isinstance(holder, dict) else None
            return _read(holder, name) if isinstance(holder, dict) else None
        for rule, name in self._compared:
            amount = _read(event.tool_args, name)
            if amount is not None and may_be_about(rule, event.tool_name or ""):
                return amount
        return None


def _read(args: Mapping[str, Any], name: str) -> Amount | None:
    value = args.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= _LARGEST:
        return None
    named = {
        str(text).upper()
        for key, text in args.items()
        if key.replace("_", "").replace("-", "").lower().endswith(_CURRENCIES)
    }
    currency = named.pop() if len(named) == 1 else ""
    return Amount(Decimal(str(value)), currency if _CURRENCY.fullmatch(currency) else "")


MOST_LISTED = 1_000
"""The limit of listed calls that were denied and would now be allowed; the counts are of all."""

MOST_EXAMPLES = 50
"""The same for every other change."""

_MOST_ARGS_CHARS = 600


class Listed(Immutable):
    """A call whose effect changes, with secrets masked. Long arguments are left out."""

    run_id: str
    suspension_id: str
    item_id: str
    at_ms: int
    tool: str
    agent: str
    args: JsonObject
    before: str
    now: str
    reason: str


class Cell(BaseModel):
    """Calls with the same past and the same effects of both rules.

    `sums` are by currency. `looked_ms` sums the measured looks of the people who decided, and `unmeasured` counts their
    decisions without one. `needed` counts the approvals that the rules would now need.
    """

    past: Past
    was: Effect
    now: Effect
    count: int = 0
    sums: dict[str, Decimal] = Field(default_factory=dict)
    looked_ms: int = 0
    unmeasured: int = 0
    needed: int = 0
    listed: list[Listed] = Field(default_factory=list)

    @property
    def changed(self) -> bool:
        return self.was is not self.now

    @property
    def most_listed(self) -> int:
        forbidden = self.past in (Past.DENIED, Past.REFUSED)
        return MOST_LISTED if forbidden and self.now is Effect.ALLOWED else MOST_EXAMPLES

    def add(self, other: "Cell") -> None:
        """Add the calls of another part of the history."""
        self.count += other.count
        for currency, amount in other.sums.items():
            self.sums[currency] = self.sums.get(currency, Decimal()) + amount
        self.looked_ms += other.looked_ms
        self.unmeasured += other.unmeasured
        self.needed += other.needed
        self.listed += other.listed
        self.cut()

    def cut(self) -> None:
        """Keep the newest listed calls, in order."""

        def place(call: Listed) -> tuple[int, str, str, str, str]:
            # the rest only makes the order the same for every division of the history
            return -call.at_ms, call.run_id, call.suspension_id, call.item_id, json.dumps(call.args, sort_keys=True)

        self.listed = sorted(self.listed, key=place)[: self.most_listed]


class RuleChange(Immutable):
    """The rules behind a change: the one that decided the calls, and the one that now would. None is the default."""

    before: str | None
    after: str | None
    was: Effect
    now: Effect


class Tally(BaseModel):
    """Everything counted about calls that were judged again. Tallies of parts of a history add up.

    `missing` counts calls that cannot be judged again by what is missing; `look_times` measured looks by seconds;
    `rule_changes` changed calls by a JSON text of the rules behind it.
    """

    cells: dict[str, Cell] = Field(default_factory=dict)
    missing: Counter[str] = Field(default_factory=Counter)
    look_times: Counter[int] = Field(default_factory=Counter)
    rule_changes: Counter[str] = Field(default_factory=Counter)

    @property
    def count(self) -> int:
        """The number of calls, judged again or not."""
        return self.judged + self.missing.total()

    @property
    def judged(self) -> int:
        return sum(cell.count for cell in self.cells.values())

    @property
    def changed(self) -> int:
        return sum(cell.count for cell in self.cells.values() if cell.changed)

    def add(self, other: "Tally") -> None:
        """Add the calls of another part of the history."""
        for key, cell in other.cells.items():
            self.cells.setdefault(key, Cell(past=cell.past, was=cell.was, now=cell.now)).add(cell)
        self.missing.update(other.missing)
        self.look_times.update(other.look_times)
        self.rule_changes.update(other.rule_changes)

    def list_cells(self) -> list[Cell]:
        """Return the cells in the order of what happened, then of what would."""
        keys = [f"{past} {was} {now}" for past in Past for was in Effect for now in Effect]
        return [self.cells[key] for key in keys if key in self.cells]

    def list_rule_changes(self) -> list[tuple[RuleChange, int]]:
        """Return the rules behind the changes, those of the most calls first."""
        changes = [(RuleChange.model_validate_json(change), count) for change, count in self.rule_changes.items()]
        return sorted(changes, key=lambda pair: (-pair[1], pair[0].before or "", pair[0].after or ""))

    def find_typical_look_ms(self) -> int | None:
        """Return the median of the measured looks to a second; None without one."""
        middle, passed = self.look_times.total() / 2, 0
        for seconds, count in sorted(self.look_times.items()):
            passed += count
            if passed >= middle:
                return seconds * 1000
        return None

    def estimate_saved_ms(self) -> int:
        """Return the time that reviewers would have saved: looks before calls that would no longer be asked about."""
        typical = self.find_typical_look_ms() or 0
        cells = [cell for cell in self.cells.values() if cell.was is Effect.ASKED and cell.changed]
        return sum(cell.looked_ms + cell.unmeasured * typical for cell in cells)

    def estimate_added_ms(self) -> int:
        """Return the time that reviewers would have spent on calls that were not asked about."""
        typical = self.find_typical_look_ms() or 0
        return sum(cell.needed * typical for cell in self.cells.values() if cell.now is Effect.ASKED and cell.changed)


def find_past(call: RecordedCall) -> Past:
    """Return what happened to a call."""
    if call.action not in ASKING:
        return Past.ALLOWED if effect_of(call.action) is Effect.ALLOWED else Past.REFUSED
    if not call.by_person:
        return Past.UNDECIDED
    return Past.APPROVED if call.verdict in (Verdict.APPROVED, Verdict.ANSWERED) else Past.DENIED


def tally(
    calls: Iterable[RecordedCall],
    judged: Iterable[Rejudged | None],
    amounts: AmountFinder,
    base: Sequence[Rejudged | None] | None = None,
) -> Tally:
    """Count the calls beside what the rules would do with each; effects of `base` take the place of what was done."""
    counts = Tally()
    before = iter(base) if base is not None else None
    for call, now in zip(calls, judged, strict=True):
        was = next(before) if before is not None else None
        if now is None or (before is not None and was is None):
            counts.missing[call.missing or NOT_COUNTED] += 1
            continue
        amount = amounts.find(call.event)
        past, effect = find_past(call), effect_of(call.action) if was is None else was.effect
        cell = counts.cells.setdefault(f"{past} {effect} {now.effect}", Cell(past=past, was=effect, now=now.effect))
        cell.count += 1
        if amount is not None:
            cell.sums[amount.currency] = cell.sums.get(amount.currency, Decimal()) + amount.number
        for look_ms in call.look_times_ms:
            if look_ms is None:
                cell.unmeasured += 1
            else:
                cell.looked_ms += look_ms
                counts.look_times[round(look_ms / 1000)] += 1
        cell.needed += now.approvals if now.effect is Effect.ASKED else 0
        if cell.changed:
            rule_id = call.rule_id if was is None else was.rule_id
            change = RuleChange(before=rule_id, after=now.rule_id, was=effect, now=now.effect)
            counts.rule_changes[change.model_dump_json()] += 1
            cell.listed.append(_list(call, rule_id, now))
            if len(cell.listed) >= 2 * cell.most_listed:
                cell.cut()
    for cell in counts.cells.values():
        cell.cut()
    return counts


def _list(call: RecordedCall, before: str | None, now: Rejudged) -> Listed:
    redacted = redact(call.event.tool_args, None, call.secrets)
    short = len(json.dumps(redacted.args, ensure_ascii=False)) <= _MOST_ARGS_CHARS
    return Listed(
        run_id=call.event.run_id,
        suspension_id=call.suspension_id,
        item_id=call.item_id,
        at_ms=call.at_ms,
        tool=call.event.tool_name or "",
        agent=call.event.agent,
        args=redacted.args if short else {},
        before=before or "",
        now=now.rule_id or "",
        reason=redacted.scrub(now.error or now.reason)[:_MOST_ARGS_CHARS],
    )
