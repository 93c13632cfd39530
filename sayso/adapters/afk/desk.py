"""Lets an AFK agent wait for decisions in its own process: policy role, interaction provider and tools.

    desk = Desk(AsyncClient())
    agent = Agent(model=model, tools=desk.gate([send_money]), policy_roles=[desk.role])
    runner = Runner(interaction_provider=desk.provider, memory_store=store)

Run, step and position identify each call. A process that resumes the run gets the same decisions, and calls that ran
are not run again. `sayso.adapters.afk` suspends runs instead and lets workers resume them.
"""

import json
from collections.abc import Collection, Sequence
from typing import Any

from sayso.adapters.afk.hooks import JUDGING_CALL, ExternalEvents, Position, Turns
from sayso.adapters.afk.tools import AfkCall, define_tool, find_tools, load_types, wrap_tools
from sayso.adapters.base import TOOL_ERROR
from sayso.client import AsyncClient
from sayso.client.holders import run_as
from sayso.client.permits import Call, EarlierResult, GatedCall, OnDoubt, obtain_permit, replay, report
from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolDefinition, check_tool_name
from sayso.errors import CallFailed, SaysoError
from sayso.runner.tools import plain_json
from sayso.wire.suspensions import SuspensionView

_NOT_GATED = "{tool} is not gated by Sayso. Pass it to desk.gate([...])."
_NO_EVENTS = "AFK's events are missing. Pass interaction_provider=desk.provider to its Runner."
_NO_VALUE = "No value was given."
_END_EVENTS = ("run_completed", "run_failed", "run_cancelled", "run_interrupted")


class Desk:
    """The approvals of one process. Every failure to ask counts as a denial, and none reaches AFK."""

    def __init__(
        self,
        client: AsyncClient,
        *,
        background: Collection[str] = (),
        idempotent: Collection[str] = (),
        title: str = "",
        context: JsonObject | None = None,
        on_doubt: OnDoubt = "raise",
        defer: bool = True,
    ) -> None:
        """Use this client. Calls of the `background` tools wait while the run continues.

        If `defer` is false, the role itself waits: AFK is not paused, and its model sees the reason of a denial.
        """
        self.client = client
        self.tools: dict[str, Any] = {}
        self._background = background
        self._idempotent = idempotent
        self._title, self._context, self._on_doubt = title, context or {}, on_doubt
        self._defer = defer
        self._types = load_types()
        self._turns = Turns()
        self._events: dict[str, ExternalEvents] = {}
        self._run_ids: dict[str, str] = {}
        self._admitted: list[tuple[Position, GatedCall]] = []
        self._own: dict[str, GatedCall] = {}

    @property
    def provider(self) -> "Desk":
        return self

    def gate(self, tools: Sequence[Any]) -> list[Any]:
        """Return the agent's tools such that each starts only if approved, once."""
        afk_tools = find_tools(tools)
        self.tools |= {check_tool_name(tool.spec.name): tool for tool in afk_tools}
        return wrap_tools(afk_tools, self._call)

    def build_call(self, tool: Any, args: JsonObject, label: str, wait_s: float | None = 0) -> GatedCall:
        return self._build_call(define_tool(tool, self._idempotent), args, label, wait_s)

    async def role(self, event: Any) -> Any:
        """Act as AFK's policy role, by Sayso's rules: allow, deny, request approval or request a value."""
        if event.event_type != JUDGING_CALL:
            return self._types.allow()
        tool, position = self.tools.get(event.tool_name), self._turns.find_next(event.run_id, event.step)
        if tool is None:
            return self._types.deny(_NOT_GATED.format(tool=event.tool_name))
        if position is None:
            return self._types.deny(_NO_EVENTS)
        gated_call = self.build_call(tool, dict(event.tool_args), position.label)
        try:
            suspension = await self._ask(gated_call, event.run_id)
            if suspension.pending and not self._defer and event.tool_name not in self._background:
                suspension = await self.client.wait(suspension.id)
        except SaysoError as error:
            return self._types.deny(f"Sayso is unavailable: {error.message}")
        others = [pair for pair in self._admitted if pair[0].run_id != position.run_id or pair[0].step == position.step]
        self._admitted = [*others, (position, gated_call)]
        return self._judge(suspension, event.tool_name in self._background)

    async def request_approval(self, request: Any) -> Any:
        """Return the decision, or defer: AFK itself waits."""
        position = self._turns.find_judged(request.run_id, request.step)
        if position is not None and "sayso" not in request.payload and self._turns.name_of(position) in self.tools:
            return self._types.approval_decision(kind="allow", reason="Sayso decides when the tool starts.")
        try:
            suspension = await self._find(request, position, "approval", {"reason": request.reason})
            if suspension.pending:
                return self._types.deferred_decision(token=f"approval {suspension.id}")
            return await self._answer_approval(suspension)
        except SaysoError as error:
            return self._types.approval_decision(kind="deny", reason=error.message)

    async def request_user_input(self, request: Any) -> Any:
        position = self._turns.find_judged(request.run_id, request.step)
        try:
            suspension = await self._find(request, position, "user_input", {"prompt": request.prompt})
            if suspension.pending:
                return self._types.deferred_decision(token=f"user_input {suspension.id}")
            return await self._answer_input(suspension)
        except SaysoError as error:
            return self._types.user_input_decision(kind="deny", reason=error.message)

    async def await_deferred(self, token: str, *, timeout_s: float) -> Any:
        """Wait for the decision, through restarts of the desk. Return None after AFK's timeout."""
        kind, _, suspension_id = token.partition(" ")
        try:
            suspension = await self.client.wait(suspension_id, timeout_s)
            if suspension.pending:
                return None
            return await (self._answer_input(suspension) if kind == "user_input" else self._answer_approval(suspension))
        except SaysoError as error:
            refuse = self._types.user_input_decision if kind == "user_input" else self._types.approval_decision
            return refuse(kind="deny", reason=error.message)

    async def notify(self, event: Any) -> None:
        """Follow the run. When it ends, send its remaining events."""
        self._turns.follow(event)
        self._events.setdefault(event.run_id, ExternalEvents()).note(event)
        if event.type in _END_EVENTS:
            await self._send_events(event.run_id)
            self._turns.forget(event.run_id)
            self._events.pop(event.run_id, None)
            self._run_ids.pop(event.run_id, None)
            self._admitted = [entry for entry in self._admitted if entry[0].run_id != event.run_id]

    async def run(self, afk_call: AfkCall, gated_call: GatedCall) -> Any:
        """Run an approved call once, with the approved arguments, report it and return AFK's result."""
        try:
            permit = await self.client.run(obtain_permit(self.client.retry_policy, gated_call))
            if isinstance(permit, EarlierResult):
                return self._types.tool_result(output=replay(afk_call.name, permit))
        except SaysoError as error:
            return self._types.fail(error.message)
        with run_as(permit.holder):
            call = Call(permit)
            result = await afk_call.run(permit.args)
            call.result = result.output
            failed = None if result.success else CallFailed(result.error_message or TOOL_ERROR)
            await self.client.run(report(self.client.retry_policy, call, failed))
            return result

    async def _call(self, call: AfkCall) -> Any:
        run_id = str(call.ctx.metadata.get("run_id", "")) if call.ctx is not None else ""
        gated_call = self._pop_admitted(run_id, call.name, call.call_id)
        if gated_call is None:  # a rule of AFK allowed it before the role was called
            gated_call = self.build_call(call.tool, dict(call.args), f"{run_id}:{call.call_id}", None)
        if call.name in self._background and (ticket := await self._open_ticket(gated_call, run_id)) is not None:
            return ticket
        return await self.run(call, gated_call)

    async def _open_ticket(self, gated_call: GatedCall, run_id: str) -> Any:
        name = gated_call.definition.name
        try:
            suspension = await self._ask(gated_call, run_id)
        except SaysoError as error:
            return self._types.fail(f"Sayso is unavailable: {error.message}")
        if not suspension.pending:
            return None
        summary = f"{name} waits for a reviewer"
        handle = self._types.tool_deferred_handle(
            ticket_id=suspension.id, tool_name=name, summary=summary, resume_hint=gated_call.label
        )
        return self._types.tool_result(deferred=handle)

    def _judge(self, suspension: SuspensionView, in_background: bool) -> Any:
        item = suspension.items[0]
        if item.outcome is not None and not item.outcome.may_run:
            return self._types.deny(item.outcome.message or f"{item.tool.name} was denied.")
        if in_background or (not suspension.pending and item.kind != "input"):
            return self._types.allow()
        payload: JsonObject = {"sayso": suspension.id, "tool_name": item.tool.name, "tool_args": item.tool.args}
        action, reason = "request_approval", item.prompt.reason
        if item.kind == "input":
            action = "request_user_input"
            payload |= {"target_arg": item.target_arg, "prompt": item.prompt.title or reason}
        return self._types.policy_decision(action=action, reason=reason, request_payload=payload)

    async def _find(self, request: Any, position: Position | None, kind: str, details: JsonObject) -> SuspensionView:
        """Return the suspension that the role has created, or create one for a rule of AFK."""
        if isinstance(suspension_id := request.payload.get("sayso"), str):
            return await self.client.find(suspension_id)
        label = position.label if position is not None else f"{request.run_id}:{request.step}:model"
        definition = ToolDefinition(
            name=f"afk.{kind}", description="A rule of AFK asks.", parameters={"type": "object"}, idempotent=True
        )
        about = self._turns.name_of(position) if position is not None else "the model"
        args: JsonObject = {"about": about, "payload": request.payload, **details}
        gated_call = self._build_call(definition, args, f"{label}:{kind}", 0)
        suspension = await self._ask(gated_call, request.run_id)
        self._own[suspension.id] = gated_call
        return suspension

    async def _answer_approval(self, suspension: SuspensionView) -> Any:
        outcome = suspension.items[0].outcome
        if outcome is not None and outcome.may_run:
            await self._close(suspension)
            return self._types.approval_decision(kind="allow", reason=outcome.message)
        return self._types.approval_decision(kind="deny", reason=outcome.message if outcome is not None else None)

    async def _answer_input(self, suspension: SuspensionView) -> Any:
        outcome = suspension.items[0].outcome
        if outcome is None or not outcome.may_run or outcome.value is None:
            reason = outcome.message if outcome is not None and outcome.message else _NO_VALUE
            return self._types.user_input_decision(kind="deny", reason=reason)
        await self._close(suspension)
        value = outcome.value if isinstance(outcome.value, str) else json.dumps(outcome.value)
        return self._types.user_input_decision(kind="allow", value=value, reason=outcome.message)

    async def _close(self, suspension: SuspensionView) -> None:
        """Settle a question of AFK's own rules: nothing runs for it."""
        if (gated_call := self._own.pop(suspension.id, None)) is None:
            return
        permit = await self.client.run(obtain_permit(self.client.retry_policy, gated_call))
        if not isinstance(permit, EarlierResult):
            with run_as(permit.holder):
                await self.client.run(report(self.client.retry_policy, Call(permit, "AFK was notified."), None))

    async def _ask(self, gated_call: GatedCall, run_id: str) -> SuspensionView:
        suspension: SuspensionView = await self.client.exchange(gated_call.request)
        self._run_ids[run_id] = suspension.run.id
        await self._send_events(run_id)
        return suspension

    async def _send_events(self, run_id: str) -> None:
        if run_id in self._run_ids and run_id in self._events:
            await self._events[run_id].send(self.client, self._run_ids[run_id])

    def _build_call(self, definition: ToolDefinition, args: JsonObject, label: str, wait_s: float | None) -> GatedCall:
        options: Any = {"title": self._title or definition.name, "context": self._context, "on_doubt": self._on_doubt}
        return GatedCall(definition, args, label, wait_s=wait_s, **options)

    def _pop_admitted(self, run_id: str, name: str, call_id: str | None) -> GatedCall | None:
        """Return a call that the role has admitted, once. Without ids, calls start in the order of admission."""
        for entry in self._admitted:
            position, gated_call = entry
            if (position.run_id, gated_call.definition.name) != (run_id, name):
                continue
            if self._turns.id_of(position) in (call_id, None):
                self._admitted.remove(entry)
                return gated_call
        return None


_SUSPENSION_PREFIX = "sus_"


async def settle_tickets(desk: Desk, runner: Any, *, thread_id: str, run_id: str, wait_s: float = 0) -> int:
    """Run approved calls once, resolve every decided ticket in AFK, and return how many still wait.

    Waits up to `wait_s` for each. Raises the desk's error if it is unreachable; call again then.
    """
    waiting = 0
    for row in await runner.list_background_tools(thread_id=thread_id, run_id=run_id):
        tool = desk.tools.get(row["tool_name"])
        if tool is None or not str(row["ticket_id"]).startswith(_SUSPENSION_PREFIX):
            continue
        suspension = await desk.client.wait(row["ticket_id"], wait_s)
        if suspension.pending:
            waiting += 1
            continue
        args = suspension.items[0].tool.args
        result = await desk.run(AfkCall(tool, args), desk.build_call(tool, args, row["resume_hint"]))
        ticket = {"thread_id": thread_id, "run_id": run_id, "ticket_id": suspension.id, "tool_name": row["tool_name"]}
        if result.success:
            try:
                output = plain_json(result.output)
            except SaysoError as error:
                output = error.message
            await runner.resolve_background_tool(**ticket, output=output)
        else:
            await runner.fail_background_tool(**ticket, error=result.error_message)
    return waiting
