"""Whoever runs what was approved consumes the leave and reports the outcome with either client."""

import pytest

from sayso.errors import AlreadyRedeemed
from sayso.testing import InProcessDesk

BODY = {"mode": "poll", "calls": [{"tool": "pay", "args": {"amount": 5}, "definition": {}}]}


def test_a_client_consumes_the_leave_once_and_reports_the_outcome(desk: InProcessDesk) -> None:
    desk.reviewer.approves("pay")
    client = desk.client()
    asked = client.wait(client.suspend(BODY, key="k").id)
    spent = client.redeem(asked.id, "i1", "try-1")
    assert (spent.args, spent.attempt) == ({"amount": 5}, 1)
    assert client.redeem(asked.id, "i1", "try-1") == spent
    with pytest.raises(AlreadyRedeemed):
        client.redeem(asked.id, "i1", "try-2")
    reported = client.report_outcome(asked.id, "i1", "try-1", output="paid")
    assert reported.items[0].permit is not None
    assert reported.items[0].permit.report is not None
    assert reported.items[0].permit.report.output == "paid"


async def test_an_async_client_reports_a_failure_alike(desk: InProcessDesk) -> None:
    desk.reviewer.approves("pay")
    client = desk.async_client()
    asked = await client.wait((await client.suspend(BODY, key="k")).id)
    assert (await client.redeem(asked.id, "i1", "try-1")).args == {"amount": 5}
    reported = await client.report_outcome(asked.id, "i1", "try-1", success=False, error="no funds")
    assert reported.items[0].permit is not None
    assert reported.items[0].permit.report is not None
    assert (reported.items[0].permit.report.success, reported.items[0].permit.report.error) == (False, "no funds")
