"""A key creates one suspension for a client's run, stored with its tools' definitions."""

from dataclasses import replace

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.run_state import seal_state
from sayso.core.records.suspensions import Origin, ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from sayso.errors import IdempotencyConflict, NotFound
from service.assembly import assemble
from service.core.desk.suspending import Foreign
from service.core.store.runs.runs import Run
from service.core.wiring import Wiring
from tests.builders import REFUND, run_ref

CALL = ExternalCall(ToolCall(call_id="c0", index=0, name="refund", args={"order": "A", "amount": 5}), REFUND)
DEARER = replace(CALL, call=CALL.call.model_copy(update={"args": {"order": "A", "amount": 6}}))
POLL, WORKER = ResumeSpec(mode="poll"), ResumeSpec(mode="worker")
FOREIGN = Foreign(Origin(framework="aap"), seal_state(b"{}"))
FITTED = Foreign(Origin(framework="aap"), seal_state(b"{}"), fit=lambda asked: asked)


async def put(
    wiring: Wiring,
    spec: ResumeSpec,
    *,
    key: str | None = "k",
    request: str = "the same",
    foreign: Foreign | None = None,
) -> SuspensionRecord:
    asked = await wiring.desk.suspend(run_ref(), (CALL,), spec, key=key, request=request, foreign=foreign)
    return asked.record


async def test_a_poll_with_a_key_is_one_suspension_for_good_and_for_one_request(wiring: Wiring) -> None:
    first = await put(wiring, POLL)
    assert (await put(wiring, POLL)).id == first.id
    assert first.run.request_id is not None
    with pytest.raises(IdempotencyConflict, match=r"args\.amount differs"):
        await wiring.desk.suspend(run_ref(), (DEARER,), POLL, key="k", request="another")
    assert (await put(wiring, POLL, key="l")).id != first.id
    keys = [key async for key in wiring.desk.suspensions._redis.scan_iter("*:idem:*")]
    assert keys == [], "its id is its key"


async def test_another_request_for_the_same_call_withdraws_the_open_item(wiring: Wiring) -> None:
    first = await put(wiring, POLL)
    second = await put(wiring, POLL, request="another")
    assert (second.previous_id, second.status, second.run.id) == (first.id, "pending", first.run.id)
    before = (await wiring.desk.suspensions.read(first.id)).record
    assert (before.status, before.following_id) == ("cancelled", second.id)
    assert (await put(wiring, POLL, request="another")).id == second.id
    run = await wiring.runs.read(first.run.id)
    assert (run.status, run.suspension_id) == ("suspended", second.id)
    assert await wiring.runs.inbox() == [second.id]


@pytest.mark.parametrize(
    ("spec", "key", "foreign"),
    [(WORKER, "k", None), (POLL, None, None), (POLL, "k", FOREIGN)],
    ids=["run by a worker", "without a key", "of another protocol"],
)
async def test_no_other_is_named_by_its_key(
    wiring: Wiring, spec: ResumeSpec, key: str | None, foreign: Foreign | None
) -> None:
    named = await put(wiring, POLL)
    other = await put(wiring, spec, key=key, foreign=foreign)
    assert other.id != named.id
    assert other.run.request_id != named.run.request_id
    kept = [one async for one in wiring.desk.suspensions._redis.scan_iter("*:idem:*")]
    assert len(kept) == (key is not None)


@pytest.mark.parametrize(
    ("foreign", "kept"), [(None, True), (FOREIGN, True), (FITTED, False)], ids=["ours", "theirs", "fitted"]
)
async def test_what_a_tool_is_is_kept_but_for_what_was_made_to_fit(
    wiring: Wiring, foreign: Foreign | None, kept: bool
) -> None:
    await put(wiring, WORKER, foreign=foreign)
    assert (await wiring.runs.definition(REFUND.digest) is not None) == kept
    run = (await wiring.runs.list_runs())[0]
    assert isinstance(run, Run)
    assert run.status == "suspended"


async def test_what_was_asked_without_a_key_twice_is_asked_twice(wiring: Wiring) -> None:
    first, second = [await put(wiring, WORKER, key=None) for _ in range(2)]
    assert first.id != second.id
    with pytest.raises(NotFound):
        async with assemble(wiring.settings.model_copy(update={"tenant": "another"})) as other:
            await other.desk.suspensions.read(first.id)
