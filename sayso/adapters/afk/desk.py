"""Let an AFK agent wait in its own process for what a person decides: the role, the provider and the tools for that.

    desk = Desk(AsyncClient())
    agent = Agent(model=model, tools=desk.gate([send_money]), policy_roles=[desk.role])
    runner = Runner(interaction_provider=desk.provider, memory_store=store)

Every call is named by its run, step and place in the turn: whoever resumes the run is given the same decision, and what
ran before is not run again. `sayso.adapters.afk` suspends runs instead, for which workers go on.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from pydantic import JsonValue

from sayso.adapters.afk.classes import load_words
from sayso.adapters.afk.events import ExternalEvents
from sayso.adapters.afk.tools import Called, define_tool, find_tools, wrap_tools
from sayso.adapters.afk.turns import JUDGING_CALL, Place, Turns
from sayso.canonical_json import JsonObject
from sayso.client import AsyncClient
from sayso.client.permits import EarlierResult, GatedCall, OnDoubt, obtain_permit
from sayso.client.reports import Call, replay, report
from sayso.client.responses import Suspension
from sayso.errors import CallFailed, SaysoError
from sayso.records.tool_calls import ToolDefinition
from sayso.records.tool_names import check_tool_name

_NOT_GATED = "{tool} is not behind Sayso, so nobody can be asked about it. Give it to desk.gate([...])."
_NOT_FOLLOWED = "AFK's events do not come here. Give its Runner interaction_provider=desk.provider."
_NO_VALUE = "Nobody gave a value."
_ENDS = ("run_completed", "run_failed", "run_cancelled", "run_interrupted")


class Desk:
    """Where the runs of one process ask. Every failure to ask counts as a denial, and none reaches AFK."""

    def __init__(
        self,
        client: AsyncClient,
        *,
        background: Collection[str] = (),
        idempotent: Collection[str] = (),
        title: str = "",
        context: JsonObject | None = None,
        on_doubt: OnDoubt = "raise",
        pause: bool = True,
    ) -> None:
        """Ask through this client. Calls of the tools in `background` are waited for while the run goes on.

        Without `pause` the role itself waits: AFK is not paused, and its model is told why a person said no.
        """
        self.client = client
        self.tools: dict[str, Any] = {}
        self._background = background
        self._idempotent = idempotent
        self._title, self._context, self._on_doubt = title, context or {}, on_doubt
        self._pause = pause
        self._words = load_words()
        self._turns = Turns()
        self._tellings: dict[str, ExternalEvents] = {}
        self._told: dict[str, str] = {}
        self._admitted: list[tuple[Place, GatedCall]] = []
        self._own: dict[str, GatedCall] = {}

    @property
    def provider(self) -> "Desk":
        """The runner's `interaction_provider`."""
        return self

    def gate(self, tools: Sequence[Any]) -> list[Any]:
        """Return the agent's tools such that each begins with leave alone, once."""
        found = find_tools(tools)
        self.tools |= {check_tool_name(one.spec.name): one for one in found}
        return wrap_tools(found, self._call)

    def want(self, tool: Any, args: JsonObject, label: str, wait_s: float | None = 0) -> GatedCall:
        """Return a call of a tool as it is asked about."""
        return self._want(define_tool(tool, self._idempotent), args, label, wait_s)

    async def role(self, event: Any) -> Any:
        """Judge as AFK's policy role, by Sayso's rules: allow, deny, ask for approval, ask for a value."""
        if event.event_type != JUDGING_CALL:
            return self._words.allow()
        tool, place = self.tools.get(event.tool_name), self._turns.find_next(event.run_id, event.step)
        if tool is None:
            return self._words.deny(_NOT_GATED.format(tool=event.tool_name))
        if place is None:
            return self._words.deny(_NOT_FOLLOWED)
        wanted = self.want(tool, dict(event.tool_args), place.label)
        try:
            found = await self._ask(wanted, event.run_id)
            if found.pending and not self._pause and event.tool_name not in self._background:
                found = await self.client.wait(found.id)
        except SaysoError as error:
            return self._words.deny(f"Sayso could not be asked: {error.message}")
        self._admitted = [one for one in self._admitted if _may_stay(one[0], place)] + [(place, wanted)]
        return self._judge(found, event.tool_name in self._background)

    async def request_approval(self, request: Any) -> Any:
        """Ask, and answer at once where that is decided; the waiting is AFK's own pause."""
        place = self._turns.find_judged(request.run_id, request.step)
        if place is not None and "sayso" not in request.payload and self._turns.name_of(place) in self.tools:
            return self._words.approval_decision(kind="allow", reason="Sayso is asked where the tool begins.")
        try:
            found = await self._find(request, place, "approval", {"reason": request.reason})
            if found.pending:
                return self._words.deferred_decision(token=f"approval {found.id}")
            return await self._approve(found)
        except SaysoError as error:
            return self._words.approval_decision(kind="deny", reason=error.message)

    async def request_user_input(self, request: Any) -> Any:
        """Ask for the value, and answer at once where it is there."""
        place = self._turns.find_judged(request.run_id, request.step)
        try:
            found = await self._find(request, place, "user_input", {"prompt": request.prompt})
            if found.pending:
                return self._words.deferred_decision(token=f"user_input {found.id}")
            return await self._give(found)
        except SaysoError as error:
            return self._words.user_input_decision(kind="deny", reason=error.message)

    async def await_deferred(self, token: str, *, timeout_s: float) -> Any:
        """Wait until it is decided, through any restart of the desk; None once AFK's own time is over."""
        kind, _, suspension_id = token.partition(" ")
        try:
            found = await self.client.wait(suspension_id, timeout_s)
            if found.pending:
                return None
            return await (self._give(found) if kind == "user_input" else self._approve(found))
        except SaysoError as error:
            refuse = self._words.user_input_decision if kind == "user_input" else self._words.approval_decision
            return refuse(kind="deny", reason=error.message)

    async def notify(self, event: Any) -> None:
        """Follow the run, and tell Sayso of the rest of it once it has ended."""
        self._turns.follow(event)
        self._tellings.setdefault(event.run_id, ExternalEvents()).note(event)
        if event.type in _ENDS:
            await self._tell(event.run_id)
            self._forget(event.run_id)

    async def run(self, called: Called, wanted: GatedCall) -> Any:
        """Run a call with leave, with the arguments that were decided on, once, and report it; as AFK's result."""
        try:
            permission = await self.client.run(obtain_permit(self.client.retry_policy, wanted))
            if isinstance(permission, EarlierResult):
                return self._words.tool_result(output=replay(called.name, permission))
        except SaysoError as error:
            return self._words.fail(error.message)
        call = Call(permission)
        result = await called.run(permission.args)
        call.result = result.output
        failed = None if result.success else CallFailed(result.error_message or "The tool failed without a word.")
        await self.client.run(report(self.client.retry_policy, call, failed))
        return result

    async def _call(self, called: Called) -> Any:
        run_id = str(called.ctx.metadata.get("run_id", "")) if called.ctx is not None else ""
        wanted = self._take(run_id, called.name, called.call_id)
        if wanted is None:  # a rule of AFK's own came before the role: the question is asked here
            wanted = self.want(called.tool, dict(called.args), f"{run_id}:{called.call_id}", None)
        if called.name in self._background and (ticket := await self._open_ticket(wanted, run_id)) is not None:
            return ticket
        return await self.run(called, wanted)

    async def _open_ticket(self, wanted: GatedCall, run_id: str) -> Any:
        """Return a ticket for a call that waits for a person; None for one that is decided."""
        name = wanted.definition.name
        try:
            found = await self._ask(wanted, run_id)
        except SaysoError as error:
            return self._words.fail(f"Sayso could not be asked: {error.message}")
        if not found.pending:
            return None
        handle = self._words.tool_deferred_handle(
            ticket_id=found.id, tool_name=name, summary=f"{name} waits for a person", resume_hint=wanted.label
        )
        return self._words.tool_result(deferred=handle)

    def _judge(self, found: Suspension, in_background: bool) -> Any:
        item = found.items[0]
        if item.outcome is not None and not item.outcome.may_run:
            return self._words.deny(item.outcome.message or f"{item.tool.name} was denied.")
        if in_background or (not found.pending and item.kind != "input"):
            return self._words.allow()
        payload = {"sayso": found.id, "tool_name": item.tool.name, "tool_args": item.tool.args}
        if item.kind != "input":
            return self._words.policy_decision(
                action="request_approval", reason=item.prompt.reason, request_payload=payload
            )
        asked = {**payload, "target_arg": item.target_arg, "prompt": item.prompt.title or item.prompt.reason}
        return self._words.policy_decision(
            action="request_user_input", reason=item.prompt.reason, request_payload=asked
        )

    async def _find(self, request: Any, place: Place | None, kind: str, asked: JsonObject) -> Suspension:
        """Return what the role has asked already, or ask what a rule of AFK's own wants to know."""
        if isinstance(known := request.payload.get("sayso"), str):
            return await self.client.find(known)
        label = place.label if place is not None else f"{request.run_id}:{request.step}:model"
        definition = ToolDefinition(
            name=f"afk.{kind}", description="A rule of AFK's own asks.", parameters={"type": "object"}, idempotent=True
        )
        about = self._turns.name_of(place) if place is not None else "the model"
        args: JsonObject = {"about": about, "payload": request.payload, **asked}
        wanted = self._want(definition, args, f"{label}:{kind}", 0)
        found = await self._ask(wanted, request.run_id)
        self._own[found.id] = wanted
        return found

    async def _approve(self, found: Suspension) -> Any:
        outcome = found.items[0].outcome
        if outcome is not None and outcome.may_run:
            await self._close(found)
            return self._words.approval_decision(kind="allow", reason=outcome.message)
        return self._words.approval_decision(kind="deny", reason=outcome.message if outcome is not None else None)

    async def _give(self, found: Suspension) -> Any:
        outcome = found.items[0].outcome
        if outcome is None or not outcome.may_run or outcome.value is None:
            reason = outcome.message if outcome is not None and outcome.message else _NO_VALUE
            return self._words.user_input_decision(kind="deny", reason=reason)
        await self._close(found)
        return self._words.user_input_decision(kind="allow", value=_write_value(outcome.value), reason=outcome.message)

    async def _close(self, found: Suspension) -> None:
        """Conclude a question of AFK's own rules: nothing runs for it, and it has been answered."""
        if (wanted := self._own.pop(found.id, None)) is None:
            return
        permission = await self.client.run(obtain_permit(self.client.retry_policy, wanted))
        if not isinstance(permission, EarlierResult):
            await self.client.run(report(self.client.retry_policy, Call(permission, "AFK was told."), None))

    async def _ask(self, wanted: GatedCall, run_id: str) -> Suspension:
        """Ask once under the call's name; whatever was told of the AFK run before stands before the pause."""
        found = await self.client.exchange(wanted.request)
        self._told[run_id] = found.run.id
        await self._tell(run_id)
        return found

    def _forget(self, run_id: str) -> None:
        self._turns.forget(run_id)
        self._tellings.pop(run_id, None)
        self._told.pop(run_id, None)
        self._admitted = [one for one in self._admitted if one[0].run_id != run_id]

    async def _tell(self, run_id: str) -> None:
        if run_id in self._told and run_id in self._tellings:
            await self._tellings[run_id].send(self.client, self._told[run_id])

    def _want(self, definition: ToolDefinition, args: JsonObject, label: str, wait_s: float | None) -> GatedCall:
        title = self._title or definition.name
        return GatedCall(definition, args, label, title, self._context, wait_s, self._on_doubt)

    def _take(self, run_id: str, name: str, call_id: str | None) -> GatedCall | None:
        """Return a call as the role asked about it, once; where the model gave no ids, in the order it asked."""
        mine = [one for one in self._admitted if (one[0].run_id, one[1].definition.name) == (run_id, name)]
        ids = [self._turns.id_of(place) for place, _ in mine]
        at = next((at for at, one in enumerate(ids) if one in (call_id, None)), None)
        found = mine[at] if at is not None else None
        if found is not None:
            self._admitted.remove(found)
        return found[1] if found is not None else None


def _may_stay(one: Place, other: Place) -> bool:
    return one.run_id != other.run_id or one.step == other.step


def _write_value(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)
