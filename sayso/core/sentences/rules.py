"""Sentences about rules: what a rule does and counts, and why it does or does not decide a call."""

import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from sayso.core.calendar import WEEKDAYS, TimeWindow
from sayso.core.canonical_json import JsonObject
from sayso.core.policy.conditions import find_comparisons
from sayso.core.policy.counters.readings import to_units, write_amount
from sayso.core.policy.counters.recalling import hide_amounts
from sayso.core.policy.decisions import PolicyDecision
from sayso.core.policy.engine import Policy
from sayso.core.policy.rule_keys import AfterDenial, Budget, Limit
from sayso.core.policy.rules import ASKING, Action, Mode, PolicyRule, RequestPayload, RuleCondition, Subject
from sayso.core.records.items import Item
from sayso.core.records.judgements import Remembered
from sayso.core.records.terms import LONGEST_WAIT_S, FallbackAction, RuleTerms
from sayso.core.sentences import join_words, name_each, name_reviewers
from sayso.core.sentences.deadlines import describe_span
from sayso.core.text.language import _, cut, ngettext
from sayso.core.text.numbers import write_number
from sayso.core.text.summaries import write_leaf


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
        return _describe_repeats(counter.total, span)
    if counter.of:
        words = {"argument": argument, "span": span, "total": write_amount(counter.total)}
        words |= {"most": write_amount(counter.most or 0), "amount": write_amount(counter.amount or 0)}
        template = _("%(total)s of %(most)s %(argument)s in %(span)s; this call adds %(amount)s")
        if counter.amount is None:
            template = _("%(total)s of %(most)s %(argument)s in %(span)s")
        return template % words
    return _("%(total)s of %(most)s calls in %(span)s", total=counter.total, most=counter.most or 0, span=span)


def _describe_repeats(total: int, span: str) -> str:
    if total == 0:
        return _("The same call did not run in %(span)s", span=span)
    return ngettext(
        "The same call ran once in %(span)s", "The same call ran %(num)s times in %(span)s", total, span=span
    )


def describe_repetition(item: Item) -> str:
    """Return that the same call ran before, with the text of the rule that asks because of it; empty if none did."""
    for counter in item.remembered:
        if counter.key == "repeats" and counter.total > 0:
            reason = item.prompt.reason or "" if counter.rule_id == item.terms.rule_id else ""
            own = "" if reason.startswith(f"Rule {counter.rule_id} says ") else reason.strip()
            sentence = describe_remembered(counter) + (f": {own}" if own else "")
            return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."
    return ""


def list_remembered(item: Item) -> list[tuple[str, str, str]]:
    """Return what rules remembered of an item, unmasked: each rule, a sentence, and what its counter counts by."""
    remembered = hide_amounts(item.remembered, item.tool.args)
    return [
        (
            counter.rule_id,
            describe_remembered(counter),
            join_words([_name(name) for name in counter.by]) if counter.by else "",
        )
        for counter in remembered
    ]


def describe_counters(condition: RuleCondition) -> Iterator[str]:
    """Yield what the rule remembers in words, such as `within 5 in 1 h by agent`; none for most rules."""
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
    calls = "1 call" if limit.count == 1 else f"{write_number(limit.count)} calls"
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


_SIGNS = {">": "over", ">=": "at least", "<": "under", "<=": "at most", "==": "equal to", "!=": "other than"}
_COMPARISON = re.compile(r"""\s*args\.\w+\s*(?:[<>]=?|[=!]=)\s*(?:-?[\d.]+|"[^"\\]*"|'[^'\\]*')\s*""")
_AND = re.compile(r"\s*&&\s*")
_MOST_NAMES = 8

ACTIONS = {
    Action.ALLOW: "Allow",
    Action.DENY: "Deny",
    Action.REQUEST_APPROVAL: "Ask for approval",
    Action.REQUEST_USER_INPUT: "Ask for a value",
}
FINAL = "Nobody can lift this."


def describe_rule(rule: PolicyRule) -> str:
    """Return what the rule does in one sentence or more."""
    dates = describe_dates(rule)
    others = [FINAL] if rule.absolute else []
    others += [f"It applies {dates}."] if dates else []
    others += [f"The assessor {rule.assess.by} may ask for more scrutiny."] if rule.assess is not None else []
    if rule.after_denial is AfterDenial.DENY:
        others.append("A call that a person has denied stays denied in its run and thread.")
    if rule.asks is not None:
        parts = [(rule.asks.per_run, "run"), (rule.asks.per_minute, "minute")]
        limits = join_words([f"{write_number(most)} a {name}" for most, name in parts if most is not None])
        others.append(f"It asks about at most {limits}; further calls are denied.")
    others += ["It is a shadow rule: so far it decides nothing."] if rule.mode is Mode.SHADOW else []
    calls, terms = describe_calls(rule), rule.terms
    if rule.action is Action.ALLOW:
        effect = f"{calls} run without asking anyone."
    elif rule.action is Action.DENY:
        effect = f"{calls} are denied."
    elif terms.timeout_s == 0:
        effect = f"{calls} wait for nobody: {describe_end(terms)} at once."
    else:
        effect = f"{calls} wait {_describe_waiting(terms, rule.request_payload)}; then {describe_end(terms)}."
    return " ".join((effect, *others))


def describe_default(policy: Policy) -> str:
    """Return what happens to calls that no rule matches."""
    if policy.default is Action.ALLOW:
        return "Calls that no rule matches run without asking anyone."
    if policy.default is Action.DENY:
        return "Calls that no rule matches are denied."
    return f"Calls that no rule matches wait {_describe_waiting(policy.terms)}; then {describe_end(policy.terms)}."


def describe_calls(rule: PolicyRule) -> str:
    """Return which calls the rule covers, such as `Calls of refund_* with amount over 100`."""
    condition = rule.condition
    models, tools = rule.covers(Subject.LLM_CALL), rule.covers(Subject.TOOL_CALL)
    words = "Calls and model calls" if models and tools else "Model calls" if models else "Calls"
    if condition.tools:
        words += f" of {join_words(list_some(condition.tools), 'or')}"
    elif tools and not models:
        words = "All calls" if condition == RuleCondition() else "Calls of any tool"
    if agents := list_agents(condition):
        words += f" by {join_words(agents, 'or')}"
    if condition.subagent_name is not None:
        words += f" through its sub-agent {condition.subagent_name}"
    if condition.after is not None:
        words += f" after {join_words(condition.after, 'or')} in the same run"
    words += f" during {describe_window(condition.during)}" if condition.during is not None else ""
    words += f" outside {describe_window(condition.outside)}" if condition.outside is not None else ""
    if condition.when is not None:
        words += f" {describe_condition(condition.when)}"
    return words + "".join(f", {fact}" for fact in [*_describe_facts(condition), *describe_counters(condition)])


def list_agents(condition: RuleCondition) -> Sequence[str]:
    """Return the agents that a rule is for."""
    return list_some([*([condition.agent] if condition.agent is not None else []), *(condition.agents or ())])


def list_some(names: Sequence[str]) -> Sequence[str]:
    """Return the first names of a long list, and how many others there are."""
    return names if len(names) <= _MOST_NAMES else [*names[:_MOST_NAMES], f"{len(names) - _MOST_NAMES} others"]


def describe_condition(when: str) -> str:
    """Return a condition in words, such as `with amount over 100`; one that is not plain is quoted."""
    parts = _AND.split(when.strip())
    if not all(_COMPARISON.fullmatch(part) for part in parts):
        return f"where {' '.join(when.split())}"
    comparisons = [comparison for part in parts for comparison in find_comparisons(part)]
    if len(comparisons) != len(parts):
        return f"where {' '.join(when.split())}"
    limits = [f"{comparison.arg} {_SIGNS[comparison.sign]} {comparison.literal}" for comparison in comparisons]
    return f"with {join_words(limits)}"


def describe_who(terms: RuleTerms) -> str:
    """Return who decides under the terms of a rule, such as `2 of anna, ben or carla`."""
    if terms.stages:
        return ", then ".join(describe_who(RuleTerms(**vars(stage))) for stage in terms.stages)
    count = terms.quorum.approve
    if not terms.reviewers:
        return "any reviewer" if count == 1 else f"any {count} reviewers"
    names = name_reviewers(terms.reviewers, "or")
    counted = names if count == 1 else f"{count} of {names}"
    return f"{counted}, among them {name_each(terms.quorum.each_of)}" if terms.quorum.each_of else counted


def describe_wait(terms: RuleTerms) -> str:
    """Return how long a rule waits; without a timeout of its own the agent may set another."""
    span = describe_span(terms.timeout_s * 1000)
    if terms.timeout is not None:
        return terms.timeout if terms.timeout_s == LONGEST_WAIT_S else f"{terms.timeout}, at most {span},"
    return span if "timeout_s" in terms.model_fields_set else f"{span} (unless the agent sets another time)"


def describe_end(terms: RuleTerms, *, single: bool = False) -> str:
    """Return the effect of the deadline under a rule on calls, as in `they are denied`, or on a `single` one."""
    fallback = terms.fallback
    if fallback.action is FallbackAction.APPROVE:
        return "it runs by itself" if single else "they run by themselves"
    if fallback.action is FallbackAction.VALUE:
        return f"the value “{_write(fallback.value)}” is used"
    if fallback.action is FallbackAction.FAIL:
        return "the run fails"
    if fallback.action is FallbackAction.ESCALATE and terms.escalate:
        names = terms.escalate[0].reviewers
        return f"{name_reviewers(names)} {'is' if len(names) == 1 else 'are'} asked too"
    return "it is denied" if single else "they are denied"


def describe_shadow_hits(hits: Mapping[str, int]) -> str:
    """Return what a shadow rule would have done, such as `It would have asked 12 and allowed 3 calls.`"""
    asked = sum(hits.get(action, 0) for action in ASKING)
    counts = {"asked": asked, "allowed": hits.get(Action.ALLOW, 0), "denied": hits.get(Action.DENY, 0)}
    done = [f"{words} {write_number(count)}" for words, count in counts.items() if count]
    sentences = [f"It would have {join_words(done)}."] if done else []
    if failed := hits.get("failed", 0):
        sentences.append(f"It could not be evaluated for {write_number(failed)}.")
    return " ".join(sentences) or "It would have decided no call."


def runs_by_itself(rule: PolicyRule) -> bool:
    """Return whether a call under the rule runs when nobody has decided."""
    return rule.is_live and rule.action in ASKING and rule.terms.fallback.action is FallbackAction.APPROVE


def describe_decision(decision: PolicyDecision) -> str:
    """Return what would happen to a call under a decision of the rules."""
    if decision.action is Action.ALLOW:
        return "It would run without asking anyone."
    if decision.action is Action.DENY:
        return f"It would be denied.{f' {FINAL}' if decision.absolute else ''}"
    payload = decision.request_payload if decision.action is Action.REQUEST_USER_INPUT else None
    end = describe_end(decision.terms, single=True)
    return f"It would wait {_describe_waiting(decision.terms, payload)}; then {end}."


def _describe_waiting(terms: RuleTerms, payload: RequestPayload | None = None) -> str:
    target = payload.target_arg if payload is not None else None
    wish = f"a value of {target} from " if target is not None else ""
    return f"{describe_wait(terms)} for {wish}{describe_who(terms)}"


def describe_window(window: TimeWindow) -> str:
    """Return hours of weekdays, such as `Mon to Fri, 08:00 to 18:00 in UTC, without public holidays of CH`."""
    places = [WEEKDAYS.index(day) for day in window.working.hours.weekdays]
    names = [day.title() for day in window.working.hours.weekdays]
    in_a_row = len(places) > 2 and places[-1] - places[0] == len(places) - 1
    days = "every day" if len(places) == 7 else f"{names[0]} to {names[-1]}" if in_a_row else join_words(names)
    hours = "" if window.hours == "00:00-24:00" else f", {window.hours.replace('-', ' to ')}"
    holidays = f", without public holidays of {window.holidays}" if window.holidays else ""
    return f"{days}{hours} in {window.zone}{holidays}"


def describe_dates(rule: PolicyRule) -> str:
    """Return from when until when the rule applies, such as `from 2026-12-01 until 2026-12-31`; empty for always."""
    begin = f"from {rule.valid_from}" if rule.valid_from is not None else ""
    end = f"until {rule.valid_until}" if rule.valid_until is not None else ""
    return " ".join(part for part in (begin, end) if part)


def _describe_facts(condition: RuleCondition) -> list[str]:
    facts = _list_facts(condition.context_equals, condition.context_has_keys)
    claims = _list_facts(condition.claimed_equals, condition.claimed_has_keys)
    model = _list_facts(condition.metadata_equals, ())
    return [
        *([f"if {join_words(facts)} in the facts about the run"] if facts else []),
        *([f"if the agent claims that {join_words(claims)}"] if claims else []),
        *([f"if its {join_words(model)}"] if model else []),
    ]


def _list_facts(equal: JsonObject, keys: tuple[str, ...]) -> list[str]:
    return [*(f"{name} is {_write(value)}" for name, value in equal.items()), *(f"{name} is given" for name in keys)]


def describe_seen(saw: JsonObject) -> str:
    """Return what a rule read of a call, as a sentence after another; empty for nothing."""
    if not saw:
        return ""
    return f" Here {join_words([f'{name} is {_write(value)}' for name, value in saw.items()])}."


def _write(value: JsonValue) -> str:
    return cut(" ".join(write_leaf(value).split()), 120)
