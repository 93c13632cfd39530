"""Offers to undo calls that ran under a veto: each a suspension of its own, saved before the result of its call."""

from hashlib import sha256
from typing import NamedTuple

from sayso.core.records.events import Event, EventType
from sayso.core.records.items import ItemDraft
from sayso.core.records.run_state import SealedState, seal_state
from sayso.core.records.suspensions import RunRef, SuspensionRecord, Who
from sayso.core.records.tools import ToolDefinition
from sayso.runner.agents import Agent
from sayso.runner.batches import BatchCall
from sayso.runner.reversals import keep_call, make_undo_tool, offer_undo
from service.core.desk.desk import Desk

OWNER = "sayso:veto"  # the requester of offers: no key can have this name, so no agent can read or cancel them


class Offer(NamedTuple):
    """What the desk saves of one offer."""

    run: RunRef
    item: ItemDraft
    definition: ToolDefinition
    state: SealedState
    typed: tuple[str, ...]


def make_offer(agent: Agent, record: SuspensionRecord, entry: BatchCall, key: str, at_ms: int) -> Offer:
    """Return the offer to undo a call; calls with the same idempotency key have one offer."""
    item = offer_undo(agent, record, entry, at_ms)
    run_id = f"run_{sha256(f'undo {key}'.encode()).hexdigest()[:32]}"
    who = record.run.who or Who()
    run = RunRef(
        id=run_id,
        agent=agent.name,
        owner=OWNER,
        thread_id=run_id,
        who=who.model_copy(update={"owner": who.owner or record.run.owner}),
        key_maker=record.run.key_maker,
    )
    definition = make_undo_tool(agent.tools_by_name[entry.call.name]).definition
    return Offer(run, item, definition, seal_state(keep_call(entry).model_dump_json().encode()), record.typed)


async def save_offer(desk: Desk, offer: Offer) -> Event:
    """Save an offer, once, and return the event that names it on the run of its call."""
    record = (await desk.offer_undo(*offer)).record
    item, call = record.items[0], offer.item
    data = {"tool_name": call.reverses.tool if call.reverses is not None else "", "call_id": call.call_id}
    index = call.reverses.index if call.reverses is not None else 0
    until_ms = item.terms.deadline_at_ms
    return Event(EventType.UNDO_OFFERED, {**data, "index": index, "suspension_id": record.id, "until_ms": until_ms})
