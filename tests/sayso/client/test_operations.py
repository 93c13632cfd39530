"""Operations of clients that run approved calls themselves."""

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.errors import AlreadyRedeemed
from sayso.testing import InProcessDesk

BODY: JsonObject = {"mode": "poll", "calls": [{"tool": "pay", "args": {"amount": 5}, "definition": {}}]}


def test_redeem_then_report_outcome(desk: InProcessDesk) -> None:
    desk.reviewer.approves("pay")
    client = desk.client()
    suspension = client.wait(client.suspend(BODY, key="k").id)
    redeemed = client.redeem(suspension.id, "i1", "try-1")
    assert (redeemed.args, redeemed.attempt) == ({"amount": 5}, 1)
    assert client.redeem(suspension.id, "i1", "try-1") == redeemed
    with pytest.raises(AlreadyRedeemed):
        client.redeem(suspension.id, "i1", "try-2")
    reported = client.report_outcome(suspension.id, "i1", "try-1", output="paid")
    assert reported.items[0].permit is not None
    assert reported.items[0].permit.report is not None
    assert reported.items[0].permit.report.output == "paid"


async def test_report_outcome_of_a_failure_async(desk: InProcessDesk) -> None:
    desk.reviewer.approves("pay")
    client = desk.async_client()
    suspension = await client.wait((await client.suspend(BODY, key="k")).id)
    assert (await client.redeem(suspension.id, "i1", "try-1")).args == {"amount": 5}
    reported = await client.report_outcome(suspension.id, "i1", "try-1", success=False, error="no funds")
    assert reported.items[0].permit is not None
    assert reported.items[0].permit.report is not None
    assert (reported.items[0].permit.report.success, reported.items[0].permit.report.error) == (False, "no funds")
