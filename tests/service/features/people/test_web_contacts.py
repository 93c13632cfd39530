"""The channels on the account page."""

import re

from service.core.settings import Settings
from tests.service.edge.web.sites import visit


async def test_account_page_creates_a_code_and_unlinks(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "No address is linked." in await anna.read("/me")
        page = await anna.send("/me/contacts", 200, channel="telegram")
        (code,) = re.findall(r'class="one-time">(\w{8})<', page)
        await anna.wiring.contacts.redeem_code("telegram", code, "4711", "<b>anna</b>")
        page = await anna.read("/me")
        assert "&lt;b&gt;anna&lt;/b&gt;" in page
        assert code not in page
        (contact,) = await anna.wiring.contacts.list_of("anna")
        assert await anna.send("/me/contacts/unlink", which=contact.id) == "/me?done=contacts"
        assert "No address is linked." in await anna.read("/me?done=contacts")


async def test_account_page_shows_a_refused_channel(settings: Settings) -> None:
    async with visit(settings) as anna:
        page = await anna.send("/me/contacts", 422, channel="My Slack")
        assert 'value="My Slack"' in page
        await anna.send("/me/contacts/unlink", 404, which="con_none")
        await anna.send("/me/contacts", 403, channel="slack", csrf="x")
        await anna.send("/me/contacts/unlink", 403, which="con_none", csrf="x")
