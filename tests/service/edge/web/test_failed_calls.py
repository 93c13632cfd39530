"""A call that was approved and failed is shown as failed wherever it is shown; nothing about it is green."""

import re

from sayso.core.records.suspensions import SuspensionRecord
from service.core.settings import Settings
from tests.service.edge.web.sites import Visit, visit
from tests.service.edge.web.stories import asked, decide, finish, make_ask, place_of

ERROR = "payment provider answered 502"
GREEN = re.compile(r'class="(?:state|panel receipt) (?:approved|answered|completed)"')


async def fail_refund(anna: Visit) -> SuspensionRecord:
    """A refund that was approved, failed, and whose run ended as it should."""
    record = await decide(anna.wiring, await asked(anna.wiring, title="Broken cup"), "approve")
    return await finish(anna.wiring, record, error=ERROR)


async def test_receipt_of_a_failed_call_shows_the_error(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.read(place_of(await fail_refund(anna)))
        assert f'<h2 id="receipt-h">Failed: {ERROR}</h2>' in page
        assert "<p>ben approved this.</p>" in page
        assert 'class="panel receipt failed"' in page
        assert "call failed" in page
        assert not GREEN.search(page)


async def test_lists_and_run_page_show_a_failed_call(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await fail_refund(anna)
        for place in ("/history", "/runs", f"/runs/{record.run.id}"):
            page = await anna.read(place)
            assert not GREEN.search(page), place
            assert re.search(r'class="state (?:call_)?failed"', page), place
        assert "refund_payment" in await anna.read("/history?verdict=failed")
        assert "Nothing matches." in await anna.read("/history?verdict=approved")


async def test_approved_call_of_a_cancelled_run_is_cancelled(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await decide(anna.wiring, await asked(anna.wiring, make_ask(), make_ask(index=1)), "approve")
        await anna.send(f"/runs/{record.run.id}/cancel")
        page = await anna.read(place_of(record))
        assert "The run was cancelled before this call ran" in page
        assert not GREEN.search(page)
