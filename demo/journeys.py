"""Take the demo's run from its request to its end, with a reviewer who answers whatever is asked."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from pydantic import JsonValue

from demo.checks import LAST_DAY, LOWERED_AMOUNT, SENT_TO
from demo.clients import Client, ItemSeen, RunSeen, SuspensionSeen
from demo.stacks import Stack
from demo.turns import load_turns
from sayso.records.events import EventType, TrailEntry

AGENT = "demo"
REVIEWER = "admin"
TITLE = "Five requests at once"

Word = dict[str, JsonValue]
OnPause = Callable[[SuspensionSeen], None]


@dataclass(frozen=True)
class Journey:
    """How a run ended, and everything that happened to it."""

    run: RunSeen
    trail: tuple[TrailEntry, ...]


async def perform(stack: Stack, on_pause: OnPause) -> Journey:
    """Start the demo's run, answer what it asks, and return it when it has ended.

    `on_pause` is called at each pause, before the reviewer says anything.
    """
    async with connected(stack) as (agent, reviewer):
        run = await agent.start_run(AGENT, request_text(), TITLE, key="demo-start")
        trail: list[TrailEntry] = []
        async for entry in agent.follow(run.id):
            trail.append(entry)
            if entry.type == EventType.RUN_PAUSED:
                await review(reviewer, str(entry.data["payload"]["suspension_id"]), on_pause)
        return Journey(await agent.await_end(run.id), tuple(trail))


@asynccontextmanager
async def connected(stack: Stack) -> AsyncIterator[tuple[Client, Client]]:
    """Give the API as the demo's agent and as its reviewer see it, once the agent can be run."""
    async with httpx.AsyncClient(base_url=stack.url) as http:
        agent = Client(http, stack.agent_key)
        await agent.await_agent(AGENT)
        yield agent, await Client(http).sign_in(REVIEWER, stack.admin_password)


async def review(reviewer: Client, suspension_id: str, on_pause: OnPause) -> None:
    """Answer every item of a pause that is to be answered; the others are left to their deadline."""
    paused = await reviewer.find_suspension(suspension_id)
    on_pause(paused)
    for item in paused.items:
        word = choose_word(item)
        if word is not None and item.outcome is None:
            await reviewer.decide(paused.id, item, word, key=f"demo-{paused.id}-{item.item_id}")


def choose_word(item: ItemSeen) -> Word | None:
    """Return what the reviewer says to an item, or None to let its time run out."""
    match item.tool.name:
        case "bank_account.transfer":
            return {"action": "approve", "args": {**item.tool.args, "amount": LOWERED_AMOUNT}}
        case "send_email" if item.tool.args["to"] == SENT_TO:
            return {"action": "approve"}
        case "send_email":
            return {"action": "deny", "message": "Jane has left the company; do not write to her."}
        case "hotel_booking.book":
            return {"action": "value", "value": LAST_DAY}
        case _:
            return None


def request_text() -> str:
    """Return what the agent is asked: all recorded requests, one after the other."""
    return "\n\n".join(turn.request for turn in load_turns())
