"""Sentences about plans: what an item that proposes a mandate would let run."""

import json
from typing import NamedTuple

from sayso.core.policy.counters.readings import write_amount
from sayso.core.records.envelopes import ALL_ARGUMENTS, Constraint, ConstraintKind, may_miss
from sayso.core.records.permissions import Envelope, MandatedTool, Outside
from sayso.core.sentences import join_words
from sayso.core.sentences.deadlines import describe_span
from sayso.core.text.language import _, ngettext


class PlanWords(NamedTuple):
    """A plan in sentences: the calls that would run without asking, those to ask about, its limits, and the rest."""

    calls: list[str]
    asked: list[str]
    limits: str
    outside: str


def describe_plan(envelope: Envelope) -> PlanWords:
    """Return what a plan lets run."""
    silent, asked = ([_describe_calls(tool) for tool in envelope.tools if tool.ask is ask] for ask in (False, True))
    parts = [ngettext("%(num)s call", "%(num)s calls", envelope.count)]
    if envelope.sum is not None:
        summed = dict.fromkeys(name_argument(tool.sum.of) for tool in envelope.tools if tool.sum is not None)
        most, named = write_amount(envelope.sum), join_words([*summed])
        parts.append(_("%(amount)s %(argument)s in sum", amount=most, argument=named))
    span = describe_span(envelope.for_s * 1000)
    limits = _("Together at most %(limits)s, for %(span)s from the approval.", limits=join_words(parts), span=span)
    if envelope.outside is Outside.DENY and envelope.run_id:
        outside = _("Every other call of this run is denied, even if the rules would allow it.")
    elif envelope.outside is Outside.DENY:
        outside = _("Every other call of this conversation is denied, even if the rules would allow it.")
    elif envelope.run_id:
        outside = _("Every other call of this run is asked about, even if the rules would allow it.")
    else:
        outside = _("Every other call of this conversation is asked about, even if the rules would allow it.")
    return PlanWords(silent, asked, limits, outside)


def write_plan(envelope: Envelope) -> str:
    """Return what a plan lets run as lines of text."""
    plan = describe_plan(envelope)
    lines = [_("These calls would run without asking:"), *(f"- {call}" for call in plan.calls)] if plan.calls else []
    if plan.asked:
        lines += [_("These calls are planned, and each is asked about:"), *(f"- {call}" for call in plan.asked)]
    return "\n".join([*lines, plan.limits, plan.outside])


def _describe_calls(entry: MandatedTool) -> str:
    tool, subagent = entry.tool, json.dumps(entry.subagent)
    if entry.subagent:
        tool = _("%(tool)s by sub-agent %(subagent)s", tool=tool, subagent=subagent)
    limits = [_describe_limit(limit) for limit in entry.constraints]
    free = [_("any %(argument)s", argument=name_argument(path)) for path in entry.unlimited if path != ALL_ARGUMENTS]
    if ALL_ARGUMENTS in entry.free:
        free = [_("any other arguments") if limits else _("any arguments")]
    calls = _("%(tool)s without arguments", tool=tool)
    if named := join_words([*limits, *free]):
        calls = _("%(tool)s with %(arguments)s", tool=tool, arguments=named)
    parts = [ngettext("once", "up to %(num)s times", entry.count)] if entry.count is not None else []
    if entry.sum is not None and entry.sum.max is not None:
        most = write_amount(entry.sum.max)
        parts.append(_("up to %(amount)s %(argument)s in sum", amount=most, argument=name_argument(entry.sum.of)))
    return _("%(calls)s, %(times)s", calls=calls, times=join_words(parts)) if parts else calls


def _describe_limit(limit: Constraint) -> str:
    """Return a limit of a plan; null as a value also lets the argument be missing."""
    said = describe_constraint(limit)
    return _("%(limit)s or missing", limit=said) if may_miss(limit) else said


def describe_constraint(limit: Constraint) -> str:
    """Return a limit on an argument, such as `amount at most 200`."""
    argument = name_argument(limit.path)
    if limit.kind is ConstraintKind.AT_MOST and isinstance(limit.value, int):
        return _("%(argument)s at most %(amount)s", argument=argument, amount=write_amount(limit.value))
    if limit.kind is ConstraintKind.ANY:
        return _("any %(argument)s", argument=argument)
    listed = limit.value if isinstance(limit.value, list) and limit.kind is not ConstraintKind.EQUAL else [limit.value]
    written = join_words([json.dumps(value, ensure_ascii=False) for value in listed], "or")
    if limit.kind is ConstraintKind.HOSTS:
        return _("%(argument)s at %(hosts)s", argument=argument, hosts=written)
    if limit.kind is ConstraintKind.WITHIN:
        return _("%(argument)s within %(folder)s", argument=argument, folder=written)
    return _("%(argument)s %(values)s", argument=argument, values=written)


def name_argument(path: str) -> str:
    """Return the name of an argument without `args.`."""
    return path.removeprefix("args.")
