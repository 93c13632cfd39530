"""Agents that pay 10 with each call, and note every payment when it takes effect.

The runs of `payer` pay once in each of three turns; those of `closer` pay and close the account in one turn.
"""

from pathlib import Path

from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import CallContext, tool
from service.core.settings import load

PAID = "paid.txt"
TURNS = 3


@tool
def pay(amount: int, call: CallContext) -> str:
    """Pay; must not run twice."""
    with (load().home / PAID).open("a", encoding="utf-8") as paid:
        paid.write(f"{call.idempotency_key} {amount}\n")
    return f"paid {amount}"


@tool
def close_account() -> str:
    """Close the account."""
    return "closed"


def paid_in(home: Path) -> list[str]:
    """Return the keys of the calls that ran."""
    if not (home / PAID).exists():
        return []
    return [line.split()[0] for line in (home / PAID).read_text(encoding="utf-8").splitlines()]


def _pay(turn: int = 0) -> RequestedCall:
    return RequestedCall(call_id=f"call_{turn}", name="pay", args_json='{"amount": 10}')


_DONE = ModelTurn(text="Done.")
_PAYMENTS = [ModelTurn(calls=(_pay(turn),)) for turn in range(TURNS)]
_CLOSING = ModelTurn(calls=(_pay(), RequestedCall(call_id="call_close", name="close_account", args_json="{}")))
payer = Agent(name="payer", instructions="Pay.", tools=(pay,), model=ScriptedModel([*_PAYMENTS, _DONE]))
closer = Agent(
    name="closer", instructions="Pay and close.", tools=(pay, close_account), model=ScriptedModel([_CLOSING, _DONE])
)
