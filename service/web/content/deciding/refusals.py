"""The banner of an item's page that shows a refused form again."""

from sayso import errors
from sayso.errors import DeadlinePassed, InvalidInput, SaysoError
from sayso.problems import Problem
from sayso.records.decisions import ActorKind
from sayso.records.items import Item
from sayso.records.suspensions import Status, SuspensionRecord
from sayso.sentences import deadlines
from sayso.sentences.outcomes import describe_outcome
from service.forms.answers import Forms, describe_problems
from service.web.form_posts import SEND_AGAIN, EarlierSignIn

_HEADINGS: tuple[tuple[type[SaysoError], str], ...] = (
    (errors.AlreadyDecided, "Already decided"),
    (errors.IdempotencyConflict, "You have already decided this"),
    (DeadlinePassed, "The deadline has passed"),
    (errors.ClockInDoubt, "The clock is in doubt"),
    (errors.StaleDigest, "The request has changed"),
    (errors.Conflict, "This can no longer be decided"),
    (EarlierSignIn, "You have signed in again"),
    (errors.WrongNumber, "That is not the number"),
    (errors.TooManyRequests, "Too many wrong numbers"),
    (errors.PolicyForbids, "The rules do not allow this"),
    (errors.NotAllowed, "You cannot decide this"),
    (InvalidInput, "Your input was not accepted"),
)

_SENTENCES: tuple[tuple[type[SaysoError], str], ...] = (
    (errors.IdempotencyConflict, "Your first decision counts; other reviewers must still decide. Nothing was changed."),
    (errors.StaleDigest, "Check it again below before you decide. Nothing was changed."),
    (EarlierSignIn, SEND_AGAIN),
)


def write_banner(
    error: SaysoError, problem: Problem, record: SuspensionRecord, item: Item, forms: Forms
) -> dict[str, str]:
    """Return the heading and the text. Where fields are marked, they hold the details."""
    return {"heading": _heading(error, problem, item), "text": _sentence(error, record, item, forms)}


def _heading(error: SaysoError, problem: Problem, item: Item) -> str:
    if item.outcome is not None and item.outcome.by.kind is ActorKind.TIMEOUT:
        return "The deadline has passed"
    return next((heading for kind, heading in _HEADINGS if isinstance(error, kind)), problem.title)


def _sentence(error: SaysoError, record: SuspensionRecord, item: Item, forms: Forms) -> str:
    if not item.open:
        return f"{describe_outcome(item)}. Nothing was changed."
    if record.status is Status.CANCELLED:
        return "The run was cancelled. Nothing was changed."
    if isinstance(error, DeadlinePassed):
        return f"The deadline has passed: {deadlines.describe_fallback(record, item)}. Nothing was changed."
    known = next((sentence for kind, sentence in _SENTENCES if isinstance(error, kind)), "")
    return known or describe_problems(forms, error) or error.message
