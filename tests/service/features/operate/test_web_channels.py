"""The channels page shows channels without secrets, test cards, and previews side by side."""

import re
from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.service.edge.web.sites import settings_for, visit
from tests.service.edge.web.test_freezes import make_admin

CHANNELS = """\
channels:
  ops-mail:
    kind: mail
    host: mail.example
    sender: sayso@mail.example
    username: sayso
    password: p4ss-canary
  chat:
    kind: telegram
    bot_token: 123456:t0ken-canary-sample-0000
"""
RULES = """\
version: 1
default: request_approval
rules:
  - {id: refunds, tool: refund, action: request_approval, terms: {secrets: [token]}}
"""


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    """Settings with two channels and a rule."""
    channels = tmp_path / "channels.yaml"
    channels.write_text(CHANNELS)
    found = settings_for(clean_store_url, tmp_path, channels=str(channels))
    found.policy.write_text(RULES)
    return found


async def test_page_shows_channels_and_previews_without_secrets(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        code = await anna.wiring.contacts.create_code("anna", "chat")
        await anna.wiring.contacts.redeem_code("chat", code.code, "4711")
        page = await anna.read("/channels")
        for words in ("ops-mail", "mail.example", "set, hidden", "nobody yet", "Card on chat", "Card on ops-mail"):
            assert words in page
        assert "canary" not in page
        assert "4711" not in page
        shown = await anna.send("/channels", 200, rule="refunds", call='{"tool": "pay", "args": {"token": "s3cret"}}')
        acts = [entry.act for entry in (await anna.wiring.activity.read_page(0, 10)).entries]
        assert acts == ["contact_linked"], "a preview is no test"
        assert shown.count("[secret]") >= 2
        assert "incomplete" in shown


async def test_page_explains_a_malformed_call_and_a_missing_address(settings: Settings) -> None:
    async with visit(settings) as anna:
        await make_admin(anna)
        assert "is not strict JSON" in await anna.send("/channels", 422, rule="refunds", call="{")
        assert "There is no rule" in await anna.send("/channels", 404, rule="none", call='{"tool": "pay"}')
        assert "has no address on chat" in await anna.send("/channels", 422, test="chat", person="anna")


async def test_page_is_for_admins(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert "<h1>" in await anna.read("/channels", 403)
        assert "<h1>" in await anna.send("/channels", 403, rule="refunds", call="{}")


async def test_page_without_a_file_has_the_channel_to_browsers(clean_store_url: str, tmp_path: Path) -> None:
    async with visit(settings_for(clean_store_url, tmp_path)) as anna:
        await make_admin(anna)
        page = await anna.read("/channels")
        assert re.findall('<h2 id="c[0-9]+-h">([a-z]+) ', page) == ["push"]
