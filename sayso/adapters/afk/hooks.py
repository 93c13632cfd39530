"""Stand where AFK asks: as its policy role, as its interaction provider, and around each of its tools.

One stretch of a run goes through the `Seams`. A call that nobody was asked about stops it; one that was decided gets
the same answer however often AFK asks, by its run, step and place in the turn.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sayso.adapters.afk.checkpoints import Memory, Waiting
from sayso.adapters.afk.classes import load_words
from sayso.adapters.afk.events import ExternalEvents
from sayso.adapters.afk.tools import Called, find_tools, read_deferred, wrap_tools, write_deferred
from sayso.adapters.afk.turns import JUDGING_CALL, Place, Turns
from sayso.canonical_json import JsonObject
from sayso.records.tool_calls import ToolResult
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor, current_executor
from sayso.runner.judging import known_id
from sayso.runner.protocol import ToolFailed, describe_refusal, describe_result

NOT_ASKED = "Nobody was asked about this call; it is not run."
_NOT_A_CALL = "Nobody can be asked about this here: only tool calls are put to people."


class Stopped(BaseException):
    """The run stops here, as it was saved. No Exception: AFK would take the run for one that failed."""


class Seams:
    """What an agent and its runner are built with: `memory`, `role`, `provider`, and `gate` for the tools.

    One stretch of a run goes through it: up to the first call that nobody was asked about, or to the end.
    """

    def __init__(self, memory: Memory, waiting: Waiting | None = None, executor: CallExecutor | None = None) -> None:
        self.memory = memory
        self.tools: list[Any] = []
        self.stopped = asyncio.Event()
        self.stopped_at: Place | None = None
        self.external_events = ExternalEvents()
        self._words = load_words()
        self.turns = Turns(waiting.run_id, waiting.thread_id) if waiting is not None else Turns()
        self._waiting = waiting
        self._executor = executor
        self._admitted: list[BatchCall] = []

    @property
    def provider(self) -> "Seams":
        """The runner's `interaction_provider`."""
        return self

    def gate(self, tools: Sequence[Any]) -> list[Any]:
        """Return the agent's tools such that each begins with leave alone."""
        gated = wrap_tools(find_tools(tools), self._call)
        self.tools += gated
        return gated

    async def role(self, event: Any) -> Any:
        """Judge as AFK's policy role: what was decided already, or that it is to be asked."""
        if event.event_type != JUDGING_CALL:
            return self._words.allow()
        place = self.turns.find_next(event.run_id, event.step)
        if place is None or place.run_id != self.turns.root:
            return self._words.deny(NOT_ASKED)
        if not self._is_known(place):
            payload = {"tool_name": event.tool_name, "tool_args": event.tool_args, "call": place.label}
            reason = f"Sayso is asked about {event.tool_name}"
            return self._words.policy_decision(action="request_approval", reason=reason, request_payload=payload)
        one, refusal = self._admit(place, event.tool_name)
        return self._words.deny(refusal) if one is None else self._words.allow(dict(one.call.args))

    async def request_approval(self, request: Any) -> Any:
        """Answer what was decided already, or defer; here come AFK's own rules, too."""
        place = self.turns.find_judged(request.run_id, request.step)
        if place is None or place.run_id != self.turns.root:
            return self._words.approval_decision(kind="deny", reason=_NOT_A_CALL)
        if not self._is_known(place):
            return self._words.deferred_decision(token=place.label)
        one, refusal = self._admit(place, self.turns.name_of(place))
        return self._words.approval_decision(kind="deny" if one is None else "allow", reason=refusal)

    async def request_user_input(self, request: Any) -> Any:
        """Answer with the value that was decided already, or defer."""
        place = self.turns.find_judged(request.run_id, request.step)
        if place is None or place.run_id != self.turns.root:
            return self._words.user_input_decision(kind="deny", reason=_NOT_A_CALL)
        if not self._is_known(place):
            return self._words.deferred_decision(token=place.label)
        one, refusal = self._admit(place, self.turns.name_of(place))
        if one is None:
            return self._words.user_input_decision(kind="deny", reason=refusal)
        value = one.call.args.get(str(request.payload.get("target_arg")))
        return self._words.user_input_decision(kind="allow", value=None if value is None else str(value))

    async def await_deferred(self, token: str, *, timeout_s: float) -> Any:
        """Stop the run: it waits at Sayso, and its own time-out with it."""
        run_id, step, occurrence = token.rsplit(":", 2)
        raise self._stop(Place(run_id, int(step), int(occurrence)))

    async def notify(self, event: Any) -> None:
        """Follow the run."""
        self.turns.follow(event)
        self.external_events.note(event)

    async def _call(self, called: Called) -> Any:
        """Run the call through the gate, with the arguments that were decided on, whatever AFK gives."""
        executor, one = self._executor, self._take(called.name, called.call_id)
        if executor is None or one is None or current_executor() is not executor:
            return self._words.fail(NOT_ASKED)
        ran: list[Any] = []

        async def execute(args: JsonObject) -> Any:
            ran.append(await called.run(args))
            if not ran[0].success:
                raise ToolFailed(ran[0].error_message or "The tool failed without a word.")
            return ran[0].output if ran[0].deferred is None else write_deferred(ran[0].deferred)

        try:
            result = await executor.run(one, execute)
        except Exception as fault:  # the gate keeps it; AFK would tell its model of it and go on
            raise self._stop(None) from fault
        return self._tell(one, result, ran[0] if ran else None)

    def _tell(self, one: BatchCall, result: ToolResult, native: Any) -> Any:
        """Return the result as AFK expects it: a tool's own, or one that was kept of an earlier try."""
        if not result.success:
            return native if native is not None else self._words.fail(result.error or "")
        if (ticket := read_deferred(result.output)) is not None:
            return native or self._words.tool_result(deferred=self._words.tool_deferred_handle(**ticket))
        told = describe_result(one, result)
        return replace(native, output=told) if native is not None else self._words.tool_result(output=told)

    def _admit(self, place: Place, name: str) -> tuple[BatchCall | None, str]:
        """Return the call that was decided to run, or why it does not."""
        one = self._find(place, name)
        refusal = NOT_ASKED if one is None else describe_refusal(one)
        if one is None or refusal is not None:
            return None, refusal or NOT_ASKED
        self._admitted.append(one)
        return one, ""

    def _is_known(self, place: Place) -> bool:
        return self._executor is not None and self._waiting is not None and place.step == self._waiting.step

    def _find(self, place: Place, name: str) -> BatchCall | None:
        """Return the call at this place of the turn that was decided, unless another tool stands there."""
        calls = self._executor.calls if self._executor is not None else ()
        one = calls[place.occurrence] if place.occurrence < len(calls) else None
        return one if one is not None and one.call.name == name else None

    def _take(self, name: str, call_id: str | None) -> BatchCall | None:
        """Return an admitted call, once; where the model gave no ids they begin in the order they were admitted."""
        named = [one for one in self._admitted if one.call.name == name]
        found = next((one for one in named if one.call.call_id == known_id(call_id or "")), None)
        if found is None and self._waiting is not None:
            unnamed = f"{self._waiting.run_id}:{self._waiting.step}:"
            found = next((one for one in named if one.call.call_id.startswith(unnamed)), None)
        if found is not None:
            self._admitted.remove(found)
        return found

    def _stop(self, place: Place | None) -> Stopped:
        self.stopped_at = place
        self.stopped.set()
        return Stopped()
