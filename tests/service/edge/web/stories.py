"""Sample runs, made through the desk: started, suspended, decided and ended."""

from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from sayso.core.clock import new_id
from sayso.core.records.decisions import Actor, ActorKind, DecisionRequest
from sayso.core.records.events import Event, EventType
from sayso.core.records.items import Answer, Item, ItemDraft, ItemKind, ItemTool, Prompt
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Intent, RunEnd, RunRef, SuspensionRecord
from sayso.core.records.terms import RuleTerms
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.core.transitions.execution import Fence
from sayso.core.transitions.permits import doubt_intent, put_in_doubt
from service.core.wiring import Wiring

TENANT = "default"
LEASE_MS = 30_000
STATE = seal_state(b'{"schema":"sayso.run/1"}')

REFUND = ToolDefinition(
    name="refund_payment",
    description="Send money back to a customer. It cannot be called back.",
    parameters={
        "type": "object",
        "properties": {
            "order_id": {"type": "string", "description": "The order the payment belongs to."},
            "amount": {"type": "number", "minimum": 0.01, "maximum": 5000, "description": "How much, in the currency."},
            "currency": {"type": "string", "enum": ["CHF", "EUR", "USD"]},
            "notify": {"type": "boolean", "description": "Whether the customer gets a mail."},
            "note": {"type": "string", "description": "Shown to the customer."},
            "lines": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["order_id", "amount", "currency"],
        "additionalProperties": False,
    },
)
REFUND_ARGS: dict[str, JsonValue] = {
    "order_id": "A-1932",
    "amount": 250,
    "currency": "EUR",
    "notify": True,
    "note": "Sorry for the broken cup.\nHere is your money back.",
    "lines": [{"sku": "CUP-7", "count": 2}],
}
BOOK_HOTEL = ToolDefinition(
    name="book_hotel",
    description="Book a room in a hotel.",
    parameters={
        "type": "object",
        "properties": {
            "hotel_name": {"type": "string"},
            "location": {"type": "string"},
            "room_type": {"type": "string", "enum": ["single", "double", "suite"]},
            "start_date": {"type": "string"},
            "nights": {"type": "integer", "minimum": 1},
            "loyalty_code": {"type": "string", "minLength": 4, "description": "The guest's loyalty code."},
        },
        "required": ["hotel_name", "location", "room_type", "start_date", "nights"],
    },
)
BOOK_HOTEL_ARGS: dict[str, JsonValue] = {
    "hotel_name": "Hilton Hotel",
    "location": "Chicago",
    "room_type": "single",
    "start_date": "2022-12-10",
    "nights": 2,
}


def make_ask(
    definition: ToolDefinition = REFUND, args: dict[str, JsonValue] | None = None, index: int = 0, **fields: Any
) -> ItemDraft:
    """An ask for approval of one call, as the runner makes it."""
    prompt = Prompt(reason=fields.pop("reason", "Refunds over 100 need a person"), **fields.pop("prompt", {}))
    return ItemDraft(
        call_id=f"call_{index}",
        index=index,
        tool=ItemTool(name=definition.name, args=REFUND_ARGS if args is None else args, definition=definition.digest),
        prompt=prompt,
        rule_id=fields.pop("rule_id", "refunds-over-100"),
        rule_version="1f4f1c23b69a0c77",
        terms=RuleTerms.model_validate(fields.pop("terms", {})),
        **fields,
    )


def ask_value(
    definition: ToolDefinition = BOOK_HOTEL, args: dict[str, JsonValue] | None = None, **fields: Any
) -> ItemDraft:
    """An ask for a value that goes into one argument."""
    given = {
        "kind": ItemKind.INPUT,
        "allowed": (Answer.VALUE, Answer.DENY),
        "target_arg": "loyalty_code",
        "reason": "The loyalty code is asked from a person",
        "rule_id": "loyalty-codes",
        **fields,
    }
    return make_ask(definition, BOOK_HOTEL_ARGS if args is None else args, **given)


async def begin(
    wiring: Wiring, agent: str = "support", title: str = "", owner: str = "demo", on_deny: str = "continue"
) -> SuspensionRecord:
    """Start a run."""
    run = RunRef(id=new_id("run"), agent=agent, owner=owner, thread_id=new_id("thr"), title=title)
    return (await wiring.desk.start(run, STATE, on_deny=on_deny)).record


async def pause(
    wiring: Wiring, record: SuspensionRecord, drafts: Sequence[ItemDraft], words: str = "", others: Sequence[Event] = ()
) -> SuspensionRecord:
    """Drive the run to where it asks, as a worker does."""
    fence = await take_up(wiring, record)
    judged = [
        Event(
            type=EventType.POLICY_DECISION,
            data={
                "tool_name": ask.tool.name,
                "action": "request_user_input" if ask.kind is ItemKind.INPUT else "request_approval",
                "reason": ask.prompt.reason,
                "call_id": ask.call_id,
                "index": ask.index,
                "policy_id": ask.rule_id,
                "matched_rules": [ask.rule_id, "everything-else"],
            },
        )
        for ask in drafts
    ]
    names = [ask.tool.name for ask in drafts]
    turn = [
        Event(type=EventType.LLM_COMPLETED, data={"text": words, "tool_call_count": len(drafts)}),
        Event(type=EventType.TOOL_BATCH_STARTED, data={"tool_call_count": len(drafts), "step": 1, "tool_names": names}),
    ]
    saved = await wiring.desk.suspend_again(record, fence, tuple(drafts), STATE, (*turn, *judged, *others), 1)
    assert saved.following is not None
    return saved.following


async def asked(
    wiring: Wiring, *drafts: ItemDraft, words: str = "I checked the order; the cup arrived broken.", **run: str
) -> SuspensionRecord:
    """A run that waits for reviewers."""
    await wiring.runs.save_definitions([REFUND, BOOK_HOTEL])
    return await pause(wiring, await begin(wiring, **run), drafts or (make_ask(),), words)


async def decide(
    wiring: Wiring, record: SuspensionRecord, action: str, name: str = "ben", item_id: str = "i1", **fields: Any
) -> SuspensionRecord:
    """Record the decision of another reviewer."""
    item = next(one for one in record.items if one.item_id == item_id)
    word = DecisionRequest.model_validate({"action": action, "digest": item.digest, **fields})
    by = Actor(id=name, kind=ActorKind.HUMAN)
    return (await wiring.desk.decide(record.id, item_id, word, by)).record


async def take_up(wiring: Wiring, record: SuspensionRecord) -> Fence:
    """A worker's lease."""
    saved = await wiring.desk.lease(record.id, "worker:1", LEASE_MS)
    assert saved.record.lease is not None
    return Fence("worker:1", saved.record.lease.attempt, LEASE_MS)


async def finish(
    wiring: Wiring, record: SuspensionRecord, output: JsonValue = "done", error: str = ""
) -> SuspensionRecord:
    """Run the approved calls, record their results, and end the run; with `error`, they fail."""
    fence = await take_up(wiring, record)
    found = await wiring.desk.suspensions.read(record.id)
    assert found.record is not None
    record = found.record
    intents = tuple(_intent(record, item, fence) for item in record.items if item.outcome and item.outcome.may_run)
    if intents:
        await wiring.desk.redeem(record.id, fence, intents, (), None)
    completed = tuple(_completed(item, output, error) for item in record.items)
    end = RunEnd(status="completed", result={"text": "All is done."})  # type: ignore[arg-type]
    return (await wiring.desk.settle(record.id, fence, end, completed)).record


async def lose_worker(wiring: Wiring, record: SuspensionRecord) -> SuspensionRecord:
    """Start the approved call and lose its worker; return the suspension that asks whether it ran."""
    fence = await take_up(wiring, record)
    (item,) = record.items
    intent = _intent(record, item, fence)
    await wiring.desk.redeem(record.id, fence, (intent,), (), None)
    call = ToolCall(call_id=item.call_id, index=item.index, name=item.tool.name, args=item.tool.args)
    draft = put_in_doubt(call, item.tool.definition, doubt_intent(intent))
    saved = await wiring.desk.suspend_again(record, fence, (draft,), STATE, (), 1)
    assert saved.following is not None
    return saved.following


def place_of(record: SuspensionRecord, item_id: str = "i1") -> str:
    return f"/items/{record.id}/{item_id}"


def _intent(record: SuspensionRecord, item: Item, fence: Fence) -> Intent:
    return Intent(
        item_id=item.item_id,
        call_id=item.call_id,
        index=item.index,
        tool=item.tool.name,
        idempotency_key=f"{record.id}:{item.item_id}",
        idempotent=False,
        attempt=fence.attempt,
        holder=fence.holder,
        begun_at_ms=0,
    )


def _completed(item: Item, output: JsonValue, error: str) -> Event:
    ran = item.outcome is not None and item.outcome.may_run and not error
    data: dict[str, JsonValue] = {"tool_name": item.tool.name, "tool_call_id": item.call_id, "index": item.index}
    if ran:
        return Event(
            type=EventType.TOOL_COMPLETED, data={**data, "success": True, "output": output, "latency_ms": 12.4}
        )
    message = item.outcome.message if item.outcome and item.outcome.message else "Denied by reviewer"
    error = error if item.outcome and item.outcome.may_run else message
    return Event(type=EventType.TOOL_COMPLETED, data={**data, "success": False, "error": error})
