"""Gated functions and blocks run only with a permit, and at most once."""

import asyncio
from collections.abc import Iterator
from datetime import date
from typing import Any

import httpx
import pytest

from sayso import CallFailed, Denied, InDoubt, Suspended, gate
from sayso.core.policy.engine import Policy
from sayso.core.policy.rules import Action, PolicyRule, RequestPayload, RuleCondition
from sayso.errors import AlreadyRedeemed, DeadlinePassed, Frozen, IdempotencyConflict, InvalidInput, Unreachable
from sayso.runner.tools import CallContext
from sayso.testing import InProcessDesk
from tests.sayso.banks import Bank, gated


def run_status(desk: InProcessDesk) -> str:
    return str(list(desk.records.values())[-1].run_status)


def test_gate_runs_an_approved_call_once_and_reports_it(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves("refund")
    assert gated(desk, bank)("A-1", amount=5.0) == "paid 5 for A-1"
    assert bank.paid == [("A-1", 5.0)]
    (record,) = desk.records.values()
    assert bank.keys == [f"{record.id}:i1"]
    assert record.items[0].permit is not None
    assert record.items[0].permit.report is not None
    assert record.items[0].permit.report.output == "paid 5 for A-1"
    assert run_status(desk) == "completed"


def test_gate_runs_the_edited_arguments(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves("refund", args={"order": "A-1", "amount": 3.0})
    assert gated(desk, bank)("A-1", 5.0) == "paid 3 for A-1"


def test_gate_raises_denied_with_the_reason(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.denies("refund", "Never delivered")
    with pytest.raises(Denied, match="refund was denied by reviewer: Never delivered"):
        gated(desk, bank)("A-1", 5.0)
    assert bank.paid == []


def test_gate_follows_rules_that_allow_or_deny(bank: Bank) -> None:
    small = PolicyRule(rule_id="small", condition=RuleCondition(tool_name="refund"), action=Action.ALLOW)
    assert gated(InProcessDesk(Policy(rules=(small,), default=Action.DENY)), bank)("A-1", 5.0)
    with pytest.raises(Denied, match="denied by policy"):
        gated(InProcessDesk(Policy(default=Action.DENY)), bank)("A-1", 5.0)
    assert len(bank.paid) == 1


def test_gate_raises_denied_when_a_rule_requests_an_unknown_argument(bank: Bank) -> None:
    payload = RequestPayload(target_arg="code")
    rule = PolicyRule(rule_id="codes", action=Action.REQUEST_USER_INPUT, request_payload=payload)
    desk = InProcessDesk(Policy(rules=(rule,), default=Action.ALLOW))
    with pytest.raises(Denied, match="The rule codes asks for a value for 'code', which refund does not take"):
        gated(desk, bank)("A-1", 5.0)
    assert bank.paid == []
    with pytest.raises(Suspended), gate("deploy", {}, client=desk.client(), wait_s=0):
        raise AssertionError("the block ran without the code")


def test_gate_raises_denied_by_the_fallback(desk: InProcessDesk, bank: Bank) -> None:
    with pytest.raises(Denied, match="Nobody decided before"):
        gated(desk, bank)("A-1", 5.0)


def test_gate_raises_suspended_and_continues_when_called_again(desk: InProcessDesk, bank: Bank) -> None:
    with pytest.raises(Suspended, match="waits for a person") as waiting:
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    assert bank.paid == []
    desk.reviewer.decide("approve")
    assert waiting.value.key == "refund-A-1"
    assert gated(desk, bank, wait_s=0)("A-1", 5.0) == "paid 5 for A-1"


def test_with_key_continues_a_suspended_call(desk: InProcessDesk, bank: Bank) -> None:
    refund = gated(desk, bank, key=None, wait_s=0)
    with pytest.raises(Suspended) as waiting:
        refund("A-1", 5.0)
    desk.reviewer.decide("approve")
    assert refund.with_key(waiting.value.key)("A-1", 5.0) == "paid 5 for A-1"
    assert len(desk.records) == 1


def test_gate_returns_the_result_of_an_earlier_call(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves()
    assert gated(desk, bank)("A-1", 5.0) == gated(desk, bank)("A-1", 5.0)
    assert len(bank.paid) == 1
    assert len(desk.records) == 1


def test_gate_restores_the_type_of_an_earlier_result(desk: InProcessDesk) -> None:
    desk.reviewer.approves()

    @gate(client=desk.client(), key="due")
    def find_due() -> date:
        return date(2026, 11, 21)

    assert find_due() == find_due() == date(2026, 11, 21)


@pytest.mark.parametrize("kind", [str, Bank])
def test_gate_raises_call_failed_for_a_result_of_another_type(desk: InProcessDesk, kind: Any) -> None:
    desk.reviewer.approves()

    def count() -> Any:
        return 3

    count.__annotations__["return"] = kind
    counted = gate(client=desk.client(), key="count")(count)
    assert counted() == 3
    with pytest.raises(CallFailed, match="ran before") as failed:
        counted()
    assert failed.value.facts["output"] == 3


def test_gate_returns_an_iterator_unread(desk: InProcessDesk) -> None:
    desk.reviewer.approves()

    @gate(client=desk.client(), key="lines")
    def read_lines() -> Iterator[str]:
        return iter(["a", "b"])

    assert list(read_lines()) == ["a", "b"]
    with pytest.raises(CallFailed, match="only once"):
        read_lines()


def test_gate_refuses_an_awaitable_of_a_plain_function(desk: InProcessDesk) -> None:
    begun: list[str] = []

    async def send() -> None:
        begun.append("sent")

    @gate(client=desk.client())
    def mail() -> Any:
        return send()

    desk.reviewer.approves()
    with pytest.raises(InvalidInput, match="Make it an async def"):
        mail()
    assert begun == []
    assert run_status(desk) == "completed"
    (record,) = desk.records.values()
    assert record.items[0].permit is not None
    assert record.items[0].permit.report is not None
    assert not record.items[0].permit.report.success


def test_gate_raises_call_failed_for_an_earlier_failure(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves()
    bank.error = ValueError("no such account")
    with pytest.raises(ValueError, match="no such account"):
        gated(desk, bank)("A-1", 5.0)
    with pytest.raises(CallFailed, match="no such account"):
        gated(desk, bank)("A-1", 5.0)
    assert len(bank.paid) == 1


def lose(desk: InProcessDesk, bank: Bank, **options: Any) -> None:
    """Interrupt the script during the call."""
    desk.reviewer.approves("refund")
    bank.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        gated(desk, bank, **options)("A-1", 5.0)
    bank.error = None


def test_gate_raises_in_doubt_for_a_lost_call(desk: InProcessDesk, bank: Bank) -> None:
    lose(desk, bank)
    with pytest.raises(InDoubt, match=r"may have run.*idempotency key sus_"):
        gated(desk, bank)("A-1", 5.0)
    assert len(bank.paid) == 1


def test_gate_raises_in_doubt_while_the_call_still_runs(desk: InProcessDesk) -> None:
    desk.reviewer.approves()

    @gate(client=desk.client(), key="the same")
    def refund() -> str:
        with pytest.raises(InDoubt, match="may still be running it: call again in a moment"):
            refund()
        return "paid"

    assert refund() == "paid"
    assert refund() == "paid"


class AwaitedDesk(InProcessDesk):
    """A desk that notes when a client waits for the end of a run."""

    def __init__(self) -> None:
        super().__init__()
        self.awaited = asyncio.Event()

    def respond(self, request: httpx.Request) -> httpx.Response:
        if "/runs/" in request.url.path:
            self.awaited.set()
        return super().respond(request)


@pytest.mark.parametrize("wait_s", [None, 60])
async def test_second_call_with_the_key_waits_for_the_result_of_the_first(wait_s: float | None) -> None:
    desk, ran = AwaitedDesk(), list[str]()
    desk.reviewer.approves()

    @gate(client=desk.async_client(), key="mail-{to}", wait_s=wait_s)
    async def mail(to: str) -> str:
        ran.append(to)
        await desk.awaited.wait()
        return f"sent to {to}"

    assert [*await asyncio.gather(mail("ann"), mail("ann"))] == ["sent to ann"] * 2
    assert ran == ["ann"]


async def test_second_call_with_the_key_is_in_doubt_after_its_wait(desk: InProcessDesk) -> None:
    desk.reviewer.approves()
    started, ends = asyncio.Event(), asyncio.Event()

    @gate(client=desk.async_client(), key="mail-{to}", wait_s=30)
    async def mail(to: str) -> str:
        started.set()
        await ends.wait()
        return f"sent to {to}"

    first = asyncio.create_task(mail("ann"))
    await started.wait()
    with pytest.raises(InDoubt, match="has not reported a result"):
        await mail("ann")
    ends.set()
    assert await first == "sent to ann"


def test_gate_runs_an_idempotent_lost_call_again(desk: InProcessDesk, bank: Bank) -> None:
    lose(desk, bank, idempotent=True)
    assert gated(desk, bank, idempotent=True)("A-1", 5.0) == "paid 5 for A-1"
    assert bank.keys[0] == bank.keys[1]
    assert len(set(bank.keys)) == 1


@pytest.mark.parametrize(("choice", "times"), [("run_again", 2), ("skip", 1), ("fail", 1)])
def test_gate_asks_about_a_call_in_doubt(desk: InProcessDesk, bank: Bank, choice: str, times: int) -> None:
    lose(desk, bank)
    with pytest.raises(Suspended):
        gated(desk, bank, on_doubt="ask", wait_s=0)("A-1", 5.0)
    desk.reviewer.decide("value", value={"choice": choice, **({"result": "seen"} if choice == "skip" else {})})
    if choice == "fail":
        with pytest.raises(Denied):
            gated(desk, bank, on_doubt="ask")("A-1", 5.0)
    else:
        assert gated(desk, bank)("A-1", 5.0) == ("seen" if choice == "skip" else "paid 5 for A-1")
    assert len(bank.paid) == times
    assert len(set(bank.keys)) == 1


def test_gate_refuses_a_key_of_another_call(desk: InProcessDesk, bank: Bank) -> None:
    desk.reviewer.approves()
    gated(desk, bank)("A-1", 5.0)
    with pytest.raises(IdempotencyConflict):
        gated(desk, bank)("A-1", 6.0)


def test_gate_raises_deadline_passed_for_an_expired_permit(desk: InProcessDesk, bank: Bank) -> None:
    with pytest.raises(Suspended):
        gated(desk, bank, wait_s=0)("A-1", 5.0)
    desk.reviewer.decide("approve")
    desk.clock.advance(3600)
    with pytest.raises(DeadlinePassed, match=r"under the key 'refund-A-1' and did not start before 2023-11-14"):
        gated(desk, bank)("A-1", 5.0)
    assert bank.paid == []


@pytest.mark.parametrize("fault", ["drop_requests", "drop_responses"])
def test_gate_runs_once_when_requests_or_responses_are_lost(desk: InProcessDesk, bank: Bank, fault: str) -> None:
    desk.reviewer.approves()
    for _ in range(4):
        setattr(desk, fault, 2)
        assert gated(desk, bank)("A-1", 5.0) == "paid 5 for A-1"
    assert len(bank.paid) == 1
    assert len(desk.records) == 1


def test_gate_raises_unreachable_with_what_to_do(desk: InProcessDesk, bank: Bank) -> None:
    desk.drop_requests = 10_000
    with pytest.raises(Unreachable, match=r"cannot be reached.* Start the desk, or set SAYSO_URL"):
        gated(desk, bank)("A-1", 5.0)
    assert bank.paid == []


def test_gate_returns_the_result_when_the_report_is_lost(
    desk: InProcessDesk, bank: Bank, caplog: pytest.LogCaptureFixture
) -> None:
    desk.reviewer.approves()
    pay = bank.pay

    def pay_and_cut(order: str, amount: float, call: CallContext) -> str:
        desk.drop_requests = 10_000
        return pay(order, amount, call)

    bank.pay = pay_and_cut  # type: ignore[method-assign]
    assert gated(desk, bank)("A-1", 5.0) == "paid 5 for A-1"
    assert "could not be reported" in caplog.text
    desk.drop_requests = 0
    with pytest.raises(InDoubt):
        gated(desk, bank)("A-1", 5.0)


async def test_gate_runs_an_async_function(desk: InProcessDesk) -> None:
    desk.reviewer.approves()
    ran = []

    @gate(client=desk.async_client(), key="mail-{to}")
    async def send_mail(to: str) -> int:
        ran.append(to)
        return len(ran)

    assert await send_mail("ann") == 1
    assert await send_mail("ann") == 1
    assert await send_mail(to="bob") == 2
    assert ran == ["ann", "bob"]


def test_gate_runs_a_block_once(desk: InProcessDesk) -> None:
    desk.reviewer.approves("deploy", args={"version": "1.2.1"})
    with gate("deploy", {"version": "1.2"}, client=desk.client(), key="deploy-1.2") as call:
        call.result = f"deployed {call.args['version']}"
    assert run_status(desk) == "completed"
    with (
        pytest.raises(AlreadyRedeemed, match="ran before") as ran,
        gate("deploy", {"version": "1.2"}, client=desk.client(), key="deploy-1.2"),
    ):
        raise AssertionError("the block ran twice")
    assert ran.value.facts["output"] == "deployed 1.2.1"


async def test_gate_denies_an_async_block(desk: InProcessDesk) -> None:
    desk.reviewer.denies()
    with pytest.raises(Denied):
        async with gate("deploy", {"version": "1.2"}, client=desk.async_client()):
            raise AssertionError("the block ran")


def test_gate_reports_a_block_that_fails(desk: InProcessDesk) -> None:
    desk.reviewer.approves()
    with pytest.raises(Frozen), gate("deploy", {}, client=desk.client()):
        raise Frozen("The cluster is frozen.")
    report = next(iter(desk.records.values())).items[0].permit
    assert report is not None
    assert report.report is not None
    assert report.report.error == "The cluster is frozen."


CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def test_gate_submits_the_schema_of_a_block(desk: InProcessDesk) -> None:
    desk.reviewer.approves("look_up", args={"city": "Bonn"})
    with gate("look_up", {"city": "Berlin"}, schema=CITY, client=desk.client()) as call:
        assert call.args == {"city": "Bonn"}
    (definition,) = desk.definitions.values()
    assert definition.parameters == CITY


def test_gate_refuses_arguments_that_do_not_fit_the_schema(desk: InProcessDesk) -> None:
    with pytest.raises(InvalidInput, match="'city' is missing"), gate("look_up", {}, schema=CITY, client=desk.client()):
        pytest.fail("it ran")
    assert desk.records == {}


def test_gate_accepts_a_block_without_the_requested_argument() -> None:
    payload = RequestPayload(target_arg="city")
    rule = PolicyRule(rule_id="where", action=Action.REQUEST_USER_INPUT, request_payload=payload)
    desk = InProcessDesk(Policy(rules=(rule,), default=Action.ALLOW))
    desk.reviewer.answers("*", "Bonn")
    with gate("look_up", {}, schema=CITY, client=desk.client()) as call:
        assert call.args == {"city": "Bonn"}


def test_gate_refuses_a_schema_over_its_bounds_or_with_a_function(desk: InProcessDesk) -> None:
    with pytest.raises(InvalidInput, match="1001 alternatives"):
        gate("look_up", {}, schema={"anyOf": [{}] * 1_001}, client=desk.client())
    with pytest.raises(InvalidInput, match="takes its schema from its signature"):
        gate(schema=CITY)(lambda: None)  # type: ignore[call-overload]
