"""Test agents without a server: a desk in the test's process, a fake reviewer, and a manual clock.

    desk = InProcessDesk()
    desk.reviewer.denies("refund", message="Not this one")
    with pytest.raises(Denied):
        refund_with(desk.client())(order="A-1", amount=5)

`desk.run(agent, "Refund A-1")` runs an agent on it.
"""

from sayso.testing.desk import URL, InProcessDesk
from sayso.testing.records import FakeReviewer, ManualClock

__all__ = ["URL", "FakeReviewer", "InProcessDesk", "ManualClock"]
