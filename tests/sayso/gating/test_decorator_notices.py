"""The line that a gated call prints while it waits for a reviewer."""

import os
import subprocess
import sys

import pytest

from sayso import Denied, Suspended, gate
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated
from tests.sayso.rule_builders import policy, rule


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err.splitlines()


def test_gate_prints_one_line_with_the_link_while_it_waits(
    desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.reviewer.approves("refund")
    gated(desk, bank)("A-1", 5.0)
    (record,) = desk.records.values()
    (line,) = lines(capsys)
    assert line.startswith("sayso: refund waits for a person until 20")
    assert line.endswith(f" (http://desk.test/items/{record.id}/i1)")


async def test_gate_prints_one_line_for_an_async_block(desk: InProcessDesk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.reviewer.approves("deploy")
    async with gate("deploy", {}, client=desk.async_client()) as call:
        call.result = "done"
    (line,) = lines(capsys)
    assert line.startswith("sayso: deploy waits for a person")


@pytest.mark.parametrize("action", [Action.ALLOW, Action.DENY])
def test_gate_prints_nothing_for_a_call_that_rules_decide(
    bank: Bank, action: Action, capsys: pytest.CaptureFixture[str]
) -> None:
    refund = gated(InProcessDesk(Policy(default=action)), bank)
    if action is Action.ALLOW:
        refund("A-1", 5.0)
    else:
        with pytest.raises(Denied):
            refund("A-1", 5.0)
    assert lines(capsys) == []


def test_gate_prints_nothing_without_a_wait(
    desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Suspended, match=r"\(http://desk.test/items/sus_\w+/i1\)"):
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    desk.reviewer.decide("approve")
    gated(desk, bank)("A-1", 5.0)
    gated(desk, bank)("A-1", 5.0)
    assert lines(capsys) == []


def test_gate_prints_no_second_line_after_an_edit(bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    medium = rule("medium", "request_approval", when="args.amount > 50")
    desk = InProcessDesk(policy=policy(medium, default=Action.REQUEST_APPROVAL))
    desk.reviewer.approves("refund", args={"order": "A-1", "amount": 90})
    assert gated(desk, bank)("A-1", 5.0) == "paid 90 for A-1"
    assert len(lines(capsys)) == 1


def test_gate_prints_the_link_of_a_call_in_doubt(
    desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]
) -> None:
    desk.reviewer.approves("refund")
    bank.error = SystemExit()
    with pytest.raises(SystemExit):
        gated(desk, bank)("A-1", 5.0)
    bank.error = None
    lines(capsys)
    desk.reviewer.answers("refund", {"choice": "run_again"})
    gated(desk, bank, on_doubt="ask")("A-1", 5.0)
    (line,) = lines(capsys)
    first, in_doubt = desk.records.values()
    assert first.following_id == in_doubt.id
    assert line.endswith(f"/items/{in_doubt.id}/{in_doubt.items[0].item_id})")


def test_gate_prints_nothing_when_quiet(desk: InProcessDesk, bank: Bank, capsys: pytest.CaptureFixture[str]) -> None:
    desk.reviewer.approves("refund")
    gated(desk, bank, quiet=True)("A-1", 5.0)
    assert lines(capsys) == []


@pytest.mark.parametrize("closing", ["sys.stderr.close()", "sys.stderr = None", "os.close(2)"])
def test_gate_runs_with_a_closed_standard_error(closing: str) -> None:
    script = (
        "import os, sys\n"
        "from sayso import gate\nfrom sayso.testing import InProcessDesk\n"
        "desk = InProcessDesk()\ndesk.reviewer.approves()\n"
        f"{closing}\n"
        "with gate('deploy', {}, client=desk.client()) as call:\n    print('deployed')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], env=dict(os.environ), stdout=subprocess.PIPE, check=False)
    assert done.stdout == b"deployed\n"
