"""Whoever runs a gated script sees where a person decides, once, and only while one is waited for."""

import os
import subprocess
import sys

import pytest

from sayso import Denied, Suspended, gate
from sayso.policy.engine import Policy
from sayso.policy.rules import Action
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated
from tests.sayso.rule_builders import policy, rule


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()


def test_a_call_that_waits_prints_one_line_with_the_items_link(
    desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.reviewer.approves("refund")
    gated(desk, bank)("A-1", 5.0)
    (record,) = desk.records.values()
    (line,) = lines(capsys)
    assert line.startswith("sayso: refund waits for a person until 20")
    assert line.endswith(f" (http://desk.test/items/{record.id}/i1)")


async def test_an_async_block_that_waits_prints_one_line(
    desk: InProcessDesk, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.reviewer.approves("deploy")
    async with gate("deploy", {}, client=desk.async_client()) as call:
        call.result = "done"
    (line,) = lines(capsys)
    assert line.startswith("sayso: deploy waits for a person")


@pytest.mark.parametrize("action", [Action.ALLOW, Action.DENY])
def test_a_call_that_waits_for_nobody_prints_nothing(
    bank: Bank, action: Action, capsys: pytest.CaptureFixture[str]
) -> None:
    refund = gated(InProcessDesk(Policy(default=action)), bank)
    if action is Action.ALLOW:
        refund("A-1", 5.0)
    else:
        with pytest.raises(Denied):
            refund("A-1", 5.0)
    assert lines(capsys) == []


def test_a_call_that_may_not_wait_or_ran_before_prints_nothing(
    desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Suspended, match=r"\(http://desk.test/items/sus_\w+/i1\)"):
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    desk.reviewer.decide("approve")
    gated(desk, bank)("A-1", 5.0)
    gated(desk, bank)("A-1", 5.0)
    assert lines(capsys) == []


def test_a_call_that_is_asked_anew_prints_no_second_line(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    medium = rule("medium", "request_approval", when="args.amount > 50")
    desk = InProcessDesk(policy=policy(medium, default=Action.REQUEST_APPROVAL))
    desk.reviewer.approves("refund", args={"order": "A-1", "amount": 90})
    assert gated(desk, bank)("A-1", 5.0) == "paid 90 for A-1"
    assert len(lines(capsys)) == 1


def test_a_question_about_a_lost_call_has_a_link_of_its_own(
    desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.reviewer.approves("refund")
    bank.error = SystemExit()
    with pytest.raises(SystemExit):
        gated(desk, bank)("A-1", 5.0)
    bank.error = None
    lines(capsys)
    desk.reviewer.answers({"choice": "run_again"}, "refund")
    gated(desk, bank, on_doubt="ask")("A-1", 5.0)
    (line,) = lines(capsys)
    asked, question = desk.records.values()
    assert asked.following_id == question.id
    assert line.endswith(f"/items/{question.id}/{question.items[0].item_id})")


def test_the_line_can_be_turned_off(desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    desk.reviewer.approves("refund")
    gated(desk, bank, quiet=True)("A-1", 5.0)
    assert lines(capsys) == []


@pytest.mark.parametrize("closing", ["sys.stderr.close()", "sys.stderr = None", "os.close(2)"])
def test_a_closed_standard_error_does_not_stop_the_call(closing: str) -> None:
    script = (
        "import os, sys\n"
        "from sayso import gate\nfrom sayso.testing import InProcessDesk\n"
        "desk = InProcessDesk()\ndesk.reviewer.approves()\n"
        f"{closing}\n"
        "with gate('deploy', {}, client=desk.client()) as call:\n    print('deployed')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env=dict(os.environ), stdout=subprocess.PIPE, check=False)
    assert done.stdout == b"deployed\n"
