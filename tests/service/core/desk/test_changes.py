"""New versions of a call: which item each revises, until when, and in which thread."""

from typing import Any

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.decisions import DecisionRequest
from sayso.core.records.envelopes import ChangeRequest, Revision
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall, ToolDefinition
from sayso.errors import InvalidInput
from service.core.wiring import Wiring
from tests.builders import person, run_ref

NO_PARAMETERS: dict[str, Any] = {}


async def request_refund(
    wiring: Wiring, amount: float, thread: str = "t1", owner: str = "demo", revises: str = ""
) -> SuspensionRecord:
    call = ToolCall(call_id="c1", index=0, name="refund", args={"order": "A-1", "amount": amount})
    definition = ToolDefinition(name="refund", description="Pay back.", parameters=NO_PARAMETERS)
    asked = await wiring.desk.suspend(
        run_ref(owner, **({"thread_id": thread} if thread else {})),
        [ExternalCall(call, definition, revises=revises)],
        ResumeSpec(mode="poll"),
    )
    return asked.record


async def deny(wiring: Wiring, record: SuspensionRecord, *, changes: bool = True) -> None:
    wanted = ChangeRequest(paths=("args.amount",)) if changes else None
    request = DecisionRequest(action="deny", digest=record.items[0].digest, message="Less.", changes=wanted)
    await wiring.desk.decide(record.id, "i1", request, person("anna"))


def revised(record: SuspensionRecord) -> Revision | None:
    return record.items[0].revises


async def test_next_call_of_the_tool_is_a_new_version(wiring: Wiring) -> None:
    first = await request_refund(wiring, 300)
    assert revised(first) is None
    await deny(wiring, first)
    second = await request_refund(wiring, 200)
    assert revised(second) == Revision(suspension_id=first.id, item_id="i1", round=1)
    await deny(wiring, second)
    third = await request_refund(wiring, 100)
    assert revised(third) == Revision(suspension_id=second.id, item_id="i1", round=2)
    await wiring.desk.decide(
        third.id, "i1", DecisionRequest(action="approve", digest=third.items[0].digest), person("anna")
    )
    assert revised(await request_refund(wiring, 50)) is None


async def test_plain_denial_ends_the_rounds(wiring: Wiring) -> None:
    first = await request_refund(wiring, 300)
    await deny(wiring, first)
    second = await request_refund(wiring, 200)
    await deny(wiring, second, changes=False)
    assert revised(await request_refund(wiring, 100)) is None


async def test_other_threads_and_owners_revise_nothing(wiring: Wiring) -> None:
    await deny(wiring, await request_refund(wiring, 300))
    assert revised(await request_refund(wiring, 200, thread="t2")) is None
    assert revised(await request_refund(wiring, 200, owner="other")) is None


async def test_call_without_a_thread_names_what_it_revises(wiring: Wiring) -> None:
    first = await request_refund(wiring, 300, thread="")
    await deny(wiring, first)
    assert revised(await request_refund(wiring, 250, thread="")) is None
    second = await request_refund(wiring, 200, thread="", revises=f"{first.id}/i1")
    assert revised(second) == Revision(suspension_id=first.id, item_id="i1", round=1)
    for owner, place in (("other", f"{first.id}/i1"), ("demo", f"{second.id}/i1"), ("demo", "sus_0/i1")):
        with pytest.raises(InvalidInput, match="requested changes"):
            await request_refund(wiring, 100, thread="", owner=owner, revises=place)
