"""Sentences about grants: which calls run without asking, how often, and until when."""

import json

from sayso.policy.memory.amounts import write_amount
from sayso.records.memory.bounds import ALL_ARGUMENTS
from sayso.records.memory.grants import Grant, GrantScope, GrantState
from sayso.records.memory.offers import Constraint, ConstraintKind
from sayso.sentences.moments import Moment, Sentence, compose, write_sentence
from sayso.sentences.names import join_words
from sayso.sentences.times import describe_clock, describe_span
from sayso.text.language import _, ngettext


def describe_grant(grant: Grant) -> Sentence:
    """Return which calls a grant lets run, as one sentence with its end, or its length before people granted it."""
    if grant.learned is not None and not grant.granters:
        return compose(
            _("%(tool)s by %(agent)s, requested by %(owner)s, with %(limits)s, %(times)s, for %(span)s once in force"),
            tool=grant.tool,
            agent=_name_agent(grant),
            owner=grant.owner,
            limits=_describe_limits(grant),
            times=_describe_times(grant),
            span=describe_span(grant.learned.lasts_s * 1000),
        )
    return compose(
        _("%(tool)s by %(agent)s, requested by %(owner)s, with %(limits)s, %(times)s, until %(until)s"),
        tool=grant.tool,
        agent=_name_agent(grant),
        owner=grant.owner,
        limits=_describe_limits(grant),
        times=_describe_times(grant),
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


def _name_agent(grant: Grant) -> str:
    if not grant.subagent:
        return grant.agent
    return _("%(agent)s, sub-agent %(subagent)s", agent=grant.agent, subagent=grant.subagent)


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
