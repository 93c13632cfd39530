"""Sentences about mandates: which calls they let run, how often, and until when."""

from collections.abc import Sequence

from sayso.policy.memory.amounts import write_amount
from sayso.records.memory.mandates import Envelope, Mandate, MandatedTool, Outside
from sayso.records.memory.plans import ALL_ARGUMENTS
from sayso.sentences.moments import Moment, Sentence, compose, write_sentence
from sayso.sentences.names import join_words
from sayso.sentences.rulebook.grants import describe_constraint, name_argument
from sayso.sentences.times import describe_clock, describe_span
from sayso.text.language import _, ngettext


def list_calls(tools: Sequence[MandatedTool]) -> list[str]:
    """Return one sentence for each part of a plan: its tool, arguments, count and sum."""
    return [_describe_calls(one) for one in tools]


def describe_limits(envelope: Envelope) -> str:
    """Return how many calls a plan covers together, their sum, and for how long."""
    parts = [ngettext("%(num)s call", "%(num)s calls", envelope.count)]
    if envelope.sum is not None:
        summed = dict.fromkeys(name_argument(one.sum.of) for one in envelope.tools if one.sum is not None)
        parts.append(
            _("%(amount)s %(argument)s in sum", amount=write_amount(envelope.sum), argument=join_words([*summed]))
        )
    limits = join_words(parts)
    return _(
        "Together at most %(limits)s, for %(span)s from the approval.",
        limits=limits,
        span=describe_span(envelope.for_s * 1000),
    )


def write_envelope(envelope: Envelope) -> str:
    """Return what a plan lets run as lines of text."""
    silent, asked = ([one for one in envelope.tools if one.ask is ask] for ask in (False, True))
    lines = [_("These calls would run without asking:"), *(f"- {one}" for one in list_calls(silent))] if silent else []
    if asked:
        lines += [_("These calls are planned, and each is asked about:"), *(f"- {one}" for one in list_calls(asked))]
    return "\n".join([*lines, describe_limits(envelope), describe_outside(envelope)])


def describe_outside(envelope: Envelope) -> str:
    """Return what happens to all other calls."""
    if envelope.outside is Outside.DENY:
        return _("Every other call of this conversation is denied, even if the rules would allow it.")
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


def write_mandate(mandate: Mandate) -> str:
    """Return the sentence of a mandate with its end in UTC."""
    return write_sentence(describe_mandate(mandate), describe_clock)


def _describe_calls(one: MandatedTool) -> str:
    tool = _("%(tool)s by sub-agent %(subagent)s", tool=one.tool, subagent=one.subagent) if one.subagent else one.tool
    limits = [describe_constraint(limit) for limit in one.constraints]
    free = [_("any %(argument)s", argument=name_argument(path)) for path in one.free if path != ALL_ARGUMENTS]
    if ALL_ARGUMENTS in one.free:
        free = [_("any other arguments") if limits else _("any arguments")]
    named = join_words([*limits, *free])
    calls = (
        _("%(tool)s with %(arguments)s", tool=tool, arguments=named)
        if named
        else _("%(tool)s without arguments", tool=tool)
    )
    parts = [ngettext("once", "up to %(num)s times", one.count)] if one.count is not None else []
    if one.ask:
        parts.append(_("and a person is asked each time"))
    if one.sum is not None and one.sum.max is not None:
        most = write_amount(one.sum.max)
        parts.append(_("up to %(amount)s %(argument)s in sum", amount=most, argument=name_argument(one.sum.of)))
    return _("%(calls)s, %(times)s", calls=calls, times=join_words(parts)) if parts else calls
