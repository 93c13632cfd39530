"""Items without the secrets in their arguments, and the record that a reviewer has opened one."""

from collections.abc import Iterable, Mapping

import structlog

from sayso.core.canonical_json import JsonObject
from sayso.core.records.decisions import Confirmation, Decision, Outcome
from sayso.core.records.items import Item
from sayso.core.records.suspensions import OperatorNote, Status, SuspensionRecord
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.redaction import Redacted, redact
from sayso.core.transitions.closing import list_typed, mask_end
from sayso.core.transitions.deadlines import mark_seen, needs_sight
from sayso.core.transitions.decision_checks import may_decide
from sayso.errors import Conflict, NotFound, Unavailable
from service.core.auth.credentials import Principal
from service.core.wiring import Wiring

Definitions = Mapping[str, ToolDefinition | None]  # definitions of tools by their digests
NO_DEFINITIONS: Definitions = {}


def find_secrets(item: Item, schema: JsonObject | None = None) -> Redacted:
    """Return the requested arguments without secrets, and all secrets of the item, also those in edits and values."""
    if not item.terms.secrets and schema is None:
        return Redacted(item.tool.args, frozenset())
    requested = redact(item.tool.args, schema, item.terms.secrets)
    secrets = requested.secrets
    if item.original is not None:
        secrets |= redact(item.original, schema, item.terms.secrets).secrets
    for decision in (*((item.outcome,) if item.outcome is not None else ()), *item.decisions):
        given: JsonObject = dict(decision.args or {})
        if item.target_arg is not None and decision.value is not None:
            given[item.target_arg] = decision.value
        secrets |= redact(given, schema, item.terms.secrets).secrets if given else frozenset()
    for edited in (*item.previews, *((item.preview_request,) if item.preview_request is not None else ())):
        secrets |= redact(edited.args, schema, item.terms.secrets).secrets if edited.args else frozenset()
    return Redacted(requested.args, secrets)


def mask_item(item: Item, schema: JsonObject | None = None) -> Item:
    """Return the item with its secrets masked; `schema` adds those of an earlier version. Its digest stays."""
    secrets = find_secrets(item, schema)
    if not secrets.masked:
        return item
    prompt = {name: secrets.scrub_json(value) for name, value in item.prompt.model_dump(mode="json").items()}
    update = {
        "tool": item.tool.model_copy(update={"args": secrets.args}),
        "original": redact(item.original, schema, item.terms.secrets).args if item.original is not None else None,
        "prompt": item.prompt.model_copy(update=prompt),
        "computed": secrets.scrub_object(item.computed) if item.computed is not None else None,
        **_mask_previews(item, secrets),
        "outcome": _mask(item, item.outcome, secrets, schema),
        "decisions": tuple(_mask(item, decision, secrets, schema) for decision in item.decisions),
        "confirmation": _mask_confirmation(item, secrets),
        "forwards": tuple(given.model_copy(update={"note": secrets.scrub(given.note)}) for given in item.forwards),
    }
    return item.model_copy(update=update)


def collect_secrets(records: Iterable[SuspensionRecord], definitions: Definitions = NO_DEFINITIONS) -> Redacted:
    """Return the secrets of all items; `definitions` add those of items from earlier versions."""
    secrets: set[str] = set()
    for record in records:
        secrets.update(record.typed)
        for item in record.items:
            definition = definitions.get(item.tool.definition or "")
            secrets |= find_secrets(item, definition.parameters if definition is not None else None).secrets
    return Redacted({}, frozenset(secrets))


def mask_typed(record: SuspensionRecord) -> SuspensionRecord:
    """Return the record with the secrets masked that people gave; what the agent sent stays, for its owner."""
    secrets = Redacted({}, list_typed(record))
    if not secrets.masked:
        return record
    receipt = record.receipt.model_copy(update={"error": _scrub(secrets, record.receipt.error)})
    items = tuple(_mask_given(item, secrets) for item in record.items)
    update = {"items": items, "end": mask_end(record), "receipt": receipt, "notes": _mask_notes(record, secrets)}
    return record.model_copy(update=update)


def _mask_notes(record: SuspensionRecord, secrets: Redacted) -> tuple[OperatorNote, ...]:
    return tuple(note.model_copy(update={"text": secrets.scrub(note.text)}) for note in record.notes)


def _mask_given(item: Item, secrets: Redacted) -> Item:
    permit = item.permit
    if permit is not None and permit.report is not None:
        report = permit.report
        said = {"output": secrets.scrub_json(report.output), "error": _scrub(secrets, report.error)}
        permit = permit.model_copy(update={"report": report.model_copy(update=said)})
    # a call in doubt has the value among its arguments, and one of a later stage the edits
    given = item.doubt is not None or item.original is not None
    args = secrets.scrub_object(item.tool.args) if given else item.tool.args
    update = {
        "tool": item.tool.model_copy(update={"args": args}),
        "outcome": _mask(item, item.outcome, secrets, None),
        "decisions": tuple(_mask(item, decision, secrets, None) for decision in item.decisions),
        "confirmation": _mask_confirmation(item, secrets),
        **_mask_previews(item, secrets),
        "permit": permit,
        "inquiries": tuple(
            inquiry.model_copy(update={"text": secrets.scrub(inquiry.text), "answer": _scrub(secrets, inquiry.answer)})
            for inquiry in item.inquiries
        ),
    }
    return item.model_copy(update=update)


def _mask_previews(item: Item, secrets: Redacted) -> dict[str, object]:
    """Return the item's previews without secrets, and the edit that it waits for one of."""
    previews = (
        preview.model_copy(
            update={
                "content": secrets.scrub_json(preview.content),
                "before": secrets.scrub_json(preview.before),
                "error": _scrub(secrets, preview.error),
                "args": secrets.scrub_object(preview.args) if preview.args is not None else None,
            }
        )
        for preview in item.previews
    )
    asked = item.preview_request
    if asked is not None and asked.args is not None:
        asked = asked.model_copy(update={"args": secrets.scrub_object(asked.args)})
    return {"previews": tuple(previews), "preview_request": asked}


def _mask_confirmation(item: Item, secrets: Redacted) -> Confirmation | None:
    given = item.confirmation
    return given.model_copy(update={"message": _scrub(secrets, given.message)}) if given is not None else None


def _scrub(secrets: Redacted, text: str | None) -> str | None:
    return secrets.scrub(text) if text is not None else None


def mask_record(record: SuspensionRecord) -> SuspensionRecord:
    """Return the record with the secrets of all its items masked, also in the claims of its agent."""
    secrets = collect_secrets([record])
    if not secrets.masked:
        return record
    run = {"title": secrets.scrub(record.run.title), "claimed": secrets.scrub_object(record.run.claimed)}
    items = tuple(mask_item(item) for item in record.items)
    update = {"items": items, "run": record.run.model_copy(update=run), "notes": _mask_notes(record, secrets)}
    return record.model_copy(update=update)


def _mask(
    item: Item, decision: Outcome | Decision | None, secrets: Redacted, schema: JsonObject | None
) -> Outcome | Decision | None:
    if decision is None:
        return None
    value, target = decision.value, item.target_arg
    if target is not None and value is not None:
        value = redact({target: value}, schema, item.terms.secrets).args[target]
    update: dict[str, object] = {"message": _scrub(secrets, decision.message), "value": secrets.scrub_json(value)}
    if decision.args is not None:
        update["args"] = secrets.scrub_object(redact(decision.args, schema, item.terms.secrets).args)
    return decision.model_copy(update=update)


_LOG = structlog.get_logger(__name__)


async def note_seen(
    parts: Wiring, record: SuspensionRecord, caller: Principal, channel: str, item_id: str | None = None
) -> SuspensionRecord:
    """Record that the caller saw items, where a fallback or a delivery depends on it; return the current record."""
    by = caller.reviewer(channel)
    for item in record.items if record.status is Status.PENDING else ():
        if item_id not in (None, item.item_id) or not may_decide(record, item, by):
            continue
        if not needs_sight(record, item) and mark_seen(item, by, 0) is item:
            continue
        try:
            record = (await parts.desk.see(record.id, item.item_id, by)).record
        except (Conflict, NotFound, Unavailable) as error:
            _LOG.warning("sighting_not_noted", suspension=record.id, item=item.item_id, why=error.message)
    return record
