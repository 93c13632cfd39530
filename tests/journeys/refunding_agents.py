"""An agent that pays refunds at once into a file, whose tool can take one back."""

from pydantic import JsonValue

from sayso.core.canonical_json import JsonObject
from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import tool
from service.core.settings import load

LEDGER = "ledger.txt"


def _write(line: str) -> None:
    with (load().home / LEDGER).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def take_back(arguments: JsonObject, result: JsonValue) -> None:
    """Take the refund with this receipt back."""
    _write(f"back {arguments['order']} {result}")


@tool(undo=take_back)
def refund(order: str) -> str:
    """Refund an order, and return the receipt."""
    _write(f"paid {order}")
    return f"receipt-{order}"


_CALL = RequestedCall(call_id="call_0", name="refund", args_json='{"order": "A-1"}')
refunder = Agent(
    name="refunder",
    instructions="Refund.",
    tools=(refund,),
    model=ScriptedModel([ModelTurn(calls=(_CALL,)), ModelTurn(text="Refunded.")]),
)
