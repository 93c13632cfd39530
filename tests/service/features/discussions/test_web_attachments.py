"""Attached files on the item's page: shown apart by their sender, and served so that nothing in them runs."""

import base64
from collections.abc import Callable
from functools import partial

import pytest
from playwright.sync_api import Page, expect

from sayso.core.records.decisions import Actor, ActorKind
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.features.discussions.discussing import attach
from service.features.discussions.store import Attachments
from tests.builders import person
from tests.service.edge.web.reading import unfold
from tests.service.edge.web.sites import CSRF, OWN, Site, visit
from tests.service.edge.web.stories import asked, place_of
from tests.service.edge.web.test_gallery import check_page

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
HTML = b"<html><script>alert(document.domain)</script>hello \xe2\x80\xae</html>"
AGENT = Actor(id="demo", kind=ActorKind.AGENT)


@pytest.mark.parametrize(
    ("content", "media_type", "disposition"),
    [
        (PNG, "image/png", 'inline; filename="a_b_.html"'),
        (HTML, "text/plain; charset=utf-8", 'attachment; filename="a_b_.html"'),
        (b"<svg onload=alert(1)>", "text/plain; charset=utf-8", 'attachment; filename="a_b_.html"'),
        (b"%PDF-1.7", "application/pdf", 'attachment; filename="a_b_.html"'),
    ],
)
async def test_file_is_served_in_a_sandbox(
    settings: Settings, content: bytes, media_type: str, disposition: str
) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        file = await attach(anna.wiring, record.id, "i1", 'a"b\u202e.html', content, AGENT)
        response = await anna.client.get(f"{place_of(record)}/attachments/{file.id}")
        assert (response.status_code, response.content) == (200, content)
        assert response.headers["content-type"] == media_type
        assert response.headers["content-disposition"] == disposition
        assert response.headers.get_list("content-security-policy") == [
            "default-src 'none'; sandbox; frame-ancestors 'none'"
        ]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        await anna.read(f"{place_of(record)}/attachments/att_none", 404)
    async with visit(settings, None) as guest:
        assert (await guest.client.get(f"{place_of(record)}/attachments/{file.id}")).status_code == 303


async def test_page_shows_texts_with_signs_and_never_as_markup(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        file = await attach(anna.wiring, record.id, "i1", "page.html", HTML, AGENT)
        page = await anna.read(place_of(record))
        assert "The agent says · not checked: attached files" in page
        assert "&lt;script&gt;alert(document.domain)&lt;/script&gt;" in page
        assert "\u202e" not in page
        assert file.sha256 in page
        assert "<img" not in page


async def test_form_attaches_a_file_of_this_session_once(settings: Settings) -> None:
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        place = f"{place_of(record)}/attachments"
        files = {"file": ("receipt.png", PNG, "text/html")}
        for _ in range(2):
            sent = await anna.client.post(place, data={"csrf": CSRF}, files=files, headers=OWN)
            assert sent.headers["location"] == f"{place_of(record)}#files"
        (file,) = await anna.wiring.part(Attachments).list_all(record.run.id, record.id, "i1")
        assert (file.author, file.author_kind, file.media_type) == ("anna", "human", "image/png")
        assert (await anna.client.post(place, data={"csrf": "x"}, files=files, headers=OWN)).status_code == 403
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert (await anna.client.post(place, data={"csrf": CSRF}, files=files, headers=foreign)).status_code == 403
        assert "Choose a file" in (await anna.client.post(place, files={"csrf": (None, CSRF)}, headers=OWN)).text
        assert "multipart" in await anna.send(place, 422)
        large = {"file": ("x.txt", b"x" * 2_000_000)}
        assert (await anna.client.post(place, data={"csrf": CSRF}, files=large, headers=OWN)).status_code == 413


async def _attach(wiring: Wiring, suspension_id: str) -> None:
    await attach(wiring, suspension_id, "i1", "photo.png", PNG, AGENT)
    await attach(wiring, suspension_id, "i1", "log.txt", b"line\n" * 2_000, AGENT)
    await attach(wiring, suspension_id, "i1", "our own.txt", b"Seen in our log.", person("ben"))


def test_files_appear_on_an_open_page(site: Site, open_as: Callable[..., Page]) -> None:
    record = site.act(asked)
    page = open_as(place_of(record))
    site.act(partial(_attach, suspension_id=record.id))
    unfold(page, "attached files")
    unfold(page, "Files of reviewers")
    image = page.locator("#agent-files img")
    image.scroll_into_view_if_needed()
    expect(image).to_have_js_property("naturalWidth", 1)
    expect(page.locator("#file-list")).to_contain_text("our own.txt")
    page.get_by_text("First lines").click()
    check_page(page, "item with files")
    page.get_by_label("Image, PDF or text").set_input_files({"name": "mine.txt", "mimeType": "x/y", "buffer": b"Mine"})
    page.get_by_role("button", name="Attach").click()
    expect(page.locator("#file-list")).to_contain_text("mine.txt")


async def test_image_that_claims_billions_of_pixels_is_not_shown(settings: Settings) -> None:
    bomb = PNG[:16] + (60_000).to_bytes(4, "big") * 2 + PNG[24:]
    async with visit(settings) as anna:
        record = await asked(anna.wiring)
        file = await attach(anna.wiring, record.id, "i1", "bomb.png", bomb, AGENT)
        page = await anna.read(place_of(record))
        assert ("bomb.png" in page, "<img" in page) == (True, False)
        response = await anna.client.get(f"{place_of(record)}/attachments/{file.id}")
        assert response.headers["content-type"] == "application/octet-stream"
        assert response.headers["content-disposition"].startswith("attachment")
