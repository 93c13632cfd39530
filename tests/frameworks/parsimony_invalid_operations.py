"""Invalid operations on suspended parsimony-agents runs. Prints the results as JSON."""

import asyncio
import json
from typing import Any

from parsimony_agents import Agent
from parsimony_agents.agent.events import AgentError
from parsimony_agents.agent.models import AgentMessage

from sayso.adapters.parsimony import _follow, gate
from sayso.adapters.parsimony.turns import Segment, read_record, write_record
from sayso.core.policy.rules import Action
from sayso.core.records.tools import ToolCall
from sayso.errors import SaysoError
from sayso.runner.batches import Batch, BatchCall
from sayso.runner.execution import CallExecutor
from sayso.runner.protocol import Done, FrameworkTurn
from sayso.runner.tools import CallContext
from tests.frameworks.bots import parsimony
from tests.frameworks.installations import write_script

framework: Any = parsimony.bot.framework


async def main() -> None:
    """Print the result of each operation."""
    script = write_script([{"tool": "ask_user", "args": {"question": "Which?", "choices": ["left", "right"]}}])
    asked = await framework.begin(script)
    assert isinstance(asked, FrameworkTurn)
    record = read_record(asked.native["record"])
    results = {
        "twice": await resume_twice(asked),
        "foreign": await gate(make_agent_with_other_secret, name="bot").framework.find_fault(asked.native),
        "own": await framework.find_fault(asked.native),
        "not a record": await refusal(framework.find_fault({"record": {"run_id": 1}, "turn": True})),
        "snapshots": json.dumps(asked.native["record"]).count("agent_context_snapshot"),
        "not JSON": await refusal(write(record, {"type": "text", "text": object()})),
        "error": str(await _follow(say_error(), Segment())),
    }
    print(json.dumps(results))


async def resume_twice(asked: FrameworkTurn) -> list[str]:
    """Resume the same record twice with one permit."""
    (call,) = asked.calls
    args = {**json.loads(call.args_json), "answer": "left"}
    one = BatchCall(
        call=ToolCall(call_id=call.call_id, index=0, name=call.name, args=args),
        action=Action.REQUEST_USER_INPUT,
        reason="",
        decided=True,
    )
    leave = CallExecutor(Batch(calls=(one,), started_step=1), {0: CallContext("run", call.call_id, "key")}, keep)
    first = await framework.resume(asked.native, leave)
    assert isinstance(first, Done)
    return [str(first.result), await refusal(framework.resume(asked.native, leave))]


async def keep(_batch: Batch) -> None:
    """Keep nothing."""


async def write(record: Any, block: Any) -> None:
    """Write a record with a tool result."""
    message = AgentMessage.model_construct(role="tool", content=[block], name="t", tool_call_id="c", metadata={})
    write_record(record.model_copy(update={"messages": [*record.messages, message]}))


async def refusal(work: Any) -> str:
    """Return the message of the error."""
    try:
        await work
    except SaysoError as error:
        return error.message
    return "it was not refused"


async def say_error() -> Any:
    """Stop with only an error event."""
    yield AgentError(message="Tool t got an internal error.", recoverable=False)


def make_agent_with_other_secret() -> Agent:
    """Return the same agent with another secret."""
    agent = parsimony.make_agent()
    agent.suspension_secret = "another"
    return agent


if __name__ == "__main__":
    asyncio.run(main())
