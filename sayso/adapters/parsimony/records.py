"""JSON form of suspended parsimony-agents runs, and the results of calls in their transcripts.

Messages that the framework writes anew on each turn are left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from parsimony_agents.agent.models import AgentMessage
from parsimony_agents.agent.state import SuspensionRecord
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from sayso.core.canonical_json import JsonObject
from sayso.core.records.run_state import check_state
from sayso.errors import InvalidInput, InvalidJson
from sayso.runner.models import RequestedCall
from sayso.runner.tools import describe_error, plain_json

_REWRITTEN = ("context_snapshot", "connectors_catalog", "connector_skills")
_INVALID_RECORD = "The saved state is not a suspension of parsimony-agents: {reason}. Cancel this run."
_NOT_RUN = "Not run: the run was suspended."


def write_record(record: SuspensionRecord) -> JsonObject:
    """Return the record as JSON. Raises `InvalidJson`, which names the key, for a message that is not JSON."""
    kept = [message for message in record.messages if not any(message.metadata.get(key) for key in _REWRITTEN)]
    messages = [_write_message(message, place) for place, message in enumerate(close_turn(kept))]
    return {**record.model_copy(update={"messages": []}).model_dump(mode="json"), "messages": messages}


def read_record(written: Any) -> SuspensionRecord:
    """Return a record that the framework can resume. Raises `InvalidInput` if it is malformed."""
    try:
        record = SuspensionRecord.model_validate({**written, "messages": []})
        messages = [AgentMessage.model_validate(message) for message in written["messages"]]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(
            _INVALID_RECORD.format(reason=f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        ) from error
    except (KeyError, TypeError) as error:
        raise InvalidInput(_INVALID_RECORD.format(reason=describe_error(error))) from error
    return record.model_copy(update={"messages": messages})


def find_turn(messages: Sequence[Any]) -> int:
    """Return the index of the model's last response, or -1."""
    return max((place for place, message in enumerate(messages) if message.role == "assistant"), default=-1)


def read_calls(message: Any) -> tuple[RequestedCall, ...]:
    """Return the calls of a response in order."""
    return tuple(
        RequestedCall(call_id=call.id, name=call.function.name, args_json=call.function.arguments, subagent="")
        for call in message.tool_calls or ()
    )


def close_turn(messages: Sequence[Any], results: Mapping[int, Any] | None = None) -> list[Any]:
    """Return the messages with a result for each call of the last turn, as providers require, from `results`."""
    place = find_turn(messages)
    if place < 0:
        return list(messages)
    tail = list(messages[place + 1 :])
    closed: list[Any] = []
    for index, call in enumerate(read_calls(messages[place])):
        answers = (message for message in tail if message.role == "tool" and message.tool_call_id == call.call_id)
        if (written := next(answers, None)) is not None:
            tail.remove(written)
        result = (results or {}).get(index)
        if written is None or result is not None:
            written = _write_result(call, _NOT_RUN if result is None else result)
        closed.append(written)
    return [*messages[: place + 1], *closed, *tail]


def _write_result(call: RequestedCall, result: Any) -> Any:
    if isinstance(result, AgentMessage):
        return result
    return AgentMessage(role="tool", content=result, name=call.name, tool_call_id=call.call_id)


def _write_message(message: Any, place: int) -> JsonObject:
    try:
        written: JsonObject = message.model_dump(mode="json")
        check_state({"record": {"messages": [*[None] * place, written]}})
    except PydanticSerializationError as error:
        check_state({"record": {"messages": [*[None] * place, message.model_dump()]}})
        raise InvalidJson(
            f"The run's state cannot be saved: $.record.messages[{place}] is not JSON: {error}"
        ) from error
    return written


def read_text(content: Any) -> Any:
    """Return content as the model sees it: as text, if it is text."""
    if hasattr(content, "to_llm"):
        content = content.to_llm()
    if isinstance(content, list) and all(isinstance(block, dict) and block.get("type") == "text" for block in content):
        return "".join(str(block.get("text", "")) for block in content)
    return content if isinstance(content, str) else plain_json(content)
