"""What people changed or denied, as JSON lines: the call as its reader may see it, the difference and the reason."""

import asyncio
from collections.abc import AsyncGenerator, Iterator

from sayso.core.canonical_json import digest_json
from sayso.core.records.decisions import ActorKind, Outcome, Verdict
from sayso.core.records.items import Item
from sayso.core.records.suspensions import SuspensionRecord
from sayso.core.transitions.permits import approved_args
from sayso.errors import Unreadable
from sayso.wire.evidence import OverrideView
from sayso.wire.models import moment
from service.core.operations.masking import mask_record, mask_typed
from service.core.store.suspensions.reading import UnreadableRecord, id_of
from service.core.wiring import Wiring
from service.features.overrides.patches import make_patch
from service.features.overrides.store import DecidedIndex

_MISSING = "A part of the archive cannot be read, so lines may be missing. Ask the operator to run `sayso doctor`."


async def export_overrides(
    wiring: Wiring, begin_ms: int, end_ms: int, owner: str | None = None
) -> AsyncGenerator[bytes]:
    """Yield lines for the edits and denials of suspensions that were decided in a time, the first first.

    Archived ones follow those in the store, with one segment of them open at a time. With an `owner`, those of this
    agent's runs, as it may see them.
    """
    read = set[str]()
    async for ids in wiring.part(DecidedIndex).list_pages(begin_ms, end_ms):
        for record in await wiring.desk.suspensions.read_page(ids):
            read.add(id_of(record))
            if isinstance(record, UnreadableRecord):
                if owner is None:
                    yield _write_damage(record)
            elif owner in (None, record.run.owner):
                yield await asyncio.to_thread(_write_lines, record, owner is not None)  # large calls take a while
    async for archived in wiring.store.archive.list_decided(begin_ms, end_ms, owner):
        if isinstance(archived, Unreadable):
            yield _write(OverrideView(kind="unreadable", reason=archived.message if owner is None else _MISSING))
        elif archived.id not in read:  # one that was read back is in the store, too
            yield await asyncio.to_thread(_write_lines, archived, owner is not None)


def _write_damage(record: UnreadableRecord) -> bytes:
    return _write(OverrideView(kind="unreadable", suspension_id=record.suspension_id, reason=record.reason))


def _write_lines(record: SuspensionRecord, of_agent: bool) -> bytes:
    return b"".join(map(_write, list_overrides(record, of_agent=of_agent)))


def _write(view: OverrideView) -> bytes:
    return view.model_dump_json().encode() + b"\n"


def list_overrides(record: SuspensionRecord, *, of_agent: bool = False) -> Iterator[OverrideView]:
    """Yield the edits and denials by people, with secrets masked for the reader; none of drills and erased items."""
    masked = mask_typed(record) if of_agent else mask_record(record)
    for item in masked.items if not record.is_drill else ():
        outcome = item.outcome
        if outcome is None or outcome.by.kind is not ActorKind.HUMAN or item.erasure is not None:
            continue
        replaced = _is_replaced(record, item)
        edited = approved_args(item) if outcome.args is not None or replaced else None
        if outcome.verdict is Verdict.DENIED or (outcome.verdict is Verdict.APPROVED and edited is not None):
            args = None if replaced else item.tool.args
            patch = make_patch(args, edited) if args is not None and edited is not None else None
            shown = {"args": args, "edited_args": edited, "patch": patch, "by": _list_people(item, outcome, of_agent)}
            yield OverrideView.model_validate(_describe(record, item, outcome) | shown)


def _is_replaced(record: SuspensionRecord, item: Item) -> bool:
    """Whether the arguments of the item are a reviewer's, which were asked again; the agent's own are not kept."""
    stored = next(each for each in record.items if each.item_id == item.item_id)
    return bool(item.requested) and item.requested != digest_json(stored.tool.args)


def _list_people(item: Item, outcome: Outcome, of_agent: bool) -> list[str]:
    """Return who decided; an agent sees the author of the outcome alone, as in its suspension."""
    others = () if of_agent else (decision.by.id for decision in item.decisions)
    return [*dict.fromkeys((outcome.by.id, *others))]


def _describe(record: SuspensionRecord, item: Item, outcome: Outcome) -> dict[str, object]:
    return {
        "kind": "changes" if outcome.changes else "denial" if outcome.verdict is Verdict.DENIED else "edit",
        "change_paths": outcome.changes.paths if outcome.changes else (),
        "asked_at": moment(record.created_at_ms),
        "decided_at": moment(outcome.at_ms),
        "agent": record.run.agent,
        "requester": record.run.owner,
        "run_id": record.run.id,
        "suspension_id": record.id,
        "item_id": item.item_id,
        "tool": item.tool.name,
        "verdict": outcome.verdict,
        "reason": outcome.message,
        "rule": item.terms.rule_id,
        "tags": record.run.tags,
    }
