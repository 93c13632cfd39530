"""A test of the project, on a desk in its process."""

from sayso.testing import InProcessDesk, ManualClock
from tests.launch.sample.agent import Bank, decide_first, deploy, refund


def check_refund() -> None:
    """A person approves what they are asked."""
    with InProcessDesk(clock=ManualClock()) as desk:
        desk.reviewer.approves("deploy")
        key: str = deploy("1.2", desk.client())
        assert key.endswith("i1")
        status: str = decide_first(desk.client("reviewer"))
        assert status == "nothing waits"
    assert refund.call.tool.name == "refund"
    assert Bank.pay.call.tool.definition.idempotent
