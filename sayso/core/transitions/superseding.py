"""Requests under a key that a client used before: what differs, and the transition that asks about the calls again.

A key stands for its tools and their arguments. Everything else may change: a call that has run keeps its result, a
denied one stays denied, and one that has not started is asked again as it is now.
"""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from sayso.core.canonical_json import canonical_json, digest_json
from sayso.core.records.decisions import ActorKind
from sayso.core.records.envelopes import Revision
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Item, ItemDraft
from sayso.core.records.suspensions import Change, RunEnd, RunRef, RunStatus, Status, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.transitions.closing import follow, stop
from sayso.core.transitions.deciding import suspend
from sayso.core.transitions.legal import check_step
from sayso.errors import IdempotencyConflict, InvalidInput

Calls = Sequence[tuple[ToolCall, ToolDefinition]]
Definitions = Mapping[str, ToolDefinition | None]
"""Stored definitions by digest; None for one that is no longer stored."""

_LONGEST_REASON = 2000


def is_superseded(record: SuspensionRecord) -> bool:
    """Whether its calls were asked again before any of them started; `following_id` leads to their items."""
    return record.resume.mode == "poll" and record.following_id is not None and not _has_begun(record)


def find_revision(record: SuspensionRecord | None, place: str, run: RunRef, tool: str) -> Revision:
    """Return what a call of a run revises that names an item, as `suspension/item`; `record` is that suspension.

    It must be an item of the same agent and tool, of which a reviewer requested changes. Raises `InvalidInput`.
    """
    suspension_id, _, item_id = place.partition("/")
    outcome = None
    if record is not None and (record.run.owner, record.run.agent) == (run.owner, run.agent) and not record.is_drill:
        named = (item for item in record.items if (item.item_id, item.tool.name) == (item_id, tool))
        outcome = next((item.outcome for item in named), None)
    if outcome is None or outcome.changes is None:
        raise InvalidInput(
            f"{place[:100]!r} is no {tool} call of this agent of which a reviewer requested changes. Ask without "
            "revises, or name the item of that call as SUSPENSION/ITEM.",
        )
    return Revision(suspension_id=suspension_id, item_id=item_id, round=outcome.changes.round)


def list_changes(
    record: SuspensionRecord, asked: SuspensionRecord, calls: Calls, known: Definitions, key: str
) -> tuple[str, ...]:
    """Return what changed beside tools and arguments since the record was asked, such as `description`.

    Raises `IdempotencyConflict` for other tools, arguments or another person than the key stands for.
    """
    if asked.run.request_id == record.run.request_id:
        return ()
    if differs := [*_list_others(record, asked.run, calls, known)]:
        raise _describe_conflict(record, differs, key)
    changes: dict[str, None] = {}
    for item, (_, definition) in zip(record.items, calls, strict=True):
        if item.tool.definition != definition.digest:
            before, parts = known.get(item.tool.definition), ("description", "parameters", "idempotent")
            changed = [part for part in parts if before and getattr(before, part) != getattr(definition, part)]
            changes |= dict.fromkeys(changed or ["definition"])
    pairs = {
        "thread_id": (record.run.thread_id, asked.run.thread_id),
        "title": (record.run.title, asked.run.title),
        "context": (record.run.claimed, asked.run.claimed),
        "tags": (record.run.tags, asked.run.tags),
        "coverage": (record.resume.coverage, asked.resume.coverage),
        "on_deny": (record.on_deny, asked.on_deny),
    }
    changes |= dict.fromkeys(name for name, (before, now) in pairs.items() if before != now)
    return tuple(changes) or ("step",)  # the record has the turn that counted, not the one that was sent


def find_reason(record: SuspensionRecord, changed: Sequence[str], *, again: bool, now_ms: int) -> str | None:
    """Return why the calls are asked again, or None where the record stands.

    A started call, a denial by a person or a rule, and a cancelled run stand. What time has ended is asked `again`.
    """
    if _has_begun(record) or record.erasure is not None or record.status in (Status.CANCELLED, Status.FAILED):
        return None
    if again and all(_has_ended_by_time(record, item, now_ms) for item in record.items):
        if any(item.outcome is not None and item.outcome.may_run for item in record.items):
            return "Asked again, because the approved call did not start in time."
        return "Asked again, because nobody decided the earlier item in time."
    stands = record.end is not None or any(item.outcome and not item.outcome.may_run for item in record.items)
    if stands or not changed:
        return None
    return f"Asked again with a changed definition ({', '.join(changed)}); the earlier item was withdrawn."


def supersede(
    record: SuspensionRecord,
    asked: SuspensionRecord,
    drafts: tuple[ItemDraft, ...],
    judged: tuple[Event, ...],
    why: str,
    now_ms: int,
) -> Change:
    """Ask about the calls again in the run's next suspension, and withdraw what is not decided or not started.

    A run that has ended goes on; its earlier suspension keeps its end.
    """
    check_step(record, "supersede")
    explained = tuple(
        draft.model_copy(
            update={
                "prompt": draft.prompt.model_copy(
                    update={"reason": " ".join(filter(None, (why, draft.prompt.reason)))[:_LONGEST_REASON]}
                )
            }
        )
        for draft in drafts
    )
    run = asked.run.model_copy(update={"started_at_ms": record.run.started_at_ms})
    begun = suspend(asked.model_copy(update={**follow(record), "run": run}), explained, now_ms)
    data = {"suspension_id": record.id, "following_id": asked.id, "reason": why}
    events = tuple(Event(EventType.ASKED_AGAIN, {**data, "item_id": item.item_id}) for item in record.items)
    if record.end is None:
        record = stop(record, Status.CANCELLED, RunEnd(status=RunStatus.CANCELLED, error=why), now_ms)
    before = record.model_copy(update={"following_id": asked.id, "updated_at_ms": now_ms})
    return Change(before, events + judged + begun.events, following=begun.record)


def _has_begun(record: SuspensionRecord) -> bool:
    return any(item.permit is not None or item.doubt is not None for item in record.items)


def _describe_conflict(record: SuspensionRecord, differs: Sequence[str], key: str) -> IdempotencyConflict:
    began = _has_begun(record)
    problem = f"The Idempotency-Key {key} belongs to another call: {', '.join(differs)} differs"
    facts: dict[str, object] = {"idempotency_key": key, "differs": ", ".join(differs), "may_have_run": began}
    if began:
        return IdempotencyConflict(
            f"{problem}. It may have run. Repeat it with its own arguments for its result.", **facts
        )
    return IdempotencyConflict(f"{problem}. Send other calls under another key.", **facts)


def _list_others(record: SuspensionRecord, run: RunRef, calls: Calls, known: Definitions) -> Iterator[str]:
    """Yield what makes these calls others than those of the record; nothing for the same, and once they are erased."""
    if record.erasure is not None:
        return
    if _find_person(record.run) != _find_person(run):
        yield "on_behalf_of"
    if len(record.items) != len(calls):
        yield "calls"
        return
    for place, (item, (call, definition)) in enumerate(zip(record.items, calls, strict=True)):
        prefix = f"calls[{place}]." if len(calls) > 1 else ""
        if item.tool.name != call.name:
            yield f"{prefix}tool"
        elif item.requested:  # its arguments are a reviewer's
            yield from () if digest_json(call.args) == item.requested else (f"{prefix}args",)
        else:
            before = known.get(item.tool.definition)
            yield from (f"{prefix}args.{name}" for name in _list_other_args(item, before, call, definition))


def _list_other_args(
    item: Item, before: ToolDefinition | None, call: ToolCall, definition: ToolDefinition
) -> Iterator[str]:
    """Yield the arguments that differ. A parameter that one definition lacks does not, if it has its default."""
    was, now = item.tool.args, call.args
    for name in sorted({*was, *now}):
        if name in was and name in now:
            same = canonical_json(was[name]) == canonical_json(now[name])
        elif name in now:
            same = before is not None and name not in before.properties and _is_default(definition, name, now[name])
        else:
            same = before is not None and name not in definition.properties and _is_default(before, name, was[name])
        if not same:
            yield name


def _is_default(definition: ToolDefinition, name: str, value: JsonValue) -> bool:
    schema, required = definition.properties.get(name), definition.parameters.get("required")
    if not isinstance(schema, dict) or "default" not in schema or (isinstance(required, list) and name in required):
        return False
    return canonical_json(schema["default"]) == canonical_json(value)


def _find_person(run: RunRef) -> tuple[str, str] | None:
    who = run.who
    return (who.issuer, who.person) if who is not None and who.person is not None else None


def _has_ended_by_time(record: SuspensionRecord, item: Item, now_ms: int) -> bool:
    outcome = item.outcome
    if outcome is None:
        return False
    if outcome.may_run:
        return record.end is not None or now_ms >= item.start_by_ms
    return outcome.by.kind is ActorKind.TIMEOUT
