"""Sentences about replays, and about why rules decide a call or do not."""

from collections.abc import Callable

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.core.policy.rules import Action
from sayso.core.sentences import join_words
from sayso.core.sentences.deadlines import describe_span
from sayso.core.sentences.rules import (
    FINAL,
    describe_dates,
    describe_decision,
    describe_remembered,
    describe_seen,
    describe_window,
    list_agents,
    list_some,
)
from sayso.core.text.language import _
from sayso.core.text.numbers import write_number
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
        count=write_number(measured),
        typical=describe_span(typical_ms),
    )


def describe_explanation(explanation: Explanation, scrub: Callable[[str], str] = str) -> JsonObject:
    """Return the decision on a call, and every rule in the order of trial; `scrub` masks secrets in texts."""
    decision = explanation.decision
    rules: list[JsonValue] = [
        {
            "rule_id": trial.rule.rule_id,
            "action": trial.rule.action,
            "match": trial.match,
            "part": trial.part,
            "saw": trial.saw,
            "would": trial.would,
            "sentence": scrub(describe_trial(trial)),
        }
        for trial in explanation.trials
    ]
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
    if trial.part and not trial.error and trial.would is None:
        return _describe_unmet(trial)
    sentence = "It matches, but another rule would still decide."
    if trial.error:
        sentence = f"It cannot be evaluated: {trial.error}."
    elif trial.would is not None:
        sentence = f"Live, it would have {_EFFECTS[trial.would]} the call."
    return f"{sentence}{describe_seen(trial.saw)}"


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
