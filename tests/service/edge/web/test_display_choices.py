"""Theme, density and single keys are kept in a cookie; anything else in it is the default."""

from typing import Any

import pytest

from service.core.settings import Settings
from service.edge.web.pages import DISPLAY_COOKIE
from tests.service.edge.web.sites import visit


async def test_display_choices_apply_to_every_page(settings: Settings) -> None:
    async with visit(settings) as anna:
        assert '<html lang="en">' in await anna.read("/")
        form: dict[str, Any] = {"theme": "dark", "density": "compact", "keys": "off"}
        assert await anna.send("/me/display", **form) == "/me?done=display"
        begins = '<html lang="en" data-theme="dark" data-density="compact" data-keys="off">'
        for place in ("/", "/runs", "/me?done=display"):
            page = await anna.read(place)
            assert begins in page
            assert '<meta name="color-scheme" content="dark">' in page
        await anna.send("/me/display", 403, theme="light", csrf="x")
        await anna.send("/me/display", language="de")
        assert '<html lang="de">' in await anna.read("/me")
        await anna.send("/me/display")
        assert '<html lang="en">' in await anna.read("/")


@pytest.mark.parametrize("kept", ["", "dark", "..", "<b>.<b>.<b>", "x.y.z.w", 'dark" onload="x'])
async def test_unknown_display_choice_is_the_default(settings: Settings, kept: str) -> None:
    async with visit(settings, None) as guest:
        page = (await guest.client.get("/sign-in", headers={"Cookie": f"{DISPLAY_COOKIE}={kept}"})).text
        assert page.startswith('<!doctype html>\n<html lang="en"')
        assert page.count("data-theme") == (kept == "dark")
        assert "onload" not in page
        assert "data-density" not in page
