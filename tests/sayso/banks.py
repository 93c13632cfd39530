"""A bank whose refunds are behind a gate."""

from typing import Any

from sayso import gate
from sayso.gating.execution import GatedFunction
from sayso.runner.tools import CallContext
from sayso.testing import InProcessDesk


class Bank:
    """The state that the gated function changes."""

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


def gated(desk: InProcessDesk, bank: Bank, **manner: Any) -> GatedFunction[..., str]:
    """Return the gated refund; a second one stands for a restarted script."""

    @gate(**{"client": desk.client(), "key": "refund-{order}", **manner})
    def refund(order: str, amount: float, call: CallContext) -> str:
        """Pay a customer back."""
        return bank.pay(order, amount, call)

    return refund
