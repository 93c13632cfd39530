"""A framework's tool starts only through the executor, once, and its result is saved first."""

import asyncio
from typing import Any

import pytest

from sayso.core.policy.rules import Action
from sayso.core.records.items import ItemDraft, ItemTool
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import Conflict, IllegalTransition
from sayso.runner.batches import Batch, BatchCall, end_call
from sayso.runner.execution import CallExecutor, current_call
from sayso.runner.protocol import FrameworkTool, describe_refusal, describe_text
from sayso.runner.tools import CallContext


def called(index: int, **args: Any) -> BatchCall:
    call = ToolCall(call_id=f"c{index}", index=index, name="pay", args=args)
    return BatchCall(call=call, action=Action.ALLOW, reason="")


def twin(index: int) -> BatchCall:
    return called(index, amount=index)


class Kept:
    """Keeps what a gate reports, or refuses to."""

    def __init__(self, refuse: bool = False) -> None:
        self.batches: list[Batch] = []
        self._refuse = refuse

    async def keep(self, batch: Batch) -> None:
        if self._refuse:
            raise Conflict("Another worker has the run.")
        self.batches.append(batch)


def make_gate(kept: Kept, *calls: BatchCall, unseen: bool = False) -> CallExecutor:
    open_ = {
        one.call.index: CallContext("run", one.call.call_id, f"key{one.call.index}") for one in calls if one.may_run
    }
    return CallExecutor(Batch(calls=calls, started_step=1), open_, kept.keep, unseen)


async def pay(args: Any) -> str:
    call = current_call()
    assert call is not None
    return f"paid {args['amount']} under {call.idempotency_key}"


async def test_executor_reports_results_with_the_last_call() -> None:
    kept = Kept()
    first, second = called(0, amount=1), called(1, amount=2)
    executor = make_gate(kept, first, second)
    await executor.run(first, pay)
    assert kept.batches == []
    result = await executor.run(second, pay)
    assert result.output == "paid 2 under key1"
    assert [one.result and one.result.output for one in kept.batches[0].calls] == [
        "paid 1 under key0",
        "paid 2 under key1",
    ]


async def test_executor_runs_a_call_once() -> None:
    one = called(0, amount=1)
    executor = make_gate(Kept(), one)
    await executor.run(one, pay)
    with pytest.raises(IllegalTransition):
        await executor.run(one, pay)


async def test_calls_with_one_id_run_once_each_with_their_arguments() -> None:
    ids = {"call_id": ""}
    calls = [one.model_copy(update={"call": one.call.model_copy(update=ids)}) for one in map(twin, range(3))]
    calls[0] = end_call(calls[0], "Not that.")
    executor = make_gate(Kept(), *calls)
    for amount in (1, 2):
        one = executor.find("", "pay")
        assert one is not None
        assert (await executor.run(one, pay)).output == f"paid {amount} under key{amount}"


async def test_find_returns_none_when_a_later_turn_reuses_an_id() -> None:
    denied = end_call(called(1, amount=2), "Not today.")
    executor = make_gate(Kept(), called(0, amount=1), denied)
    for index in (0, 1):
        one = executor.find(f"c{index}", "pay")
        assert one is not None
        await executor.run(one, pay)
        assert executor.find(f"c{index}", "pay") is None


async def test_close_distinguishes_broken_off_from_never_started() -> None:
    kept, begun = Kept(), called(0, amount=1)
    executor = make_gate(kept, begun, called(1, amount=2))
    under_way = asyncio.Event()

    async def hang(_args: Any) -> Any:
        under_way.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(executor.run(begun, hang))
    await under_way.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await executor.close()
    errors = [one.result and one.result.error for one in kept.batches[0].calls]
    assert errors == [
        "The framework broke this call off in the middle; nobody knows what it did.",
        "The framework did not start this call.",
    ]


async def test_call_with_a_result_does_not_run() -> None:
    denied = end_call(called(0, amount=1), "Not today.")
    result = await make_gate(Kept(), denied).run(denied, pay)
    assert (result.success, result.error) == (False, "Not today.")
    assert describe_refusal(denied) == "Not today."


async def test_executor_refuses_a_batch_with_an_undecided_call() -> None:
    calls = called(0, amount=1), called(1, amount=2)
    with pytest.raises(IllegalTransition, match="pay has no decision"):
        CallExecutor(Batch(calls=calls, started_step=1), {0: CallContext("run", "c0", "key0")}, Kept().keep)


async def test_tool_error_is_a_failed_result_of_the_executor() -> None:
    async def fail(_args: Any) -> Any:
        raise ValueError("no money")

    kept, one = Kept(), called(0, amount=1)
    result = await make_gate(kept, one).run(one, fail)
    assert (result.success, result.error) == (False, "ValueError: no money")
    assert len(kept.batches) == 1


async def test_tool_cancelled_from_inside_is_a_failed_result() -> None:
    async def break_off(_args: Any) -> Any:
        raise asyncio.CancelledError

    kept, one = Kept(), called(0, amount=1)
    result = await make_gate(kept, one).run(one, break_off)
    assert (result.success, result.error) == (False, "The tool was cancelled from inside.")
    assert len(kept.batches) == 1


async def test_executor_stops_once_results_cannot_be_saved() -> None:
    one = called(0, amount=1)
    executor = make_gate(Kept(refuse=True), one)
    with pytest.raises(Conflict):
        await executor.run(one, pay)
    with pytest.raises(Conflict):
        await executor.close()


async def test_nothing_runs_once_confirm_raises() -> None:
    async def lose() -> None:
        raise Conflict("Another worker has the run.")

    ran: list[Any] = []

    async def note(args: Any) -> None:
        ran.append(args)

    one = called(0, amount=1)
    executor = CallExecutor(
        Batch(calls=(one,), started_step=1), {0: CallContext("run", "c0", "key0")}, Kept().keep, confirm=lose
    )
    with pytest.raises(Conflict):
        await executor.run(one, note)
    with pytest.raises(Conflict):
        await executor.close()
    assert ran == []


@pytest.mark.parametrize("unseen", [True, False])
async def test_close_counts_unseen_calls_as_run(unseen: bool) -> None:
    kept = Kept()
    executor = make_gate(kept, called(0, amount=1), unseen=unseen)
    await executor.close()
    result = kept.batches[0].calls[0].result
    assert result is not None
    assert result.success is unseen


async def test_edited_arguments_are_described_to_the_model() -> None:
    asked = ItemTool(name="pay", args={"amount": 5}, definition="d")
    edited = called(0, amount=3).model_copy(
        update={"ask": ItemDraft(call_id="c0", index=0, tool=asked), "decided": True}
    )
    result = await make_gate(Kept(), edited).run(edited, pay)
    assert describe_text(edited, result).startswith("A reviewer changed the arguments")


@pytest.mark.parametrize(
    ("args", "ignore", "fault"),
    [
        ({"amount": 1}, None, None),
        ({"amount": "much"}, None, 'amount: "much" is not of type "integer"'),
        ({}, None, 'arguments: "amount" is a required property'),
        ({}, "amount", None),
        ({"amount": "much"}, "amount", None),
    ],
)
def test_framework_tool_checks_arguments_by_its_schema(args: Any, ignore: str | None, fault: str | None) -> None:
    schema: Any = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
    tool = FrameworkTool(definition=ToolDefinition(name="pay", parameters=schema), function=pay)
    assert tool.find_fault(args, ignore=ignore) == fault
    assert tool.read(args) is None, "only the framework knows how its function takes them"
