"""The banner of an item's page that shows a refused form again."""

from sayso import errors
from sayso.core.problems import Problem
from sayso.core.records.decisions import ActorKind
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.sentences import deadlines
from sayso.core.sentences.outcomes import describe_outcome
from sayso.core.text.language import _, mark
from sayso.errors import DeadlinePassed, InvalidInput, SaysoError
from service.forms.answers import Forms, describe_problems
from service.web.form_posts import SEND_AGAIN, EarlierSignIn

_HEADINGS: tuple[tuple[type[SaysoError], str], ...] = (
    (errors.AlreadyDecided, mark("Already decided")),
    (errors.IdempotencyConflict, mark("You have already decided this")),
    (DeadlinePassed, mark("The deadline has passed")),
    (errors.ClockInDoubt, mark("The clock is in doubt")),
    (errors.StaleDigest, mark("The request has changed")),
    (errors.Conflict, mark("This can no longer be decided")),
    (EarlierSignIn, mark("You have signed in again")),
    (errors.WrongNumber, mark("That is not the number")),
    (errors.TooManyRequests, mark("Too many wrong numbers")),
    (errors.PolicyForbids, mark("The rules do not allow this")),
    (errors.NotAllowed, mark("You cannot decide this")),
    (InvalidInput, mark("Not sent")),
)

_SENTENCES: tuple[tuple[type[SaysoError], str], ...] = (
    (
        errors.IdempotencyConflict,
        mark("Your first decision counts; other reviewers must still decide. Nothing was changed."),
    ),
    (errors.StaleDigest, mark("Check it again below before you decide. Nothing was changed.")),
    (EarlierSignIn, SEND_AGAIN),
)


def write_banner(
    error: SaysoError, problem: Problem, record: SuspensionRecord, item: Item, forms: Forms
) -> dict[str, str]:
    """Return the heading and the text. Where fields are marked, they hold the details."""
    return {"heading": _heading(error, problem, item), "text": _sentence(error, record, item, forms)}


def _heading(error: SaysoError, problem: Problem, item: Item) -> str:
    if item.outcome is not None and item.outcome.by.kind is ActorKind.TIMEOUT:
        return _("The deadline has passed")
    return next((_(heading) for kind, heading in _HEADINGS if isinstance(error, kind)), _(problem.title))


def _sentence(error: SaysoError, record: SuspensionRecord, item: Item, forms: Forms) -> str:
    if not item.open:
        return _("%(outcome)s. Nothing was changed.", outcome=describe_outcome(item))
    if record.status is Status.CANCELLED:
        return _("The run was cancelled. Nothing was changed.")
    if isinstance(error, DeadlinePassed):
        effect = deadlines.describe_fallback(record, item)
        return _("The deadline has passed: %(effect)s. Nothing was changed.", effect=effect)
    known = next((sentence for kind, sentence in _SENTENCES if isinstance(error, kind)), "")
    return _(known) or describe_problems(forms, error) or _(error.message)
