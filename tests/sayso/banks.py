"""A bank that pays back, behind a gate."""

from typing import Any

from sayso import gate
from sayso.gating.execution import Gated
from sayso.runner.tools import CallContext
from sayso.testing import InProcessDesk


class Bank:
    """What the gated function changes, and how often."""

    def __init__(self) -> None:
        self.paid: list[tuple[str, float]] = []
        self.keys: list[str] = []
        self.error: BaseException | None = None

    def pay(self, order: str, amount: float, call: CallContext) -> str:
        self.paid.append((order, amount))
        self.keys.append(call.idempotency_key)
        if self.error is not None:
            raise self.error
        return f"paid {amount:g} for {order}"


def gated(desk: InProcessDesk, bank: Bank, **manner: Any) -> Gated[..., str]:
    """The refund as an agent's script has it; made anew, it is the script started again."""

    @gate(**{"client": desk.client(), "key": "refund-{order}", **manner})
    def refund(order: str, amount: float, call: CallContext) -> str:
        """Pay a customer back."""
        return bank.pay(order, amount, call)

    return refund
