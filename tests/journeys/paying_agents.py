"""An agent whose runs pay 10 in each of three turns, and note every payment when it takes effect."""

from pathlib import Path

from sayso.runner.agents import Agent
from sayso.runner.models import ModelTurn, RequestedCall, ScriptedModel
from sayso.runner.tools import CallContext, tool
from service.settings import load

PAID = "paid.txt"
TURNS = 3


@tool
def pay(amount: int, call: CallContext) -> str:
    """Pay; must not run twice."""
    with (load().home / PAID).open("a", encoding="utf-8") as paid:
        paid.write(f"{call.idempotency_key} {amount}\n")
    return f"paid {amount}"


def paid_in(home: Path) -> list[str]:
    """Return the keys of the calls that ran."""
    if not (home / PAID).exists():
        return []
    return [line.split()[0] for line in (home / PAID).read_text(encoding="utf-8").splitlines()]


_PAYMENTS = [
    ModelTurn(calls=(RequestedCall(call_id=f"call_{turn}", name="pay", args_json='{"amount": 10}'),))
    for turn in range(TURNS)
]
payer = Agent(
    name="payer", instructions="Pay.", tools=(pay,), model=ScriptedModel([*_PAYMENTS, ModelTurn(text="Done.")])
)
