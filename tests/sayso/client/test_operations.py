"""Operations of clients that run approved calls themselves."""

import re
from typing import Any

import pytest

from sayso.core.canonical_json import JsonObject
from sayso.errors import AlreadyRedeemed, InvalidInput
from sayso.testing import InProcessDesk
from sayso.wire.suspensions import show_suspension

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


@pytest.mark.parametrize(
    ("word", "use"),
    [
        ("action='aprove' is unknown. Give one of 'approve', 'deny', 'value'.", "decide"),
        ("status='open' is unknown. Give one of 'pending', 'decided', 'undoable'.", "waiting"),
        ("status='aprove' is unknown. Give one of 'running', 'suspended', ", "runs"),
    ],
)
async def test_word_that_does_not_exist_is_refused_before_it_is_sent(desk: InProcessDesk, word: str, use: str) -> None:
    desk.client().suspend({"mode": "poll", "calls": [{"tool": "pay", "definition": {}}]})
    desk.drop_requests = 99
    wrong: Any = "open" if use == "waiting" else "aprove"
    item = show_suspension(next(iter(desk.records.values())), (), "agent").items[0]
    given: list[Any] = ["sus_1", item, wrong] if use == "decide" else [wrong]
    with pytest.raises(InvalidInput, match=re.escape(word)):
        getattr(desk.client(), use)(*given)
    with pytest.raises(InvalidInput, match=re.escape(word)):
        await getattr(desk.async_client(), use)(*given)
    assert desk.drop_requests == 99
