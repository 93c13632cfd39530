"""One run of an agent: call the model, decide its calls in order, run them together, save each phase."""

import asyncio
import hashlib
import inspect
import json
import time
from dataclasses import asdict
from typing import Any

from afk.agents import Agent
from afk.agents.errors import (
    AgentBudgetExceededError,
    AgentCheckpointCorruptionError,
    AgentExecutionError,
    AgentLoopLimitError,
)
from afk.agents.types import (
    AgentResult,
    AgentRunEvent,
    ApprovalDecision,
    ApprovalRequest,
    PolicyDecision,
    PolicyEvent,
    ToolExecutionRecord,
    UserInputDecision,
    UserInputRequest,
)
from afk.llms.types import LLMRequest, LLMResponse, Message, ToolCall
from afk.tools import ToolContext, ToolResult

ASKING = ("defer", "request_approval", "request_user_input")
FAILING = ("fail_run", "fail_fast", "retry_then_fail")


class RunHandle:
    """The handle of a run in progress."""

    def __init__(self) -> None:
        self._result: asyncio.Future[AgentResult] = asyncio.get_running_loop().create_future()
        self._task: asyncio.Task[None] | None = None

    async def await_result(self) -> AgentResult:
        """Return the result. It never returns if a BaseException aborted the run."""
        return await self._result


class _Degraded(Exception):
    """The run ends as degraded."""


class Run:
    """One run: the model's turns, the decisions on their calls, and the checkpoints of each phase."""

    def __init__(self, runner: Any, agent: Agent, run_id: str, thread_id: str) -> None:
        self.runner, self.agent, self.run_id, self.thread_id = runner, agent, run_id, thread_id
        self.messages: list[Message] = []
        self.records: list[ToolExecutionRecord] = []
        self.pending: LLMResponse | None = None
        self.tickets: list[dict[str, Any]] = []
        self.step = self.llm_calls = 0
        self.usage = {"input_tokens": 0, "output_tokens": 0}
        self.started_at_s = time.time()

    def restore(self, payload: dict[str, Any]) -> None:
        self.step, self.started_at_s = payload["step"], payload["started_at_s"]
        self.messages = [Message(**one) for one in payload["messages"]]
        self.records = [ToolExecutionRecord(**one) for one in payload["tool_executions"]]
        self.tickets = list(payload["background_tools_pending"])
        self.llm_calls, self.usage = payload["llm_calls"], dict(payload["usage"])
        if (waiting := payload["pending_llm_response"]) is not None:
            self.pending = LLMResponse(waiting["text"], [ToolCall(**one) for one in waiting["tool_calls"]])

    async def execute(self, handle: RunHandle, resumed: bool) -> None:
        await self.runner.memory.setup()
        try:
            await self._emit("run_started", data={"agent_name": self.agent.name, "resumed": resumed})
            await self._save("run_started", {"agent_name": self.agent.name}, step=0)
            text = None
            while text is None:
                text = await self._take_step()
            await self._end(handle, AgentResult(self.run_id, self.thread_id, "completed", text, self.records))
        except _Degraded as ended:
            await self._end(handle, AgentResult(self.run_id, self.thread_id, "degraded", str(ended), self.records))
        except Exception as error:  # noqa: BLE001 - any error ends the run
            await self._emit("run_failed", "failed", message=str(error))
            failed = AgentResult(self.run_id, self.thread_id, "failed", str(error), self.records)
            await self._save("run_terminal", {"terminal_result": asdict(failed)})
            handle._result.set_exception(error)

    async def _end(self, handle: RunHandle, result: AgentResult) -> None:
        await self._emit("run_completed", result.state)
        await self._save("run_terminal", {"terminal_result": asdict(result)})
        handle._result.set_result(result)

    async def _take_step(self) -> str | None:
        answer = self.pending
        if answer is None:
            self.step += 1
        limits = self.agent.fail_safe
        if time.time() - self.started_at_s > limits.max_wall_time_s:
            raise AgentBudgetExceededError(f"Exceeded max_wall_time_s={limits.max_wall_time_s}")
        if self.step > limits.max_steps:
            raise AgentLoopLimitError(f"Exceeded max_steps={limits.max_steps} for run {self.run_id}")
        await self._read_tickets()
        await self._emit("step_started")
        if answer is None:
            await self._evaluate_model()
            await self._emit("llm_called", data={"model": "unknown", "provider": "player"})
            answer = await self.agent.model.chat(LLMRequest("unknown", list(self.messages)))
            self.pending = answer
            self.llm_calls += 1
            self.usage["input_tokens"] += answer.usage.input_tokens or 0
            self.usage["output_tokens"] += answer.usage.output_tokens or 0
            await self._save("post_llm", {"tool_call_count": len(answer.tool_calls)})
            await self._save_all()
        self.pending = None
        if answer.text:
            self.messages.append(Message("assistant", answer.text))
        await self._emit("llm_completed", data={"tool_call_count": len(answer.tool_calls), "text": answer.text})
        if not answer.tool_calls:
            return str(answer.text)
        names, ids = [one.tool_name for one in answer.tool_calls], [one.id for one in answer.tool_calls]
        data = {"tool_call_count": len(names), "tool_names": names, "tool_call_ids": ids}
        await self._emit("tool_batch_started", data=data)
        await self._save("pre_tool_batch", {"tool_call_count": len(names)})
        allowed = [(call, args) for call in answer.tool_calls if (args := await self._admit(call)) is not None]
        results = await asyncio.gather(*(self._call(place, *one) for place, one in enumerate(allowed)))
        for (call, args), result in zip(allowed, results, strict=True):
            await self._note(call, args, result)
        await self._save("post_tool_batch", {})
        await self._save_all()
        return None

    async def _evaluate_model(self) -> None:
        decision = await self._evaluate(PolicyEvent("llm_before_execute", self.run_id, self.thread_id, self.step, {}))
        if decision.action == "deny" or (decision.action in ASKING and not await self._approve(decision, "the model")):
            raise AgentExecutionError("LLM call approval denied")

    async def _admit(self, call: ToolCall) -> dict[str, Any] | None:
        """Return the arguments to run the call with, or None with an error result for the model."""
        args = dict(call.arguments)
        event = PolicyEvent(
            "tool_before_execute", self.run_id, self.thread_id, self.step, {}, call.tool_name, dict(args)
        )
        decision = await self._evaluate(event)
        if decision.action == "deny":
            self._refuse(call, decision.reason or "Denied by policy")
            return None
        marker = str(decision.request_payload.get("interaction", ""))
        if decision.action == "request_user_input" or (
            decision.action == "defer" and marker in ("user_input", "input")
        ):
            given = await self._ask_value(decision, call.tool_name)
            if given.kind != "allow":
                self._refuse(call, given.reason or "User input denied")
                return None
            if target := decision.request_payload.get("target_arg"):
                args[target] = given.value or ""
        elif decision.action in ASKING and not await self._approve(decision, call.tool_name):
            self._refuse(call, "Approval denied")
            return None
        return args if decision.updated_tool_args is None else dict(decision.updated_tool_args)

    def _refuse(self, call: ToolCall, error: str) -> None:
        self.records.append(ToolExecutionRecord(call.tool_name, call.id, False, error=error))
        self.messages.append(Message("tool", json.dumps({"success": False, "error": error}), call.tool_name))
        if self.agent.fail_safe.approval_denial_policy == "retry_then_degrade":
            raise _Degraded(f"Tool '{call.tool_name}' denied by policy under degrade setting")
        if self.agent.fail_safe.approval_denial_policy in FAILING:
            raise AgentExecutionError(f"Tool '{call.tool_name}' denied and approval_denial_policy requires fail")

    async def _evaluate(self, event: PolicyEvent) -> PolicyDecision:
        decision = PolicyDecision()
        engine = self.agent.policy_engine or self.runner.policy_engine
        if engine is not None:
            decision = engine.evaluate(event).decision
        for role in self.agent.policy_roles if decision.action == "allow" else ():
            answer = role(event)
            answer = await answer if inspect.isawaitable(answer) else answer
            if isinstance(answer, PolicyDecision):
                decision = answer
            if decision.action != "allow":
                break
        data = {"event_type": event.event_type, "action": decision.action, "reason": decision.reason}
        await self._emit("policy_decision", data={**data, "policy_id": decision.policy_id, "matched_rules": []})
        return decision

    async def _approve(self, decision: PolicyDecision, what: str) -> bool:
        reason, payload = decision.reason or f"Approval requested for {what}", _plain(decision.request_payload)
        asked = ApprovalRequest(self.run_id, self.thread_id, self.step, reason, payload)
        answer = await self.runner.interaction.request_approval(asked)
        if not isinstance(answer, ApprovalDecision):
            answer = await self._pause("approval", answer.token, self.runner.config.approval_timeout_s)
        if isinstance(answer, ApprovalDecision):
            return bool(answer.kind == "allow")
        return bool(self.runner.config.approval_fallback == "allow")

    async def _ask_value(self, decision: PolicyDecision, tool_name: str) -> UserInputDecision:
        payload = _plain(decision.request_payload)
        prompt = payload.get("prompt") or decision.reason or f"Provide input for tool '{tool_name}'"
        asked = UserInputRequest(self.run_id, self.thread_id, self.step, prompt, payload)
        answer = await self.runner.interaction.request_user_input(asked)
        if not isinstance(answer, UserInputDecision):
            answer = await self._pause("user_input", answer.token, self.runner.config.input_timeout_s)
        if isinstance(answer, UserInputDecision):
            return answer
        return UserInputDecision(kind=self.runner.config.input_fallback, reason="input_timeout")

    async def _pause(self, kind: str, token: str, timeout_s: float) -> Any:
        await self._emit("run_paused", "paused", message=f"Waiting for deferred {kind.replace('_', ' ')}")
        await self._save("paused", {"kind": kind})
        answer = await self.runner.interaction.await_deferred(token, timeout_s=timeout_s)
        await self._emit("run_resumed", message=f"Deferred {kind.replace('_', ' ')} resolved")
        await self._save("resumed", {"kind": kind})
        return answer

    async def _call(self, place: int, call: ToolCall, args: dict[str, Any]) -> ToolResult:
        before = await self.runner.memory.get_state(self.thread_id, self._effect_key(call))
        if call.id and before is not None:
            if before["input_hash"] != _digest(args):
                raise AgentCheckpointCorruptionError(f"Effect journal integrity conflict for tool_call_id={call.id}")
            if before["success"]:
                return ToolResult(output=before["output"])
        found = next((one for one in self.agent.tools if one.spec.name == call.tool_name), None)
        if found is None:
            return ToolResult(success=False, error_message=f"Unknown tool: {call.tool_name}")
        ctx = ToolContext(metadata={"run_id": self.run_id, "thread_id": self.thread_id})
        call_id = call.id or f"{self.run_id}:{self.step}:{place}"
        result: Any = await found.call(args, ctx=ctx, timeout=None, tool_call_id=call_id)
        invalid = ToolResult(success=False, error_message=f"Unexpected tool result type: {type(result).__name__}")
        return result if isinstance(result, ToolResult) else invalid

    async def _note(self, call: ToolCall, args: dict[str, Any], result: ToolResult) -> None:
        if result.deferred is not None:
            data: dict[str, Any] = {"success": True, "deferred": True, **asdict(result.deferred)}
            await self._open_ticket({**asdict(result.deferred), "tool_call_id": call.id})
            await self._emit("tool_deferred", data={**asdict(result.deferred), "tool_call_id": call.id})
        else:
            data = {"success": result.success, "output": result.output, "error": result.error_message}
            effect = {"input_hash": _digest(args), "output": result.output, "success": result.success}
            await self.runner.memory.put_state(self.thread_id, self._effect_key(call), effect)
            await self._emit("tool_completed", data={"tool_name": call.tool_name, "tool_call_id": call.id, **data})
        self.records.append(
            ToolExecutionRecord(call.tool_name, call.id, result.success, result.output, result.error_message)
        )
        self.messages.append(Message("tool", json.dumps(data), call.tool_name))

    async def _open_ticket(self, ticket: dict[str, Any]) -> None:
        self.tickets.append({**ticket, "created_at_s": time.time()})
        key = f"bgtool:{self.run_id}:{ticket['ticket_id']}:state"
        await self.runner.memory.put_state(self.thread_id, key, ticket)

    async def _read_tickets(self) -> None:
        for ticket in list(self.tickets):
            key = f"bgtool:{self.run_id}:{ticket['ticket_id']}:state"
            row = await self.runner.memory.get_state(self.thread_id, key)
            if row["status"] not in ("completed", "failed"):
                continue
            self.tickets.remove(ticket)
            kind = "tool_background_resolved" if row["status"] == "completed" else "tool_background_failed"
            await self._emit(kind, data=row)
            self.messages.append(Message("tool", json.dumps(row), row["tool_name"]))

    async def _emit(self, kind: str, state: str = "running", message: str = "", data: Any = None) -> None:
        event = AgentRunEvent(kind, self.run_id, self.thread_id, state, self.step, message or None, data or {})
        await self.runner.interaction.notify(event)

    async def _save_all(self) -> None:
        payload = {
            "thread_id": self.thread_id,
            "step": self.step,
            "messages": [asdict(one) for one in self.messages],
            "started_at_s": self.started_at_s,
            "tool_executions": [asdict(one) for one in self.records],
            "pending_llm_response": None if self.pending is None else asdict(self.pending),
            "background_tools_pending": self.tickets,
            "llm_calls": self.llm_calls,
            "usage": self.usage,
            "normalized_model": "player",
        }
        await self._save("runtime_state", payload)

    async def _save(self, phase: str, payload: dict[str, Any], step: int | None = None) -> None:
        step = self.step if step is None else step
        row = {"schema_version": "v1", "run_id": self.run_id, "step": step, "phase": phase, "payload": payload}
        row["timestamp_ms"] = round(time.time() * 1000)
        for key in (f"checkpoint:{self.run_id}:{step}:{phase}", f"checkpoint:{self.run_id}:latest"):
            await self.runner.memory.put_state(self.thread_id, key, json.loads(json.dumps(row, default=repr)))

    def _effect_key(self, call: ToolCall) -> str:
        return f"effect:{self.run_id}:{self.step}:{call.id}"


def _plain(payload: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(payload, default=repr))
    return plain


def _digest(args: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(args, sort_keys=True).encode()).hexdigest()
