"""Sentences that reviewers read, shared by pages, channels and the command line. Here are lists of names."""

from collections.abc import Sequence

from sayso.core.records.terms import group_of
from sayso.core.text.language import _


def name_reviewers(reviewers: Sequence[str], last: str = "and") -> str:
    """Join reviewers into a list, with groups in words: `anna and the group payments`."""
    return join_words([_name(reviewer) for reviewer in reviewers], last)


def name_each(names: Sequence[str]) -> str:
    """Join the names of whom each must be somebody: `anna and one of finance`."""
    groups = [(name, group_of(name)) for name in names]
    return join_words([_name(name) if group is None else _("one of %(group)s", group=group) for name, group in groups])


def _name(reviewer: str) -> str:
    if reviewer == "manager_of:who.person":
        return _("the manager of the person the agent acts for")
    if reviewer == "manager_of:who.owner":
        return _("the manager of the key's owner")
    group = group_of(reviewer)
    return reviewer if group is None else _("the group %(name)s", name=group)


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Join words into a list: `anna, ben and carla`."""
    if len(words) < 2:
        return "".join(words)
    joined = _("%(words)s or %(last)s") if last == "or" else _("%(words)s and %(last)s")
    return joined % {"words": ", ".join(words[:-1]), "last": words[-1]}
