"""The demo's run from start to end, with a reviewer who decides on its items."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from pydantic import JsonValue

from demo.checks import CHECK_OUT, LOWERED_AMOUNT, SENT_TO
from demo.clients import Client, ItemSeen, RunSeen, SuspensionSeen
from demo.model import load_turns
from demo.stacks import Stack
from sayso.core.records.events import EventType, TrailEntry

AGENT = "demo"
REVIEWER = "admin"
TITLE = "Five requests at once"

Decision = dict[str, JsonValue]
OnSuspension = Callable[[SuspensionSeen], None]


@dataclass(frozen=True)
class Journey:
    """A finished run and its trail."""

    run: RunSeen
    trail: tuple[TrailEntry, ...]


async def run_demo(stack: Stack, on_suspension: OnSuspension) -> Journey:
    """Run the demo's agent to its end, and decide on its items.

    `on_suspension` is called for each suspension before the reviewer decides.
    """
    async with connected(stack) as (agent, reviewer):
        run = await agent.start_run(AGENT, request_text(), TITLE, key="demo-start")
        trail: list[TrailEntry] = []
        async for entry in agent.follow(run.id):
            trail.append(entry)
            if entry.type == EventType.RUN_PAUSED:
                await review(reviewer, str(entry.data["payload"]["suspension_id"]), on_suspension)
        return Journey(await agent.await_end(run.id), tuple(trail))


@asynccontextmanager
async def connected(stack: Stack) -> AsyncIterator[tuple[Client, Client]]:
    """Yield a client for the demo's agent and one for its reviewer, once the agent is registered."""
    async with httpx.AsyncClient(base_url=stack.url) as http:
        agent = Client(http, stack.agent_key)
        await agent.await_agent(AGENT)
        yield agent, await Client(http).sign_in(REVIEWER, stack.admin_password)


async def review(reviewer: Client, suspension_id: str, on_suspension: OnSuspension) -> None:
    """Decide the items of a suspension. Items without a decision run into their deadline."""
    suspension = await reviewer.find_suspension(suspension_id)
    on_suspension(suspension)
    for item in suspension.items:
        decision = choose_decision(item)
        if decision is not None and item.outcome is None:
            await reviewer.decide(suspension.id, item, decision, key=f"demo-{suspension.id}-{item.item_id}")


def choose_decision(item: ItemSeen) -> Decision | None:
    """Return the decision on an item, or None to let it expire."""
    match item.tool.name:
        case "bank_account.transfer":
            return {"action": "approve", "args": {**item.tool.args, "amount": LOWERED_AMOUNT}}
        case "send_email" if item.tool.args["to"] == SENT_TO:
            return {"action": "approve"}
        case "send_email":
            return {"action": "deny", "message": "Jane has left the company; do not write to her."}
        case "hotel_booking.book":
            return {"action": "value", "value": CHECK_OUT}
        case _:
            return None


def request_text() -> str:
    """Return the user message: all recorded requests."""
    return "\n\n".join(turn.request for turn in load_turns())
