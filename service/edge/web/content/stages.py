"""The stages from an item's decision to its effect, and the banner over a form that was refused."""

from collections.abc import Iterator
from typing import NamedTuple

from sayso import errors
from sayso.core.problems import Problem
from sayso.core.records.decisions import ActorKind, Outcome, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import Status, SuspensionRecord
from sayso.core.records.undoing import is_offer
from sayso.core.sentences import deadlines
from sayso.core.sentences.outcomes import describe_outcome, describe_state
from sayso.core.text.language import _, mark, ngettext
from sayso.core.transitions.states import ItemState, find_item_state
from sayso.core.transitions.superseding import is_superseded
from sayso.errors import DeadlinePassed, InvalidInput, SaysoError
from service.edge.web.content.details import Result
from service.edge.web.sessions import SEND_AGAIN, EarlierSignIn, describe_refusal
from service.forms.answers import Forms, describe_problems


class Stage(NamedTuple):
    """One stage; without a time it is still to come."""

    text: str
    at_ms: int | None
    tone: str = "plain"


def list_stages(record: SuspensionRecord, item: Item, result: Result | None) -> list[Stage]:
    """Return the stages of a decided item; none while it is open."""
    if item.outcome is None:
        return []
    decided = describe_outcome(item) if is_offer(item) else describe_state(item.outcome.verdict)
    stages = [Stage(f"{decided[:1].upper()}{decided[1:]}", item.outcome.at_ms, _find_tone(item.outcome))]
    waiting = sum(1 for other in record.items if other.open)
    if is_superseded(record):
        return [*stages, Stage(_("Asked again as another item"), record.updated_at_ms, "wait")]
    if record.status is Status.CANCELLED:
        return [*stages, Stage(_("The run was cancelled"), record.updated_at_ms, "bad")]
    if waiting:
        waits = ngettext("The run waits for another item", "The run waits for %(num)s other items", waiting)
        return [*stages, Stage(waits, None, "wait")]
    if record.resume.mode != "poll":
        stages += _list_worker_stages(record, item)
    elif item.permit is not None or item.outcome.may_run:
        redeemed_at_ms = item.permit.redeemed_at_ms if item.permit is not None else None
        stages.append(Stage(_("Started by %(who)s", who=record.run.owner), redeemed_at_ms))
    stages += _list_results(record, item, result)
    if record.receipt.settled_at_ms is not None:
        stages.append(Stage(_("Done"), record.receipt.settled_at_ms))
    return stages


def _find_tone(outcome: Outcome) -> str:
    if outcome.verdict not in (Verdict.APPROVED, Verdict.ANSWERED):
        return "bad"
    return "wait" if outcome.by.kind is ActorKind.TIMEOUT else "plain"


def _list_worker_stages(record: SuspensionRecord, item: Item) -> Iterator[Stage]:
    receipt, lease = record.receipt, record.lease
    queued = _("Handed over")
    if receipt.redrives:
        queued = ngettext("Handed over, again %(num)s time", "Handed over, again %(num)s times", receipt.redrives)
    leased = _("A worker has it")
    if lease is not None:
        worker = _("%(worker)s, attempt %(attempt)s", worker=lease.holder, attempt=lease.attempt)
        worker = _("%(worker)s, job %(job)s", worker=worker, job=receipt.job_id) if receipt.job_id else worker
        leased = _("A worker has it (%(worker)s)", worker=worker)
    yield Stage(queued, receipt.enqueued_at_ms)
    yield Stage(leased, receipt.leased_at_ms)
    if record.status is Status.FAILED and record.end is not None:
        yield Stage(_("The workers gave up: %(error)s", error=record.end.error), record.updated_at_ms, "bad")
    elif receipt.resumed_at_ms is not None or receipt.error is None:
        yield Stage(_("The run resumed"), receipt.resumed_at_ms)
    else:
        yield Stage(_("Decided, not yet resumed: %(error)s", error=receipt.error), None, "bad")
    if item.permit is not None:
        yield Stage(_("Started"), item.permit.redeemed_at_ms)


def _list_results(record: SuspensionRecord, item: Item, result: Result | None) -> Iterator[Stage]:
    may_run, by_client = item.outcome is not None and item.outcome.may_run, record.resume.mode == "poll"
    if result is not None:
        call = item.tool.name
        text = _("%(call)s failed", call=call)
        if result.success:
            text = _("%(call)s ran%(latency)s", call=call, latency=result.latency)
        yield Stage(text, result.at_ms, "good" if result.success else "bad")
    elif find_item_state(record, item) is ItemState.IN_DOUBT and not by_client:
        yield Stage(_("No result was reported"), None, "bad")
    elif record.end is not None and by_client:
        if may_run:
            missed = _("The call was not started in time")
            if item.permit is not None:
                missed = _("No result was reported")
            yield Stage(missed, None, "bad")
    elif may_run and record.status is not Status.FAILED:
        yield Stage(_("%(call)s runs", call=item.tool.name), None)


_HEADINGS: tuple[tuple[type[SaysoError], str], ...] = (
    (errors.AlreadyDecided, mark("Already decided")),
    (errors.IdempotencyConflict, mark("You have already decided this")),
    (DeadlinePassed, mark("The deadline has passed")),
    (errors.ClockInDoubt, mark("The clock is in doubt")),
    (errors.StaleDigest, mark("The request has changed")),
    (errors.Conflict, mark("This can no longer be decided")),
    (EarlierSignIn, mark("You have signed in again")),
    (errors.StepUpRequired, mark("One more proof is needed")),
    (errors.WrongNumber, mark("That is not the number")),
    (errors.WrongCode, mark("That code does not count")),
    (errors.TooManyRequests, mark("Too many wrong attempts")),
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


def write_refusal(error: SaysoError, record: SuspensionRecord, item: Item) -> str:
    """Return why a form beside the decision was refused."""
    if isinstance(error, errors.StaleDigest) and item.open:
        return _("The request has changed. Check it again, then send this again.")
    return _describe_end(error, record, item) or describe_refusal(error)


def _heading(error: SaysoError, problem: Problem, item: Item) -> str:
    if item.outcome is not None and item.outcome.by.kind is ActorKind.TIMEOUT:
        return _("The deadline has passed")
    return next((_(heading) for kind, heading in _HEADINGS if isinstance(error, kind)), _(problem.title))


def _sentence(error: SaysoError, record: SuspensionRecord, item: Item, forms: Forms) -> str:
    known = next((sentence for kind, sentence in _SENTENCES if isinstance(error, kind)), "")
    return _describe_end(error, record, item) or _(known) or describe_problems(forms, error) or _(error.message)


def _describe_end(error: SaysoError, record: SuspensionRecord, item: Item) -> str:
    """Return why the item takes no decision any longer; empty if it does."""
    if not item.open:
        return _("%(outcome)s. Nothing was changed.", outcome=describe_outcome(item))
    if is_superseded(record):
        return _("This was asked again as another item. Nothing was changed.")
    if record.status is Status.CANCELLED:
        return _("The run was cancelled. Nothing was changed.")
    if isinstance(error, DeadlinePassed):
        effect = deadlines.describe_fallback(record, item)
        return _("The deadline has passed: %(effect)s. Nothing was changed.", effect=effect)
    return ""
