"""Write a suspended run of parsimony-agents as JSON, rehydrate it elsewhere, and tell its transcript how calls ended.

The framework's own way back from JSON leaves the messages as plain objects, which it cannot resume; and it keeps no
word of which messages it writes anew each time, so those are left out.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from parsimony_agents.agent.models import AgentMessage
from parsimony_agents.agent.state import SuspensionRecord
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from sayso.canonical_json import JsonObject
from sayso.errors import InvalidInput, InvalidJson
from sayso.records.run_state import check_state
from sayso.runner.models import RequestedCall
from sayso.runner.tools import describe_error, plain_json

_WRITTEN_ANEW = ("context_snapshot", "connectors_catalog", "connector_skills")
_NO_RECORD = "The run's state is no suspension of parsimony-agents: {why}. Only what this adapter wrote can go on."
_UNRUN = "Not run: the run stopped to ask."


def write_record(record: SuspensionRecord) -> JsonObject:
    """Return the record as JSON; raises `InvalidJson`, naming the key, for a message that is not."""
    kept = [one for one in record.messages if not any(one.metadata.get(mark) for mark in _WRITTEN_ANEW)]
    messages = [_write_message(one, place) for place, one in enumerate(close_turn(kept))]
    return {**record.model_copy(update={"messages": []}).model_dump(mode="json"), "messages": messages}


def read_record(written: Any) -> SuspensionRecord:
    """Return the record as the framework can resume it; raises `InvalidInput` for anything else."""
    try:
        record = SuspensionRecord.model_validate({**written, "messages": []})
        messages = [AgentMessage.model_validate(one) for one in written["messages"]]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(_NO_RECORD.format(why=f"{'.'.join(map(str, first['loc']))}: {first['msg']}")) from error
    except (KeyError, TypeError) as error:
        raise InvalidInput(_NO_RECORD.format(why=describe_error(error))) from error
    return record.model_copy(update={"messages": messages})


def find_turn(messages: Sequence[Any]) -> int:
    """Return the place of the last answer of the model, or -1; what comes after it is told to the model."""
    places = [place for place, one in enumerate(messages) if one.role == "assistant"]
    return places[-1] if places else -1


def read_calls(message: Any) -> tuple[RequestedCall, ...]:
    """Return the calls of one answer of the model, in its order."""
    return tuple(
        RequestedCall(call_id=one.id, name=one.function.name, args_json=one.function.arguments, subagent="")
        for one in message.tool_calls or ()
    )


def close_turn(messages: Sequence[Any], told: Mapping[int, Any] | None = None) -> list[Any]:
    """Return the messages with one for each call of the last turn: providers refuse a call without any.

    `told` has the content or the whole message for a call, by its place in the turn; the others keep theirs.
    """
    place = find_turn(messages)
    if place < 0:
        return list(messages)
    tail = list(messages[place + 1 :])
    closed: list[Any] = []
    for at, call in enumerate(read_calls(messages[place])):
        said = next((one for one in tail if one.role == "tool" and one.tool_call_id == call.call_id), None)
        if said is not None:
            tail.remove(said)
        given = (told or {}).get(at)
        closed.append(_tell(call, _UNRUN if given is None else given) if given is not None or said is None else said)
    return [*messages[: place + 1], *closed, *tail]


def _tell(call: RequestedCall, told: Any) -> Any:
    if isinstance(told, AgentMessage):
        return told
    return AgentMessage(role="tool", content=told, name=call.name, tool_call_id=call.call_id)


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
    """Return what a model is told of a content: text, unless it is anything else."""
    if hasattr(content, "to_llm"):
        content = content.to_llm()
    if isinstance(content, list) and all(isinstance(one, dict) and one.get("type") == "text" for one in content):
        return "".join(str(one.get("text", "")) for one in content)
    return content if isinstance(content, str) else plain_json(content)
