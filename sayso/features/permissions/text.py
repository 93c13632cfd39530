"""Sentences about grants, proposed grants and mandates: which calls run without asking, how often, and until when."""

from sayso.core.policy.counters.readings import write_amount
from sayso.core.records.envelopes import ALL_ARGUMENTS
from sayso.core.records.permissions import Grant, GrantScope, GrantState, Learned, Mandate, MandateState
from sayso.core.sentences import join_words
from sayso.core.sentences.deadlines import Moment, Sentence, compose, describe_clock, describe_span, write_sentence
from sayso.core.sentences.plans import describe_constraint, describe_plan, name_argument
from sayso.core.text.language import _, ngettext
from sayso.wire.rulebook import MandateView


def describe_grant(grant: Grant) -> Sentence:
    """Return which calls a grant lets run, as one sentence with its end, or its length before people granted it."""
    agent = grant.agent
    if grant.subagent:
        agent = _("%(agent)s, sub-agent %(subagent)s", agent=grant.agent, subagent=grant.subagent)
    parts: dict[str, str | Moment] = {"tool": grant.tool, "agent": agent, "owner": grant.owner}
    parts |= {"limits": _describe_limits(grant), "times": _describe_times(grant)}
    if grant.learned is not None and not grant.granters:
        return compose(
            _("%(tool)s by %(agent)s, requested by %(owner)s, with %(limits)s, %(times)s, for %(span)s once in force"),
            **parts,
            span=describe_span(grant.learned.lasts_s * 1000),
        )
    return compose(
        _("%(tool)s by %(agent)s, requested by %(owner)s, with %(limits)s, %(times)s, until %(until)s"),
        **parts,
        until=Moment(grant.until_ms),
    )


def write_grant(grant: Grant) -> str:
    """Return the sentence of a grant with its end in UTC."""
    return write_sentence(describe_grant(grant), describe_clock)


def describe_left_over(grant: Grant, calls: int, total: int) -> str:
    """Return what is left of a grant after so many calls and this total in millionths."""
    parts: list[str] = []
    if grant.count is not None:
        remaining = max(0, grant.count - calls)
        parts.append(ngettext("%(num)s call left", "%(num)s calls left", remaining))
    if grant.sum is not None:
        amount = write_amount(max(0, grant.sum.max - total))
        parts.append(_("%(amount)s %(argument)s left", amount=amount, argument=name_argument(grant.sum.of)))
    return join_words(parts)


def describe_grant_state(state: GrantState) -> str:
    """Return the state of a grant in a word or two."""
    words = {
        GrantState.PROBATION: _("on probation"),
        GrantState.WAITING: _("waits for another person"),
        GrantState.IN_FORCE: _("in force"),
        GrantState.ENDED: _("ended"),
        GrantState.REVOKED: _("revoked"),
        GrantState.SUSPENDED: _("suspended by a denial"),
    }
    return words[state]


def _describe_limits(grant: Grant) -> str:
    limits = [describe_constraint(constraint) for constraint in grant.constraints]
    free = (path for path in grant.free if path != ALL_ARGUMENTS)
    limits += [_("any or no %(argument)s", argument=name_argument(path)) for path in free]
    if grant.scope is GrantScope.ANY:
        return join_words([*limits, _("any other arguments")]) if limits else _("any arguments")
    if grant.keeps_others:
        return join_words([*limits, _("otherwise the same arguments")]) if limits else _("the same arguments")
    others = _("no other arguments") if limits else _("no arguments at all")
    if grant.is_from_before:
        others = _("%(others)s, as it was given before grants named them all", others=others)
    return join_words([*limits, others])


def _describe_times(grant: Grant) -> str:
    parts = [_("any number of times")]
    if grant.count is not None:
        parts = [ngettext("once", "up to %(num)s times", grant.count)]
    if grant.sum is not None:
        most = write_amount(grant.sum.max)
        parts.append(_("up to %(amount)s %(argument)s in sum", amount=most, argument=name_argument(grant.sum.of)))
    return join_words(parts)


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


def view_mandate(
    mandate: Mandate, state: MandateState, *, void: bool, calls: int = 0, total: int = 0, last_ms: int | None = None
) -> MandateView:
    """Return the view of a mandate after so many calls and this total in millionths, or of a plan of one."""
    envelope, plan = mandate.envelope, describe_plan(mandate.envelope)
    shown = {name: value for name, value in mandate if name in MandateView.model_fields}
    asked = [f"Asked about each time: {call}" for call in plan.asked]
    return MandateView.model_validate(
        {
            **shown,
            "state": state,
            "void": void,
            "sentences": [*plan.calls, *asked, plan.limits, plan.outside],
            "run_id": envelope.run_id or None,
            "count": envelope.count,
            "sum": write_amount(envelope.sum) if envelope.sum is not None else None,
            "at": mandate.at_ms or None,
            "until": mandate.until_ms if mandate.at_ms else None,
            "approved_by": [granter.id for granter in mandate.granters],
            "calls": calls,
            "total": write_amount(total),
            "last_used_at": last_ms,
            "revoked_at": mandate.revoked_at_ms,
        }
    )


def describe_rest(mandate: Mandate, calls: int, total: int) -> str:
    """Return what is left of a mandate after so many calls and this total in millionths."""
    envelope = mandate.envelope
    remaining = max(0, envelope.count - calls)
    parts = [ngettext("%(num)s call left", "%(num)s calls left", remaining)]
    if envelope.sum is not None:
        parts.append(_("%(amount)s in sum left", amount=write_amount(max(0, envelope.sum - total))))
    return join_words(parts)


def describe_trial(asked: int, approved: int, edited: int, denied: int, unanswered: int) -> str:
    """Return which calls a grant would have allowed on probation, and how people decided them."""
    if not asked:
        return _("No like call has come since.")
    calls = ngettext("It would have allowed %(num)s call", "It would have allowed %(num)s calls", asked)
    return _(
        "%(calls)s: people approved %(approved)s, edited %(edited)s and denied %(denied)s; %(unanswered)s unanswered.",
        calls=calls,
        approved=approved,
        edited=edited,
        denied=denied,
        unanswered=unanswered,
    )


def describe_missing(learned: Learned, approved: int) -> str:
    """Return how many approvals are missing before people can put a grant in force."""
    missing = max(0, learned.probation - approved)
    if not missing:
        return _("It may be put in force.")
    return ngettext("It needs %(num)s more approval.", "It needs %(num)s more approvals.", missing)
