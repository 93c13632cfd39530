"""The link that a waiting script prints opens the item's page."""

from urllib.parse import urlsplit

import pytest
from httpx import ASGITransport

from sayso import AsyncClient, Suspended, gate
from service.core.settings import Settings
from tests.builders import make_agent
from tests.service.edge.web.sites import visit


async def test_link_of_a_waiting_call_opens_its_page(settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    async with visit(settings) as anna:
        key, transport = await make_agent(anna.wiring, "bot"), ASGITransport(anna.app)
        async with AsyncClient(settings.public_url, key, transport=transport) as desk:
            with pytest.raises(Suspended) as waiting:
                async with gate("deploy", {"to": "prod"}, client=desk, wait_s=0.01):
                    raise AssertionError("nobody has approved it")
        link = str(waiting.value.facts["link"])
        assert link in waiting.value.message
        assert f"({link})" in capsys.readouterr().err
        assert link.startswith(f"{settings.public_url}/items/")
        assert "deploy" in await anna.read(urlsplit(link).path)
