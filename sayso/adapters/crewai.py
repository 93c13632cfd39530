"""Adapter for CrewAI agents, alone or in a sequential crew.

    from sayso.adapters.crewai import gate
    bot = gate(build, name="bot")

CrewAI cannot continue an agent in another process. So the adapter notes what each model answered and what each call
returned, and plays it back to a newly built agent. Nothing runs twice, and no model is asked twice. The agent stops
when a model requests calls, before any of them starts.
"""

import asyncio
import contextvars
import copy
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import Any

from crewai import Agent, Crew, Process
from crewai.events.utils.console_formatter import set_suppress_console_output
from crewai.tools import BaseTool
from crewai.utilities.agent_utils import convert_tools_to_openai_schema, extract_tool_call_info, is_tool_call_list
from crewai.utilities.string_utils import sanitize_tool_name
from pydantic import BaseModel, PrivateAttr

from sayso.adapters.base import NOT_REVIEWED, Adapter, UsageMeter, define_tool
from sayso.adapters.reachability import reach
from sayso.core.canonical_json import JsonObject
from sayso.core.records.tools import ToolDefinition
from sayso.errors import IllegalTransition, InvalidInput
from sayso.guarding.frameworks import guard_framework
from sayso.guarding.runs import note_gated
from sayso.runner import protocol
from sayso.runner.batches import BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkAgent, FrameworkTurn

_CHANGED = "The agent asked its model for another answer than in its earlier part, so it cannot go on. Cancel this run."
_UNCLEAR = "A hook changed the arguments of {name}, so it is not known which decision applies. It did not run."
_NO_TOOLS = "The model of {role!r} has no function calling, so its calls cannot be held. Use another model."
_OPTIONS = {
    "allow_delegation": "lets other agents work",
    "allow_code_execution": "runs the model's code",
    "planning": "runs steps of a plan",
    "planning_config": "runs steps of a plan",
    "reasoning": "runs steps of a plan",
    "multimodal": "adds a tool",
    "mcps": "adds tools of servers",
    "apps": "adds tools of servers",
    "a2a": "lets other agents work",
    "memory": "adds tools of a memory",
    "manager_agent": "lets other agents work",
    "manager_llm": "lets other agents work",
    "human_input": "asks at a console",
    "async_execution": "answers in no fixed order",
}
"""Options with which calls could run ungated, or a run could not be played back."""

_UNFIT = "{owner} has {option}, which {effect}. Build it without."
_INNER = "The tool {tool!r} runs an agent with tools of its own ({names}), which would run without review."

Build = Callable[[], Any]
"""Builds the agent or crew anew: CrewAI's agents hold the state of their last run."""


class _Stopped(BaseException):
    """Leaves CrewAI at the calls of a model. It repeats what ends with an `Exception`."""


class Tape:
    """What the models of a run answered, and what its calls returned. Played back first, then continued."""

    def __init__(self, answers: Sequence[JsonObject], executor: CallExecutor | None = None) -> None:
        self.answers: list[Any] = copy.deepcopy([*answers])
        self.meter = UsageMeter()
        self._executor = executor
        self._loop = asyncio.get_running_loop()
        self._lock = Lock()
        self._played = 0
        self._turn: Any = None
        self._taken: set[int] = set()

    def ask(self, model: Any, *args: Any, **options: Any) -> Any:
        """Return the next answer on the tape, or that of the model. Raises `_Stopped` for one with calls."""
        if self._played < len(self.answers):
            answer = self.answers[self._played]
            self._played += 1
            return self._replay(answer, options.get("response_model"))
        before = model.get_token_usage_summary()
        given = model.call(*args, **options)
        after = model.get_token_usage_summary()
        given_tokens, made_tokens = (
            getattr(after, field) - getattr(before, field) for field in ("prompt_tokens", "completion_tokens")
        )
        self.meter.note(model.model, given_tokens, made_tokens)
        self._played += 1
        if isinstance(given, list) and is_tool_call_list(given):
            calls = [_read_call(info) for info in map(extract_tool_call_info, given) if info is not None]
            self.answers.append({"calls": calls, "results": [None] * len(calls)})
            raise _Stopped
        dumped = isinstance(given, BaseModel)
        self.answers.append({"json": given.model_dump(mode="json")} if dumped else {"text": str(given)})
        return given

    def run(self, tool: BaseTool, args: Mapping[str, Any]) -> str:
        """Return the result of a call: the one on the tape, or what its run through the executor returns."""
        name = sanitize_tool_name(tool.name)
        place = self._take(tool, name, args)
        if place is None:
            raise IllegalTransition(NOT_REVIEWED.format(name=name))
        known: str | None = self._turn["results"][place]
        if known is not None:
            return known
        if self._executor is None or self._turn is not self.answers[-1]:
            raise IllegalTransition(NOT_REVIEWED.format(name=name))
        work = self._run_call(self._executor, self._executor.calls[place], tool)
        text = asyncio.run_coroutine_threadsafe(work, self._loop).result()
        self._turn["results"][place] = text
        return text

    async def _run_call(self, executor: CallExecutor, entry: BatchCall, tool: BaseTool) -> str:
        async def execute(approved: JsonObject) -> Any:
            output = await asyncio.to_thread(tool._run, **_fit(tool, approved))
            return await output if asyncio.iscoroutine(output) else output

        result = await executor.run(entry, execute)
        return protocol.describe_text(entry, result) if result.success else result.error or ""

    def _replay(self, answer: Any, response_model: Any) -> Any:
        if "calls" in answer:
            self._turn, self._taken = answer, set()
            return [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in answer["calls"]
            ]
        if "json" not in answer:
            return answer["text"]
        if response_model is None:
            raise InvalidInput(_CHANGED)
        return response_model.model_validate(answer["json"])

    def _take(self, tool: BaseTool, name: str, args: Mapping[str, Any]) -> int | None:
        """Return the place of the call that CrewAI makes now. It passes no id on, so the arguments tell."""
        with self._lock:
            calls = enumerate(self._turn["calls"]) if self._turn is not None else ()
            waiting = [(place, call) for place, call in calls if call["name"] == name and place not in self._taken]
            equal = [place for place, call in waiting if _fit(tool, _read_args(call["arguments"])) == args]
            if not equal and len(waiting) > 1:
                raise IllegalTransition(_UNCLEAR.format(name=name))
            place = next(iter(equal or [place for place, _ in waiting]), None)
            if place is not None:
                self._taken.add(place)
            return place


def _read_call(info: Any) -> JsonObject:
    call_id, name, args = info
    return {"id": str(call_id), "name": name, "arguments": args if isinstance(args, str) else json.dumps(args)}


def _read_args(text: str) -> dict[str, Any]:
    with suppress(ValueError):
        args = json.loads(text or "{}")
        if isinstance(args, dict):
            return args
    return {}


def _fit(tool: BaseTool, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as CrewAI passes them to the tool."""
    fitted = dict(args)
    with suppress(ValueError):
        fitted = tool._validate_kwargs(fitted)
    return fitted


def gate(
    build: Build,
    *,
    name: str,
    write_inputs: Callable[[str], Mapping[str, Any]] = lambda text: {"text": text},
    idempotent: Collection[str] = (),
    **options: Any,
) -> FrameworkAgent:
    """Return the agent or crew with its tools gated by Sayso, for `SAYSO_AGENTS` and for `start`.

    `build` makes it anew each time. `write_inputs` turns the text of a run into the inputs of a crew. Raises
    `InvalidInput` for options with which tools could run ungated.
    """
    guard_framework("crewai")
    framework = CrewAi(build, write_inputs)
    definitions: dict[str, ToolDefinition] = {}
    for tool in _check(build()):
        definition = _define(tool, idempotent)
        if definitions.setdefault(definition.name, definition) != definition:
            raise InvalidInput(f"Two tools are named {definition.name!r}. Rename one of them.")
    return protocol.build_agent(framework, name, definitions, **options)


class CrewAi(Adapter):
    """A CrewAI agent or crew behind `sayso.runner.protocol.Framework`."""

    framework = "crewai"
    package = "crewai"
    state_schema = "crewai.tape/1"

    def __init__(self, build: Build, write_inputs: Callable[[str], Mapping[str, Any]]) -> None:
        self._build = build
        self._write_inputs = write_inputs

    async def begin(self, text: str) -> FrameworkTurn | Done:
        return await self._run(text, Tape(()))

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        """Play the run back to a new agent, which then makes the calls of its last turn."""
        answers: Any = native["answers"]
        if len(answers[-1]["calls"]) != len(executor.calls):
            raise InvalidInput("The saved run waits for other calls than these. Cancel this run.")
        return await self._run(str(native["text"]), Tape(answers, executor))

    async def _run(self, text: str, tape: Tape) -> FrameworkTurn | Done:
        runnable = self._build()
        _check(runnable)
        for member in _list_agents(runnable):
            member.llm = _play_model(member.llm, tape)
            member.tools = [_play_tool(tool, tape) for tool in member.tools or ()]
        for task in _list_tasks(runnable):
            task.tools = [_play_tool(tool, tape) for tool in task.tools or ()]
        arguments = {"inputs": {**self._write_inputs(text)}} if isinstance(runnable, Crew) else {"messages": text}
        try:
            output = await _run_in_thread(lambda: _kick_off(runnable, arguments))
        except _Stopped:
            answer = tape.answers[-1]
            subagent = None if isinstance(runnable, Crew) else ""
            calls = tuple(
                RequestedCall(call_id=call["id"], name=call["name"], args_json=call["arguments"], subagent=subagent)
                for call in answer["calls"]
            )
            return FrameworkTurn({"text": text, "answers": tape.answers}, calls, usage=tape.meter.read())
        return Done({"text": output.raw})


def _kick_off(runnable: Any, arguments: Mapping[str, Any]) -> Any:
    set_suppress_console_output(True)  # in this context: each part of a run would print all earlier ones again
    return runnable.kickoff(**arguments)


async def _run_in_thread(work: Callable[[], Any]) -> Any:
    """Run blocking work in a thread of its own: its calls need the threads that all runs share."""
    threads = ThreadPoolExecutor(1)
    try:
        return await asyncio.get_running_loop().run_in_executor(threads, contextvars.copy_context().run, work)
    finally:
        threads.shutdown(wait=False)


def _play_model(model: Any, tape: Tape) -> Any:
    """Return a copy of the model that asks the tape first, and then another copy, which counts its tokens alone."""
    played, asked = copy.copy(model), copy.copy(model)
    asked._token_usage = dict(asked._token_usage)
    object.__setattr__(played, "call", lambda *args, **options: tape.ask(asked, *args, **options))
    return played


class _PlayedTool(BaseTool):
    """Stands for a tool in an agent: its calls go through the tape."""

    _tool: Any = PrivateAttr()
    _tape: Any = PrivateAttr()

    def _run(self, **args: Any) -> Any:
        return self._tape.run(self._tool, args)


def _play_tool(tool: BaseTool, tape: Tape) -> BaseTool:
    shared = ("name", "description", "args_schema", "result_as_answer", "max_usage_count")
    played = _PlayedTool(**{field: getattr(tool, field) for field in shared}, cache_function=_never)
    played._tool, played._tape = tool, tape
    return note_gated(played)


def _never(*_args: Any) -> bool:
    """Keep no result in CrewAI's cache: it would answer an approved call."""
    return False


def _check(runnable: Any) -> list[BaseTool]:
    """Return the tools of an agent or crew. Raises `InvalidInput` if one could run ungated."""
    if isinstance(runnable, Crew):
        if runnable.process is not Process.sequential:
            raise InvalidInput("The crew is not sequential, so its manager lets other agents work. Make it sequential.")
    elif not isinstance(runnable, Agent):
        raise InvalidInput(f"build returned a {type(runnable).__name__}. Return an Agent or a Crew.")
    agents, tasks = _list_agents(runnable), _list_tasks(runnable)
    for part in (runnable, *agents, *tasks):
        for option, effect in _OPTIONS.items():
            if getattr(part, option, None):
                owner = repr(getattr(part, "role", None) or getattr(part, "name", None) or type(part).__name__)
                raise InvalidInput(_UNFIT.format(owner=owner, option=option, effect=effect))
    for member in agents:
        if not getattr(member.llm, "supports_function_calling", bool)():
            raise InvalidInput(_NO_TOOLS.format(role=member.role))
    tools = [tool for part in (*agents, *tasks) for tool in part.tools or ()]
    for tool in tools:
        for target in reach(getattr(tool, "func", tool._run)):
            if isinstance(target, Agent | Crew) and (names := _list_names(target)):
                raise InvalidInput(_INNER.format(tool=tool.name, names=", ".join(names)))
    return tools


def _list_agents(runnable: Any) -> list[Any]:
    if not isinstance(runnable, Crew):
        return [runnable]
    members = [*runnable.agents, *(task.agent for task in runnable.tasks if task.agent is not None)]
    return list({id(member): member for member in members}.values())


def _list_tasks(runnable: Any) -> list[Any]:
    return [*runnable.tasks] if isinstance(runnable, Crew) else []


def _list_names(runnable: Any) -> list[str]:
    return [tool.name for part in (*_list_agents(runnable), *_list_tasks(runnable)) for tool in part.tools or ()]


def _define(tool: BaseTool, idempotent: Collection[str]) -> ToolDefinition:
    schemas, _, _ = convert_tools_to_openai_schema([tool])
    function: Any = schemas[0]["function"]
    parameters = {"type": "object", "properties": {}, "additionalProperties": False, **function["parameters"]}
    return define_tool(function["name"], function.get("description"), parameters, idempotent)
