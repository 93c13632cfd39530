"""Sentences about grants that Sayso proposes: what they would have allowed, and what is missing."""

from sayso.records.memory.learning import Learned
from sayso.text.language import _, ngettext


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
