from sayso.core.records.events import Event, EventType
from service.core.settings import Settings
from service.edge.web.content.facts import read_trail
from tests.service.edge.web.sites import visit
from tests.service.edge.web.stories import begin, make_ask, pause


async def test_page_shows_a_long_trail_to_its_end(settings: Settings) -> None:
    warnings = [Event(type=EventType.WARNING, data={"message": f"warning {place}."}) for place in range(1200)]
    async with visit(settings) as anna:
        record = await pause(anna.wiring, await begin(anna.wiring), [make_ask()], others=warnings)
        entries = await read_trail(anna.wiring.runs, record.run.id)
        assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
        page = await anna.read(f"/items/{record.id}/i1")
        assert "warning 0." in page
        assert "warning 1199." in page
        assert "Waiting for a decision on refund_payment" in page
