"""Lists of names in sentences."""

from collections.abc import Sequence

from sayso.records.terms import group_of
from sayso.text.language import _


def name_reviewers(reviewers: Sequence[str], last: str = "and") -> str:
    """Join reviewers into a list, with groups in words: `anna and the group payments`."""
    groups = ((one, group_of(one)) for one in reviewers)
    return join_words([one if group is None else _("the group %(name)s", name=group) for one, group in groups], last)


def join_words(words: Sequence[str], last: str = "and") -> str:
    """Join words into a list: `anna, ben and carla`."""
    if len(words) < 2:
        return "".join(words)
    joined = _("%(words)s or %(last)s") if last == "or" else _("%(words)s and %(last)s")
    return joined % {"words": ", ".join(words[:-1]), "last": words[-1]}
