"""Sentences about replays: what happened to calls, and how much time reviewers would have spent."""

from sayso.core.sentences.times import describe_span
from sayso.core.text.language import _
from sayso.features.whatif.matrix import Past

_SHORTEST_MS = 1_000


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
