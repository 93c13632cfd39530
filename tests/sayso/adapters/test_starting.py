"""Tests of starting runs in the agent's process."""

from sayso.adapters.starting import start
from sayso.client import AsyncClient
from sayso.core.canonical_json import JsonObject
from sayso.core.records.suspensions import Origin
from sayso.core.records.tools import ToolDefinition
from sayso.runner.execution import CallExecutor
from sayso.runner.models import RequestedCall
from sayso.runner.protocol import Done, FrameworkTurn, build_agent, describe_refusal

PAY = ToolDefinition(name="pay", parameters={"type": "object", "properties": {"to": {"type": "string"}}})


class Slip:
    """A framework whose model requests these calls at once, and ends with their results."""

    origin = Origin(framework="slip", adapter="slip", state_schema="slip/1")

    def __init__(self, *calls: tuple[str, str]) -> None:
        self._calls = tuple(
            RequestedCall(call_id=f"c{at}", name=name, args_json=args) for at, (name, args) in enumerate(calls)
        )

    async def begin(self, text: str) -> FrameworkTurn | Done:
        return FrameworkTurn({}, self._calls)

    def is_fault(self, error: Exception) -> bool:
        return False

    async def find_fault(self, native: JsonObject) -> str | None:
        return None

    async def resume(self, native: JsonObject, executor: CallExecutor) -> FrameworkTurn | Done:
        return Done([describe_refusal(one) for one in executor.calls])


async def test_start_returns_invalid_calls_to_the_model() -> None:
    slip = Slip(("pay", '{"to":'), ("fly", "{}"), ("pay", '{"to": 7}'), ("pay", '{"to": "ann"}'))
    async with AsyncClient("http://127.0.0.1:9", "no-key") as nobody:
        messages = await start(build_agent(slip, "bot", {"pay": PAY}), "Pay.", nobody)
    assert isinstance(messages, list)
    unread, unknown, misfit, whole = map(str, messages)
    assert "cannot be read" in unread
    assert unknown == "There is no tool named 'fly'. There are: pay."
    assert misfit.startswith("The arguments do not fit pay: to")
    assert whole == "Not run: another call of the same turn is invalid. Make this call again."
