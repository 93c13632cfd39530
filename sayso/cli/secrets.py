"""Suspensions without the secrets in their arguments, for the terminal."""

from typing import TypeVar

from sayso.canonical_json import JsonObject
from sayso.client.responses import ItemView, OutcomeView, ResponseModel, Suspension
from sayso.text.redaction import Redacted, redact

Model = TypeVar("Model", bound=ResponseModel | None)


def mask_suspension(suspension: Suspension) -> Suspension:
    """Return the suspension with its items' secrets masked, also where other texts quote them."""
    secrets = Redacted({}, frozenset().union(*(_find_secrets(item) for item in suspension.items)))
    if not secrets.masked:
        return suspension
    update = {
        "run": _scrub(suspension.run, secrets, "claimed_title", "claimed_context"),
        "end": _scrub(suspension.end, secrets, "result", "error"),
        "items": tuple(_mask_item(item, secrets) for item in suspension.items),
    }
    return suspension.model_copy(update=update)


def _find_secrets(item: ItemView) -> frozenset[str]:
    given = [item.tool.args, *_list_decided(item)]
    return frozenset().union(*(redact(args, None, item.terms.secrets).secrets for args in given))


def _list_decided(item: ItemView) -> list[JsonObject]:
    """Return the arguments that the outcome has, and its value as an argument."""
    if item.outcome is None:
        return []
    value: JsonObject = {item.target_arg: item.outcome.value} if item.target_arg is not None else {}
    return [item.outcome.args or {}, value]


def _mask_item(item: ItemView, secrets: Redacted) -> ItemView:
    permit = item.permit
    if permit is not None:
        permit = permit.model_copy(update={"report": _scrub(permit.report, secrets, "output", "error")})
    args = secrets.scrub_object(redact(item.tool.args, None, item.terms.secrets).args)
    update = {
        "tool": item.tool.model_copy(update={"args": args}),
        "prompt": _scrub(item.prompt, secrets, "title", "body", "reason"),
        "outcome": _mask_outcome(item, item.outcome, secrets),
        "permit": permit,
        "inquiries": tuple(_scrub(inquiry, secrets, "text", "answer") for inquiry in item.inquiries),
    }
    return item.model_copy(update=update)


def _mask_outcome(item: ItemView, outcome: OutcomeView | None, secrets: Redacted) -> OutcomeView | None:
    if outcome is None:
        return None
    args, values = (redact(given, None, item.terms.secrets).args for given in _list_decided(item))
    value = values[item.target_arg] if item.target_arg is not None else outcome.value
    masked = outcome.model_copy(update={"args": args if outcome.args is not None else None, "value": value})
    return _scrub(masked, secrets, "args", "value", "message")


def _scrub(model: Model, secrets: Redacted, *names: str) -> Model:
    """Return a model with these fields scrubbed; None stays."""
    if model is None:
        return model
    return model.model_copy(update={name: secrets.scrub_json(getattr(model, name)) for name in names})
