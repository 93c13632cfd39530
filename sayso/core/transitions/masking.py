"""Masking of the secrets that people typed in what agents, models and tools report afterwards."""

from sayso.core.canonical_json import JsonObject
from sayso.core.records.events import Event
from sayso.core.records.suspensions import RunEnd, SuspensionRecord
from sayso.core.text.redaction import Redacted, redact

_CONTENTS = ("text", "output", "error", "result", "message", "reason")
"""The fields of events that hold what agents, models, tools and people wrote."""


def list_typed(record: SuspensionRecord) -> frozenset[str]:
    """Return the secrets that people gave, as a value or in an edit, in this suspension or an earlier one."""
    secrets = frozenset(record.typed)
    for item in record.items:
        if item.terms.secrets and item.doubt is None:
            for given in (item.outcome, *item.decisions):
                if given is not None:
                    args: JsonObject = dict(given.args or {})
                    if item.target_arg is not None and given.value is not None:
                        args[item.target_arg] = given.value
                    secrets |= redact(args, None, item.terms.secrets).secrets
    return secrets - {""}


def mask_end(record: SuspensionRecord) -> RunEnd | None:
    """Return how the run ended, with the secrets masked that people typed."""
    typed = Redacted({}, list_typed(record))
    if record.end is None or not typed.masked:
        return record.end
    error = typed.scrub(record.end.error) if record.end.error is not None else None
    return record.end.model_copy(update={"result": typed.scrub_json(record.end.result), "error": error})


def mask_contents(record: SuspensionRecord, events: tuple[Event, ...]) -> tuple[Event, ...]:
    """Return the events with the record's secrets masked in what agents, models and tools wrote; other fields stay."""
    secrets = list_typed(record)
    for item in record.items:
        if item.terms.secrets:
            secrets |= redact(item.tool.args, None, item.terms.secrets).secrets
    masking = Redacted({}, secrets)
    return tuple(_mask_event(event, masking) for event in events) if masking.masked else events


def _mask_event(event: Event, secrets: Redacted) -> Event:
    masked = {name: secrets.scrub_json(event.data[name]) for name in _CONTENTS if name in event.data}
    return event._replace(data={**event.data, **masked}) if masked else event
