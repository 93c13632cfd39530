"""Pages of a call that was asked again under its key: each leads to the other, and says what happened."""

from dataclasses import replace

import pytest

from sayso.core.policy.external import ExternalCall
from sayso.core.records.suspensions import ResumeSpec, SuspensionRecord
from sayso.core.records.tools import ToolCall
from service.core.settings import Settings
from service.core.wiring import Wiring
from tests.builders import run_ref
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import REFUND, REFUND_ARGS, decide, place_of

CALL = ExternalCall(ToolCall(call_id="c0", index=0, name=REFUND.name, args=REFUND_ARGS), REFUND)


async def ask(wiring: Wiring, description: str) -> SuspensionRecord:
    call = replace(CALL, definition=REFUND.model_copy(update={"description": description}))
    saved = await wiring.desk.suspend(run_ref(), (call,), ResumeSpec(mode="poll"), key="k", request=description)
    return saved.record


@pytest.mark.parametrize(
    ("approved", "sentence"),
    [(False, "Withdrawn, because it was asked again"), (True, "It was asked again before this call ran")],
)
async def test_pages_of_both_items_lead_to_each_other(settings: Settings, approved: bool, sentence: str) -> None:
    async with visit(settings) as anna:
        first = await ask(anna.wiring, "Pay a customer back.")
        if approved:
            await decide(anna.wiring, first, "approve")
        second = await ask(anna.wiring, "Pay a customer back at once.")
        page = await anna.read(place_of(first))
        assert f'<a href="{place_of(second)}">Asked again as another item</a>' in page
        assert sentence in page
        assert "The run was cancelled" not in page
        page = await anna.read(place_of(second))
        assert f'<a href="{place_of(first)}">Earlier item, which this one replaces</a>' in page
        assert "changed definition (description)" in page
        assert "Approve" in page
        run = await anna.read(f"/runs/{first.run.id}")
        assert run.count("changed definition (description)") >= 1
