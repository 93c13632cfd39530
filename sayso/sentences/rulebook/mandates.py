"""Sentences about mandates: which calls they let run, how often, and until when."""

import json
from typing import NamedTuple

from sayso.policy.memory.amounts import write_amount
from sayso.records.memory.bounds import ALL_ARGUMENTS
from sayso.records.memory.mandates import Envelope, Mandate, MandatedTool, Outside
from sayso.records.memory.offers import Constraint, may_miss
from sayso.sentences.moments import Moment, Sentence, compose
from sayso.sentences.names import join_words
from sayso.sentences.rulebook.grants import describe_constraint, name_argument
from sayso.sentences.times import describe_span
from sayso.text.language import _, ngettext


class PlanWords(NamedTuple):
    """A plan in sentences: the calls that would run without asking, those to ask about, its limits, and the rest."""

    calls: list[str]
    asked: list[str]
    limits: str
    outside: str


def describe_plan(envelope: Envelope) -> PlanWords:
    """Return what a plan lets run."""
    silent, asked = ([_describe_calls(tool) for tool in envelope.tools if tool.ask is ask] for ask in (False, True))
    return PlanWords(silent, asked, _describe_limits(envelope), _describe_outside(envelope))


def _describe_limits(envelope: Envelope) -> str:
    parts = [ngettext("%(num)s call", "%(num)s calls", envelope.count)]
    if envelope.sum is not None:
        summed = dict.fromkeys(name_argument(tool.sum.of) for tool in envelope.tools if tool.sum is not None)
        parts.append(
            _("%(amount)s %(argument)s in sum", amount=write_amount(envelope.sum), argument=join_words([*summed]))
        )
    limits = join_words(parts)
    return _(
        "Together at most %(limits)s, for %(span)s from the approval.",
        limits=limits,
        span=describe_span(envelope.for_s * 1000),
    )


def write_plan(envelope: Envelope) -> str:
    """Return what a plan lets run as lines of text."""
    plan = describe_plan(envelope)
    lines = [_("These calls would run without asking:"), *(f"- {call}" for call in plan.calls)] if plan.calls else []
    if plan.asked:
        lines += [_("These calls are planned, and each is asked about:"), *(f"- {call}" for call in plan.asked)]
    return "\n".join([*lines, plan.limits, plan.outside])


def _describe_outside(envelope: Envelope) -> str:
    if envelope.outside is Outside.DENY and envelope.run_id:
        return _("Every other call of this run is denied, even if the rules would allow it.")
    if envelope.outside is Outside.DENY:
        return _("Every other call of this conversation is denied, even if the rules would allow it.")
    if envelope.run_id:
        return _("Every other call of this run is asked about, even if the rules would allow it.")
    return _("Every other call of this conversation is asked about, even if the rules would allow it.")


def describe_mandate(mandate: Mandate) -> Sentence:
    """Return for whom a mandate is, how much it covers, and until when."""
    envelope = mandate.envelope
    parts = [ngettext("up to %(num)s call", "up to %(num)s calls", envelope.count)]
    if envelope.sum is not None:
        parts.append(_("up to %(amount)s in sum", amount=write_amount(envelope.sum)))
    where = (
        _("run %(run)s", run=envelope.run_id) if envelope.run_id else _("thread %(thread)s", thread=mandate.thread_id)
    )
    return compose(
        _("%(agent)s, requested by %(owner)s, in %(where)s: %(limits)s of this plan, until %(until)s"),
        agent=mandate.agent,
        owner=mandate.owner,
        where=where,
        limits=join_words(parts),
        until=Moment(mandate.until_ms),
    )


def describe_rest(mandate: Mandate, calls: int, total: int) -> str:
    """Return what is left of a mandate after so many calls and this total in millionths."""
    envelope = mandate.envelope
    remaining = max(0, envelope.count - calls)
    parts = [ngettext("%(num)s call left", "%(num)s calls left", remaining)]
    if envelope.sum is not None:
        parts.append(_("%(amount)s in sum left", amount=write_amount(max(0, envelope.sum - total))))
    return join_words(parts)


def _describe_limit(limit: Constraint) -> str:
    """Return a limit of a plan; null as a value also lets the argument be missing."""
    said = describe_constraint(limit)
    return _("%(limit)s or missing", limit=said) if may_miss(limit) else said


def _describe_calls(entry: MandatedTool) -> str:
    tool, subagent = entry.tool, json.dumps(entry.subagent)
    if entry.subagent:
        tool = _("%(tool)s by sub-agent %(subagent)s", tool=tool, subagent=subagent)
    limits = [_describe_limit(limit) for limit in entry.constraints]
    free = [_("any %(argument)s", argument=name_argument(path)) for path in entry.unlimited if path != ALL_ARGUMENTS]
    if ALL_ARGUMENTS in entry.free:
        free = [_("any other arguments") if limits else _("any arguments")]
    named = join_words([*limits, *free])
    calls = (
        _("%(tool)s with %(arguments)s", tool=tool, arguments=named)
        if named
        else _("%(tool)s without arguments", tool=tool)
    )
    parts = [ngettext("once", "up to %(num)s times", entry.count)] if entry.count is not None else []
    if entry.sum is not None and entry.sum.max is not None:
        most = write_amount(entry.sum.max)
        parts.append(_("up to %(amount)s %(argument)s in sum", amount=most, argument=name_argument(entry.sum.of)))
    return _("%(calls)s, %(times)s", calls=calls, times=join_words(parts)) if parts else calls
