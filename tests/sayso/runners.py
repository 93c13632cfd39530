"""Builders of agents, turns and journals for tests of the runner."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, JsonValue

from sayso.core.canonical_json import JsonObject, canonical_json
from sayso.core.records.decisions import TIMEOUT, DecisionAction
from sayso.core.records.events import Event
from sayso.core.records.items import ItemDraft
from sayso.core.records.tools import ToolDefinition
from sayso.errors import StaleAttempt
from sayso.runner.agents import Agent
from sayso.runner.batches import PlannedCall, Resumption
from sayso.runner.fallbacks import resolve
from sayso.runner.local import MemoryJournal
from sayso.runner.models import ChatMessage, ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import CallContext, Tool, tool
from sayso.runner.transcripts import RunState
from tests.sayso.rule_builders import policy, rule
from tests.sayso.samples import T0, person

ADA = person("ada")
DONE = ModelTurn(text="done", finish_reason="stop")

POLICY = policy(
    rule("codes", "request_user_input", tool_name="pay", request_payload={"target_arg": "code"}),
    rule("drops", tool_name="drop"),
    rule("refunds", "request_approval", tool_name="refund", reason="money leaves", terms={"timeout_s": 60}),
)
"""`look` and `crash` are allowed, `drop` is denied, `refund` needs approval, `pay` needs a code."""

Ran = list[tuple[str, JsonObject, CallContext]]


def make_tools(ran: Ran) -> tuple[Tool, ...]:
    """Return the tools of the tests' agents."""

    @tool(idempotent=True)
    async def look(order: str, call: CallContext) -> str:
        """Look an order up."""
        ran.append(("look", {"order": order}, call))
        return f"{order} is open"

    @tool
    def drop(order: str, call: CallContext) -> None:
        """Drop an order."""
        ran.append(("drop", {"order": order}, call))

    @tool
    def refund(order: str, amount: Annotated[float, Field(gt=0)], call: CallContext) -> JsonValue:
        """Refund an order."""
        ran.append(("refund", {"order": order, "amount": amount}, call))
        return {"refunded": amount}

    @tool
    async def pay(order: str, code: Annotated[str, Field(pattern="^[0-9]{4}$")], call: CallContext) -> str:
        """Pay for an order."""
        ran.append(("pay", {"order": order, "code": code}, call))
        return "paid"

    @tool
    def crash(order: str, call: CallContext) -> str:
        """Never succeed."""
        ran.append(("crash", {"order": order}, call))
        raise RuntimeError(f"no {order}")

    return (look, drop, refund, pay, crash)


class RemoteModel(ScriptedModel):
    """A model that answers in a later turn of the event loop, as one behind an endpoint does."""

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the next turn of the script."""
        for _ in range(3):
            await asyncio.sleep(0)
        return await super().complete(messages, tools)


def make_agent(ran: Ran, *turns: ModelTurn, **changes: Any) -> Agent:
    """Return an agent whose model plays `turns`, and then ends."""
    parts = {"name": "support", "instructions": "Be kind.", "model": RemoteModel([*turns, DONE])}
    return Agent(**{**parts, "tools": make_tools(ran), **changes})


def turn(*calls: tuple[str, Any], text: str = "") -> ModelTurn:
    """A turn that asks for `calls`: names with arguments, as an object or as the text the model wrote."""
    asked = [
        RequestedCall(
            call_id=f"c{place}", name=name, args_json=args if isinstance(args, str) else canonical_json(args).decode()
        )
        for place, (name, args) in enumerate(calls)
    ]
    return ModelTurn(text=text, calls=tuple(asked), finish_reason="tool_calls")


def approve(ask: ItemDraft, **args: JsonValue) -> Resumption:
    """Return Ada's approval, with edited arguments if given."""
    return resolve(ask, DecisionAction.APPROVE, by=ADA, at_ms=T0, args={**ask.tool.args, **args} if args else None)


def deny(ask: ItemDraft, message: str | None = None) -> Resumption:
    """Return Ada's denial."""
    return resolve(ask, DecisionAction.DENY, by=ADA, at_ms=T0, message=message)


def give(ask: ItemDraft, value: JsonValue) -> Resumption:
    """Return Ada's value."""
    return resolve(ask, DecisionAction.VALUE, by=ADA, at_ms=T0, value=value)


def time_out(ask: ItemDraft) -> Resumption:
    """Return the outcome of a timeout with fallback deny."""
    return resolve(ask, DecisionAction.DENY, by=TIMEOUT, at_ms=T0, message="Nobody decided in time.")


def fail(ask: ItemDraft) -> Resumption:
    """Return the outcome of a timeout with fallback fail."""
    return resolve(ask, DecisionAction.FAIL, by=TIMEOUT, at_ms=T0, message="Nobody answered.")


def reload(state: RunState) -> RunState:
    """Return the state as another process reads it."""
    return RunState.model_validate_json(state.model_dump_json().encode())


def kinds(events: Sequence[Event]) -> list[str]:
    """Return the kinds of the events."""
    return [str(event.type) for event in events]


def fields_of(events: Sequence[Event], kind: str, *keys: str) -> list[Any]:
    """Return the fields `keys` of the events of one kind."""
    values = [tuple(event.data.get(key) for key in keys) for event in events if event.type == kind]
    return [value[0] for value in values] if len(keys) == 1 else values


class LostWorker(MemoryJournal[RunState]):
    """A journal whose worker is lost before it saves a result."""

    async def checkpoint(self, state: RunState, events: Sequence[Event]) -> None:
        """Raise, as the desk does after the lease."""
        raise StaleAttempt


class Ledger(MemoryJournal[RunState]):
    """A journal that records every step."""

    def __init__(self, run_id: str) -> None:
        super().__init__(run_id)
        self.steps: list[tuple[str, list[str], bool]] = []

    async def redeem(
        self, calls: Sequence[PlannedCall], events: Sequence[Event], state: RunState | None
    ) -> Mapping[int, str]:
        """Record the step, and whether it has the state."""
        self.steps.append(("redeem", kinds(events), state is not None))
        return await super().redeem(calls, events, state)

    async def checkpoint(self, state: RunState, events: Sequence[Event]) -> None:
        """Record the step."""
        self.steps.append(("checkpoint", kinds(events), True))
        await super().checkpoint(state, events)
