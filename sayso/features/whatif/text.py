"""Sentences about replays, about differences between rulebooks, and about why rules decide a call or do not."""

import json
from collections.abc import Callable, Iterator

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.files.faults import LISTED, PARTS, PATTERN
from sayso.core.policy.rules import ASKING, Action, PolicyRule
from sayso.core.sentences import join_words
from sayso.core.sentences.rules import (
    FINAL,
    describe_calls,
    describe_dates,
    describe_decision,
    describe_end,
    describe_remembered,
    describe_rule,
    describe_seen,
    describe_wait,
    describe_who,
    describe_window,
    list_agents,
    list_some,
)
from sayso.core.sentences.times import describe_span
from sayso.core.text.language import _
from sayso.features.whatif.diffs import Kind, PartChange, RulebookDiff, RuleDiff
from sayso.features.whatif.explaining import Explanation, Match, Trial
from sayso.wire.rulebook import Past

_SHORTEST_MS = 1_000

_EFFECTS = {
    Action.ALLOW: "allowed",
    Action.DENY: "denied",
    Action.REQUEST_APPROVAL: "asked about",
    Action.REQUEST_USER_INPUT: "asked about",
}


def describe_past(past: str) -> str:
    """Return what happened to calls, such as `asked, denied by a person`; an unknown word stays as it is."""
    names = {
        Past.ALLOWED: _("allowed by the rules"),
        Past.APPROVED: _("asked, approved by a person"),
        Past.DENIED: _("asked, denied by a person"),
        Past.UNDECIDED: _("asked, decided by no person"),
        Past.REFUSED: _("denied by the rules"),
    }
    return names.get(Past(past), past) if past in [*Past] else past


def describe_effect(effect: str) -> str:
    """Return what rules do with a call, in one word; an unknown word stays as it is."""
    names = {"allowed": _("allowed"), "asked": _("asked"), "denied": _("denied")}
    return names.get(effect, effect)


def describe_status(status: str) -> str:
    """Return the status of a replay in one word; an unknown word stays as it is."""
    names = {"waiting": _("waiting"), "running": _("running"), "done": _("done"), "failed": _("failed")}
    return names.get(status, status)


def describe_review_time(measured: int, typical_ms: int | None, saved_ms: int, added_ms: int) -> str:
    """Return how much time reviewers would have saved and spent, and from what it is estimated."""
    if typical_ms is None:
        return _("No look of a reviewer was measured in this time, so their time cannot be estimated.")
    saved = describe_span(saved_ms) if saved_ms >= _SHORTEST_MS else _("nothing")
    added = describe_span(added_ms) if added_ms >= _SHORTEST_MS else _("nothing")
    return _(
        "Looks of reviewers: %(saved)s saved, %(added)s added. Estimated from %(count)s measured looks; a decision "
        "without one counts as their median, %(typical)s.",
        saved=saved,
        added=added,
        count=f"{measured:,}",
        typical=describe_span(typical_ms),
    )


def describe_explanation(explanation: Explanation, scrub: Callable[[str], str] = str) -> JsonObject:
    """Return the decision on a call, and every rule in the order of trial; `scrub` masks secrets in texts."""
    decision = explanation.decision
    rules: list[JsonValue] = [_describe_tried(trial, scrub) for trial in explanation.trials]
    return {
        "action": decision.action,
        "effect": describe_decision(decision),
        "reason": scrub(decision.reason),
        "rule_id": decision.policy_id,
        "rule_version": decision.rule_version,
        "error": scrub(decision.error) if decision.error else None,
        "absolute": decision.absolute,
        "resembles": [*decision.resembles],
        "rules": rules,
    }


def _describe_tried(trial: Trial, scrub: Callable[[str], str]) -> JsonObject:
    return {
        "rule_id": trial.rule.rule_id,
        "action": trial.rule.action,
        "match": trial.match,
        "part": trial.part,
        "saw": trial.saw,
        "would": trial.would,
        "sentence": scrub(describe_trial(trial)),
    }


def describe_trial(trial: Trial) -> str:
    """Return what the rule is to the call, and why, with what it remembers about such calls."""
    remembered = "".join(f" {describe_remembered(counter)}." for counter in trial.remembered)
    return f"{_describe_match(trial)}{remembered}"


def _describe_match(trial: Trial) -> str:
    if trial.match is Match.SHADOW:
        return f"A shadow rule decides nothing. {_describe_shadow(trial)}"
    if trial.match is Match.DECIDES:
        failed = f", because it cannot be evaluated: {trial.error}." if trial.error else "."
        lasting = f" {FINAL}" if trial.rule.absolute else ""
        return f"Decides{failed}{lasting}{describe_seen(trial.saw)}"
    if trial.match is Match.MATCHES:
        return f"Matches too, but another rule decides.{describe_seen(trial.saw)}"
    if trial.match is Match.DISABLED:
        return "Disabled."
    if trial.match is Match.UNKNOWN:
        return f"Cannot be evaluated, so a reviewer decides: {trial.error}.{describe_seen(trial.saw)}"
    return _describe_unmet(trial)


def _describe_shadow(trial: Trial) -> str:
    if trial.error:
        return f"It cannot be evaluated: {trial.error}.{describe_seen(trial.saw)}"
    if trial.would is not None:
        return f"Live, it would have {_EFFECTS[trial.would]} the call.{describe_seen(trial.saw)}"
    return (
        _describe_unmet(trial)
        if trial.part
        else f"It matches, but another rule would still decide.{describe_seen(trial.saw)}"
    )


def _describe_unmet(trial: Trial) -> str:
    rule, condition = trial.rule, trial.rule.condition
    if trial.part == "after":
        earlier = join_words(condition.after or (), "or")
        return f"It is for calls after {earlier} in the same run.{describe_seen(trial.saw)}"
    during, outside = condition.during, condition.outside
    sentences = {
        "subjects": "It does not cover tool calls.",
        "tool": f"It is for {join_words(list_some(condition.tools), 'or')}.",
        "agent": f"It is for the agent {join_words(list_agents(condition), 'or')}.",
        "subagent": f"It is for the sub-agent {condition.subagent_name}.",
        "context": f"It needs other facts about the run.{describe_seen(trial.saw)}",
        "claimed": f"It needs other claims of the agent.{describe_seen(trial.saw)}",
        "metadata": "It is for another model.",
        "during": f"It is for {describe_window(during)}.{describe_seen(trial.saw)}" if during is not None else "",
        "outside": f"It is for the time outside {describe_window(outside)}.{describe_seen(trial.saw)}"
        if outside
        else "",
        "dates": f"It applies {describe_dates(rule)}.{describe_seen(trial.saw)}",
        "when": f"Its condition is false.{describe_seen(trial.saw)}",
        "memory": "What it remembers does not make it apply.",
    }
    return sentences.get(trial.part, "It does not match.")


_VALUE_CHARS = 200
_DOES = {
    Action.ALLOW: "allows",
    Action.DENY: "denies",
    Action.REQUEST_APPROVAL: "asks for approval",
    Action.REQUEST_USER_INPUT: "asks for a value",
}
_KEYS = {".".join(field): ".".join(part) for part, field in PARTS.items()}
_KEYS |= {".".join(field): ".".join(part) for part, field in LISTED.items()}
_KEYS |= {".".join(PATTERN): "tool", "request_payload": "ask"}


def list_differences(compared: RulebookDiff) -> list[str]:
    """Return a sentence for each difference; several changes of one rule are one sentence each."""
    sentences = [f"The file: {_describe_part(part)}." for part in compared.file]
    if compared.inherits:
        sentences.append(f"The file's terms change {join_words(compared.inherits)}, too.")
    return sentences + [sentence for rule in compared.rules for sentence in _describe(rule)]


def _describe(diff: RuleDiff) -> Iterator[str]:
    name, before, after = f"Rule {diff.rule_id}", diff.before, diff.after
    if diff.kind is Kind.ADDED and after is not None:
        yield f"{name} is new{_note(after)}: {describe_rule(after)}"
    elif diff.kind is Kind.REMOVED and before is not None:
        yield f"{name} is gone{_note(before)}: {describe_rule(before)}"
    elif diff.kind is Kind.RENAMED and before is not None:
        yield f"{name} was called {before.rule_id}."
    elif before is not None and after is not None:
        yield from (f"{name}: {words}." for words in _describe_changes(diff, before, after))


def _describe_changes(diff: RuleDiff, before: PolicyRule, after: PolicyRule) -> Iterator[str]:
    """Yield words for every changed part, so that none is silent."""
    said: set[str] = set()
    for part in diff.parts:
        words = _describe_in_words(part, before, after)
        if words not in said:
            said.add(words)
            yield words
    if diff.passes:
        yield f"is tried before {join_words(diff.passes)} now, no longer after"


def _describe_in_words(part: PartChange, before: PolicyRule, after: PolicyRule) -> str:
    name = part.part
    if name == "action":
        return f"{_DOES[after.action]}, no longer {_DOES[before.action]}"
    if name == "enabled":
        return "is enabled" if after.enabled else "is disabled"
    if name.startswith("condition.") or name == "subjects":
        was, now = describe_calls(before), describe_calls(after)
        if was != now:
            return f"covers “{now}”, no longer “{was}”"
    if name in _TERMS and before.action in ASKING and after.action in ASKING:
        was, now = _TERMS[name][1](before.terms), _TERMS[name][1](after.terms)
        if was != now:
            return f"{_TERMS[name][0]} {now}, no longer {was}"
    return _describe_part(part)


_TERMS = {
    "terms.reviewers": ("asks", describe_who),
    "terms.quorum": ("asks", describe_who),
    "terms.timeout_s": ("waits", describe_wait),
    "terms.fallback": ("at the deadline:", describe_end),
}


def _describe_part(part: PartChange) -> str:
    if part.part.startswith("lists.") and isinstance(part.before, list) and isinstance(part.after, list):
        more, gone = (
            [entry for entry in part.after if entry not in part.before],
            [entry for entry in part.before if entry not in part.after],
        )
        words = [f"has {_write(more)} now"] if more else []
        words += [f"has {_write(gone)} no longer"] if gone else []
        return f"`{part.part}` {join_words(words) or 'has its entries in another order or number'}"
    key = next(
        (
            f"{own}{part.part.removeprefix(name)}"
            for name, own in _KEYS.items()
            if part.part == name or part.part.startswith(f"{name}.")
        ),
        "",
    )
    return f"`{key or part.part}` is {_write(part.after)}, no longer {_write(part.before)}"


def _note(rule: PolicyRule) -> str:
    return f" (priority {rule.priority})" if rule.enabled else f" (priority {rule.priority}, disabled)"


def _write(value: JsonValue) -> str:
    if value is None or value in ([], {}):
        return "not given"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]}…"
