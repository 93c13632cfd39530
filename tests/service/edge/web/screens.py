"""Pictures of the pages for docs/screens: `make screens`."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, ViewportSize

from service.core.settings import CHECKOUT
from tests.browser import DESKTOP, PHONE
from tests.service.edge.web.sites import Site
from tests.service.edge.web.test_gallery import admin_gallery, gallery

FOLDER = CHECKOUT / "docs" / "screens"
PAGES = (
    "inbox",
    "open",
    "value",
    "quorum",
    "edited",
    "history",
    "insights",
    "rules",
    "rule",
    "trial",
    "run",
    "me",
    "groups",
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("device", "viewport"), [("phone", PHONE), ("desktop", DESKTOP)])
def test_pages_are_pictured(
    site: Site, open_as: Callable[..., Page], device: str, viewport: ViewportSize, scheme: str
) -> None:
    """Each page as it opens: what is below the screen is not in the picture."""
    places = site.act(gallery)
    page = open_as("/", viewport=viewport, color_scheme=scheme)
    FOLDER.mkdir(exist_ok=True)
    for name in PAGES:
        page.goto(places[name])
        picture = FOLDER / f"{name}-{device}-{scheme}.png"
        page.screenshot(path=picture)
        assert picture.stat().st_size > 1000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("device", "viewport"), [("phone", PHONE), ("desktop", DESKTOP)])
def test_pages_of_admins_are_pictured(
    site: Site, open_as: Callable[..., Page], device: str, viewport: ViewportSize, scheme: str
) -> None:
    places = site.act(admin_gallery)
    page = open_as("/operate", name="root", viewport=viewport, color_scheme=scheme)
    for name in ("operate", "people", "keys", "first steps"):
        page.goto(places[name])
        page.screenshot(path=FOLDER / f"{name.replace(' ', '-')}-{device}-{scheme}.png")
