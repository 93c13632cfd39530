"""Sentences about the counters of rules: what a rule counts, and what it remembered about a call."""

from collections.abc import Iterator

from sayso.core.policy.counters.readings import to_units, write_amount
from sayso.core.policy.counters.recalling import hide_amounts
from sayso.core.policy.rule_keys import Budget, Limit
from sayso.core.policy.rules import RuleCondition
from sayso.core.records.charges import Remembered
from sayso.core.records.items import Item
from sayso.core.sentences.names import join_words
from sayso.core.sentences.times import describe_span
from sayso.core.text.language import _


def describe_counters(condition: RuleCondition) -> list[str]:
    """Return what the rule remembers in words, such as `within 5 in 1 h by agent`; none for most rules."""
    return [*_list_words(condition)]


def describe_remembered(counter: Remembered) -> str:
    """Return what a rule remembered about a call, such as `18 of 20 calls in 1 h`."""
    span, argument = describe_span(counter.per_s * 1000), _name(counter.of)
    if counter.key == "unseen":
        if counter.total == 0:
            return _("New %(argument)s: no call in %(span)s had it", argument=argument, span=span)
        words = {"argument": argument, "count": counter.total, "span": span}
        return _("Earlier calls in %(span)s with the same %(argument)s: %(count)s", **words)
    if counter.key == "above":
        words = {"argument": argument, "usual": write_amount(counter.total), "count": counter.samples, "span": span}
        return _("Of %(count)s calls in %(span)s, nearly all had at most %(usual)s as %(argument)s", **words)
    if counter.key == "repeats":
        return _("Equal calls in %(span)s: %(count)s", count=counter.total, span=span)
    if counter.of:
        return _describe_sum(counter, {"argument": argument, "span": span})
    return _("%(total)s of %(most)s calls in %(span)s", total=counter.total, most=counter.most or 0, span=span)


def list_remembered(item: Item) -> list[tuple[str, str, str]]:
    """Return what rules remembered when an item was asked: each rule, a sentence, and what its counter counts by.

    Amounts that are masked in the item's arguments are left out.
    """
    remembered = hide_amounts(item.remembered, item.tool.args)
    return [
        (
            counter.rule_id,
            describe_remembered(counter),
            join_words([_name(name) for name in counter.by]) if counter.by else "",
        )
        for counter in remembered
    ]


def _describe_sum(counter: Remembered, words: dict[str, str]) -> str:
    words |= {"total": write_amount(counter.total), "most": write_amount(counter.most or 0)}
    if counter.amount is None:
        return _("%(total)s of %(most)s %(argument)s in %(span)s", **words)
    words["amount"] = write_amount(counter.amount)
    return _("%(total)s of %(most)s %(argument)s in %(span)s; this call adds %(amount)s", **words)


def _list_words(condition: RuleCondition) -> Iterator[str]:
    within = [_describe_limit(condition.limit), _describe_budget(condition.budget)]
    if any(within):
        yield f"while within {join_words([part for part in within if part])}"
    if condition.over is not None:
        over = [_describe_limit(condition.over.limit), _describe_budget(condition.over.budget)]
        yield f"once over {join_words([part for part in over if part], 'or')}"
    if condition.unseen is not None:
        span = describe_span(condition.unseen.within * 1000)
        yield f"with a {_name(condition.unseen.value)} that no call had in {span}{_write_by(condition.unseen.by)}"
    if condition.above is not None:
        span, by = describe_span(condition.above.within * 1000), _write_by(condition.above.by)
        yield f"with {_name(condition.above.of)} above {condition.above.percentile} % of the calls in {span}{by}"
    if condition.repeats is not None:
        times = "once" if condition.repeats.more_than == 1 else f"{condition.repeats.more_than} times"
        yield f"if the same call ran {times} in {describe_span(condition.repeats.within * 1000)}"


def _describe_limit(limit: Limit | None) -> str:
    if limit is None:
        return ""
    calls = "1 call" if limit.count == 1 else f"{limit.count:,} calls"
    return f"{calls} in {describe_span(limit.per * 1000)}{_write_by(limit.by)}"


def _describe_budget(budget: Budget | None) -> str:
    if budget is None:
        return ""
    most, span = write_amount(to_units(budget.max)), describe_span(budget.per * 1000)
    return f"{most} {_name(budget.sum)} in {span}{_write_by(budget.by)}"


def _write_by(by: tuple[str, ...]) -> str:
    return f" for each {join_words([_name(name) for name in by])}" if by else ""


def _name(path: str) -> str:
    return path.removeprefix("args.")
