"""AG-UI agents for the proxy: `python -m tests.frameworks.agui.servers pydantic_ai PORT`, or another framework.

The user's message is a JSON list of payments, which the model makes at once. Effects are recorded in BOT_HOME. A
payment to `die` ends the agent, one to `slow` does not return. LangGraph's agent asks for the amount of a payment to
`form` or `choice`, and its question about one to `soon` expires after as many seconds as the amount. With AGENT_KEY it
serves only clients with this key.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response

HOME = Path(os.environ.get("BOT_HOME", "."))
APPROVAL = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "editedArgs": {"type": "object"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
AMOUNT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


async def pay(to: str, amount: int) -> str:
    """Record the payment."""
    with (HOME / "effects.jsonl").open("a") as file:
        file.write(json.dumps({"to": to, "amount": amount}) + "\n")
    if to == "die":
        os._exit(3)
    if to == "slow":
        await asyncio.Event().wait()
    return f"sent {amount} to {to}"


def list_payments(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return id and arguments of each call that the message asks for."""
    return [(f"{to}-{amount}", {"to": to, "amount": amount}) for to, amount in json.loads(text)]


def make_pydantic_ai() -> FastAPI:
    """Return an agent of Pydantic AI, which keeps nothing between two runs."""
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.messages import ModelMessage, ModelRequest, RetryPromptPart, ToolReturnPart, UserPromptPart
    from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
    from pydantic_ai.ui.ag_ui import AGUIAdapter

    async def answer(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[Any]:
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        results = [part for part in last.parts if isinstance(part, ToolReturnPart | RetryPromptPart)]
        if results:
            yield "done: " + " | ".join(str(part.content) for part in results)
            return
        (asked,) = [part.content for part in last.parts if isinstance(part, UserPromptPart)]
        for number, (id_, args) in enumerate(list_payments(str(asked))):
            yield {number: DeltaToolCall(name="send_money", json_args=json.dumps(args), tool_call_id=id_)}

    agent = Agent(FunctionModel(stream_function=answer), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    async def send_money(to: str, amount: int) -> str:
        return await pay(to, amount)

    app = FastAPI()

    @app.post("/")
    async def run(request: Request) -> Response:
        response: Response = await AGUIAdapter.dispatch_request(request, agent=agent)
        return response

    return app


def make_langgraph(saver: Any) -> FastAPI:
    """Return an agent of LangGraph, which keeps its threads."""
    from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
    from langchain_core.messages import AIMessage, ToolMessage
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.types import Command, Send, interrupt

    class BoundAgent(LangGraphAgent):
        """Gives each answer to the interrupt that it names."""

        def _build_command_from_agui_resume(self, entries: list[Any], *, open_interrupts: Any = None) -> Command[Any]:
            return Command(resume={entry.interrupt_id: entry.payload for entry in entries})

    def plan(state: MessagesState) -> dict[str, Any]:
        calls = [
            {"id": id_, "name": "send_money", "args": args, "type": "tool_call"}
            for id_, args in list_payments(str(state["messages"][-1].content))
        ]
        return {"messages": [AIMessage("", tool_calls=calls)]}

    def spread(state: MessagesState) -> list[Send]:
        last = state["messages"][-1]
        assert isinstance(last, AIMessage)
        return [Send("call", dict(call)) for call in last.tool_calls]

    async def call(payment: dict[str, Any]) -> dict[str, Any]:
        args = payment["args"]
        question = {"reason": "tool_call", "toolCallId": payment["id"], "message": "Pay?", "responseSchema": APPROVAL}
        if args["to"] in {"form", "choice"}:
            question = {"reason": args["to"], "message": "How much?", "responseSchema": AMOUNT}
        if args["to"] == "soon":
            question["expiresAt"] = (datetime.now(UTC) + timedelta(seconds=args["amount"])).isoformat()
        answer = interrupt(question)
        if answer is None:
            result = "no answer"
        elif answer.get("approved", True):
            result = await pay(**answer.get("editedArgs", args | answer))
        else:
            result = f"denied: {answer.get('reason')}"
        return {"messages": [ToolMessage(result, tool_call_id=payment["id"])]}

    def close(state: MessagesState) -> dict[str, Any]:
        results = [str(message.content) for message in state["messages"] if isinstance(message, ToolMessage)]
        return {"messages": [AIMessage("done: " + " | ".join(results))]}

    graph = StateGraph(MessagesState)
    graph.add_node("plan", plan)
    graph.add_node("call", call)
    graph.add_node("close", close)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", spread, ["call"])
    graph.add_edge("call", "close")
    graph.add_edge("close", END)
    kind = LangGraphAgent if os.environ.get("UNBOUND") else BoundAgent
    agent = kind(name="bank", graph=graph.compile(checkpointer=saver), emit_interrupt_outcome=True)
    app = FastAPI()
    add_langgraph_fastapi_endpoint(app, agent, "/")
    return app


def make_strands() -> FastAPI:
    """Return an agent of Strands, which keeps its sessions in files."""
    from ag_ui_strands import StrandsAgent, StrandsAgentConfig, ToolBehavior, add_strands_fastapi_endpoint
    from strands import Agent, tool
    from strands.models.model import Model
    from strands.session.file_session_manager import FileSessionManager

    class Payer(Model):
        """Makes the payments, then repeats their results."""

        def update_config(self, **_: Any) -> None:
            """Keep nothing."""

        def get_config(self) -> Any:
            return {}

        def structured_output(self, *_: Any, **__: Any) -> Any:
            raise ValueError("This model returns texts.")

        async def stream(self, messages: Any, *_: Any, **__: Any) -> AsyncIterator[Any]:
            last = messages[-1]["content"]
            results = [part["toolResult"]["content"][0]["text"] for part in last if "toolResult" in part]
            yield {"messageStart": {"role": "assistant"}}
            if results:
                yield {"contentBlockDelta": {"delta": {"text": "done: " + " | ".join(results)}}}
                yield {"contentBlockStop": {}}
            for id_, args in [] if results else list_payments(last[-1]["text"]):
                yield {"contentBlockStart": {"start": {"toolUse": {"name": "send_money", "toolUseId": id_}}}}
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(args)}}}}
                yield {"contentBlockStop": {}}
            yield {"messageStop": {"stopReason": "end_turn" if results else "tool_use"}}

    @tool
    async def send_money(to: str, amount: int) -> str:
        """Send money to somebody."""
        return await pay(to, amount)

    config = StrandsAgentConfig(
        tool_behaviors={"send_money": ToolBehavior(interrupt_on_call=True)},
        session_manager_provider=lambda asked: FileSessionManager(asked.thread_id, storage_dir=str(HOME / "sessions")),
    )
    app = FastAPI()
    agent = Agent(model=Payer(), tools=[send_money], callback_handler=None)
    add_strands_fastapi_endpoint(app, StrandsAgent(agent, "bank", config=config), "/")
    return app


def make_agent_framework() -> FastAPI:
    """Return an agent of Agent Framework, whose adapter speaks AG-UI 0.1 and keeps what it asks in its process."""
    from agent_framework import (
        Agent,
        BaseChatClient,
        ChatResponse,
        ChatResponseUpdate,
        Content,
        FunctionInvocationLayer,
        ResponseStream,
        tool,
    )
    from agent_framework_ag_ui import add_agent_framework_fastapi_endpoint

    class Payer(FunctionInvocationLayer, BaseChatClient):
        """Makes the payments, then repeats their results."""

        def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
            parts = [part for message in messages for part in message.contents]
            results = [str(part.result) for part in parts if part.type == "function_result"]
            contents = [Content.from_text("done: " + " | ".join(results))]
            if not results:
                calls = list_payments(parts[-1].text)
                contents = [Content.from_function_call(id_, "send_money", arguments=args) for id_, args in calls]

            async def updates() -> AsyncIterator[Any]:
                yield ChatResponseUpdate(contents=contents, role="assistant")

            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    @tool(approval_mode="always_require")
    async def send_money(to: str, amount: int) -> str:
        """Send money to somebody."""
        return await pay(to, amount)

    app = FastAPI()
    agent = Agent(client=Payer(), name="bank", tools=[send_money])
    add_agent_framework_fastapi_endpoint(app, agent, "/", single_user=True)
    return app


def make_google_adk() -> FastAPI:
    """Return an agent of Google ADK, which keeps its sessions in a database."""
    from ag_ui_adk import ADKAgent, add_adk_fastapi_endpoint
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmRequest, LlmResponse
    from google.adk.sessions import DatabaseSessionService
    from google.adk.tools import FunctionTool
    from google.genai import types

    class Payer(BaseLlm):
        """Makes the payments, then repeats their results."""

        async def generate_content_async(self, llm_request: LlmRequest, stream: bool = False) -> AsyncIterator[Any]:
            parts = llm_request.contents[-1].parts or []
            results = [part.function_response.response for part in parts if part.function_response]
            texts = [str(result.get("result", result)) for result in results if result is not None]
            content = [types.Part(text="done: " + " | ".join(texts))]
            if not results:
                calls = list_payments(str(parts[-1].text))
                content = [
                    types.Part(function_call=types.FunctionCall(name="send_money", args=args)) for _, args in calls
                ]
            yield LlmResponse(content=types.Content(role="model", parts=content))

    async def send_money(to: str, amount: int) -> str:
        """Send money to somebody."""
        return await pay(to, amount)

    tool = FunctionTool(send_money, require_confirmation=True)
    agent = ADKAgent(
        adk_agent=LlmAgent(name="bank", model=Payer(model="played"), tools=[tool]),
        app_name="bank",
        user_id="ann",
        session_service=DatabaseSessionService(f"sqlite+aiosqlite:///{HOME / 'sessions.db'}"),
        use_in_memory_services=True,
        emit_interrupt_outcome=True,
    )
    app = FastAPI()
    add_adk_fastapi_endpoint(app, agent, "/")
    return app


def make_crewai() -> FastAPI:
    """Return a flow of CrewAI, which asks between two steps and keeps what it asks in a database.

    A model, which it serves itself, sorts answers into outcomes.
    """
    model = {"OPENAI_BASE_URL": f"http://127.0.0.1:{sys.argv[2]}/v1", "OPENAI_API_KEY": "none"}
    quiet = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    os.environ |= {**model, **quiet, "CREWAI_STORAGE_DIR": str(HOME)}
    from ag_ui_crewai import CopilotKitState, add_crewai_flow_fastapi_endpoint, agui_feedback_provider
    from crewai.flow.flow import Flow, listen, start
    from crewai.flow.human_feedback import human_feedback

    class Bank(Flow[CopilotKitState]):
        @start()
        @human_feedback(message="Pay?", emit=["pay", "leave"], llm="openai/gpt-4o", provider=agui_feedback_provider)
        def plan(self) -> Any:
            return [args for _, args in list_payments(self.state.messages[-1]["content"])]

        @listen("pay")
        async def act(self) -> None:
            assert self.last_human_feedback is not None
            for args in self.last_human_feedback.output:
                await pay(**args)

        @listen("leave")
        def rest(self) -> None:
            """Do nothing."""

    app = FastAPI()

    @app.post("/v1/chat/completions")
    async def sort(request: Request) -> dict[str, Any]:
        prompt = (await request.json())["messages"][-1]["content"]
        outcome = "pay" if "Feedback: pay" in prompt else "leave"
        message = {"role": "assistant", "content": json.dumps({"outcome": outcome})}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {"id": "c", "object": "chat.completion", "created": 0, "model": "gpt-4o", "choices": [choice]}

    add_crewai_flow_fastapi_endpoint(app, Bank(), "/", emit_interrupt_outcome=True)
    return app


MAKERS = {
    "crewai": make_crewai,
    "pydantic_ai": make_pydantic_ai,
    "strands": make_strands,
    "agent_framework": make_agent_framework,
    "google_adk": make_google_adk,
}


async def serve(app: FastAPI, port: int) -> None:
    """Serve until the process is stopped."""
    key = os.environ.get("AGENT_KEY")

    @app.middleware("http")
    async def check_key(request: Request, serve_next: Callable[[Request], Awaitable[Response]]) -> Response:
        allowed = key is None or request.headers.get("authorization") == f"Bearer {key}"
        return await serve_next(request) if allowed else Response(status_code=401)

    await uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning")).serve()


async def main() -> None:
    """Serve an agent."""
    kind, port = sys.argv[1:]
    if kind != "langgraph":
        await serve(MAKERS[kind](), int(port))
        return
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    async with AsyncSqliteSaver.from_conn_string(str(HOME / "threads.db")) as saver:
        await serve(make_langgraph(saver), int(port))


if __name__ == "__main__":
    asyncio.run(main())
