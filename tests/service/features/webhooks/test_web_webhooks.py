"""The webhooks page: endpoints, failed messages and senders, for admins."""

import re
from pathlib import Path

import pytest

from benchmarks.channels.receivers import serving
from sayso.core.records.events import WebhookEvent
from service.core.settings import Settings
from service.features.webhooks.store import Endpoints, Senders
from tests.builders import make_pending
from tests.receivers import deliver_events
from tests.service.edge.web.sites import visit
from tests.service.edge.web.test_freezes import make_admin

EVERY = {f"event:{event}": "on" for event in WebhookEvent}


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.model_copy(update={"aap_allow_loopback": True})


async def test_endpoint_is_registered_verified_rotated_and_deleted(settings: Settings, certificate: Path) -> None:
    async with visit(settings) as anna, serving(str(certificate), ["well"]) as (program,):
        await make_admin(anna)
        assert "There are no endpoints." in await anna.read("/webhooks")
        page = await anna.send("/webhooks/endpoints", 200, url=program.url, **EVERY)
        assert len(re.findall(r"whsec_[\w+/=]{44}", page)) == 1
        assert "Not verified yet" in page
        assert "whsec_" not in await anna.read("/webhooks")
        (endpoint,) = await anna.wiring.part(Endpoints).list_all()
        place = f"/webhooks/endpoints/{endpoint.id}"
        assert await anna.send(place, act="verified") == "/webhooks?done=verified"
        assert "Active; all runs; every event" in await anna.read("/webhooks?done=verified")
        assert "whsec_" in await anna.send(place, 200, act="rotate")
        assert await anna.send(place, act="disable") == "/webhooks?done=disable"
        assert "Disabled by anna." in await anna.read("/webhooks")
        assert "Open the page again and send it from there" in await anna.send(place, 422, act="x")
        assert await anna.send(place, act="delete") == "/webhooks?done=delete"
        assert "There are no endpoints." in await anna.read("/webhooks")


async def test_refused_endpoint_shows_the_input_again(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        page = await anna.send("/webhooks/endpoints", 422, url="https://10.0.0.1/x", **EVERY)
        assert "10.0.0.1 is not a public address" in page
        assert 'value="https://10.0.0.1/x"' in page
        assert "Choose at least one event" in await anna.send("/webhooks/endpoints", 422, url="https://example.com")
        form = {"event:item.created": "on", "signature": "ed25519"}
        page = await anna.send("/webhooks/endpoints", 200, url="https://example.com/hook", **form)
        assert "whpk_" in page
        assert "whsk_" not in page


async def test_failed_messages_are_sent_again(settings: Settings, certificate: Path) -> None:
    async with visit(settings) as anna, serving(str(certificate), ["500"]) as (program,):
        await make_admin(anna)
        await anna.send("/webhooks/endpoints", 200, url=program.url, **EVERY)
        (endpoint,) = await anna.wiring.part(Endpoints).list_all()
        await anna.send(f"/webhooks/endpoints/{endpoint.id}", act="verified")
        await make_pending(anna.wiring)
        await deliver_events(anna.wiring)
        page = await anna.read("/webhooks")
        assert page.count("The receiver answered 500. 1 attempt,") == 2
        assert "Choose the messages to send again" in await anna.send("/webhooks/failures", 422, act="chosen")
        program.behaviour = "well"
        chosen, _ = map(str, re.findall(r'name="(message:[^"]+)"', page))
        form: dict[str, str] = {chosen: "on"}
        assert await anna.send("/webhooks/failures", 303, act="chosen", **form) == "/webhooks?done=again"
        await deliver_events(anna.wiring)
        assert (await anna.read("/webhooks")).count("The receiver answered 500.") == 1
        assert await anna.send("/webhooks/failures", act="all") == "/webhooks?done=again"
        await deliver_events(anna.wiring)
        assert "Every message was delivered." in await anna.read("/webhooks")


async def test_sender_is_registered_rotated_and_revoked(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        page = await anna.send("/webhooks/senders", 404, name="pager", reviewer="nobody")
        assert "no active reviewer named" in page
        assert 'value="pager"' in page
        assert "whsec_" in await anna.send("/webhooks/senders", 200, name="pager", reviewer="anna")
        (sender,) = await anna.wiring.part(Senders).list_all()
        assert f"/hooks/decisions/{sender.id}" in await anna.read("/webhooks")
        assert "whsec_" in await anna.send(f"/webhooks/senders/{sender.id}", 200, act="rotate")
        assert await anna.send(f"/webhooks/senders/{sender.id}", act="revoke") == "/webhooks?done=revoke"
        assert "There are no senders." in await anna.read("/webhooks")


async def test_webhooks_page_is_for_admins(settings: Settings) -> None:
    async with visit(settings) as anna:
        await anna.read("/webhooks", 403)
        assert "/webhooks" not in await anna.read("/")
        await anna.send("/webhooks/endpoints", 403, url="https://example.com/", **EVERY)
        await anna.send("/webhooks/senders", 403, name="x", reviewer="anna")
        await anna.send("/webhooks/failures", 403, act="all")
