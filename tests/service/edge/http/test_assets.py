"""Static files: hashed URLs that browsers keep forever, and vendored files that are what their manifest says."""

import gzip
import json
import re
from hashlib import sha256

import pytest
from httpx import AsyncClient

from service.core.settings import CHECKOUT, Settings
from service.edge.http.assets import STATIC, asset
from tests.service.edge.web.sites import settings_for, visit

TEMPLATES = [*(CHECKOUT / "templates").rglob("*.html")]
VENDOR = STATIC / "vendor"
FOREVER = "public, max-age=31536000, immutable"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: object) -> Settings:
    return settings_for(clean_store_url, tmp_path)  # type: ignore[arg-type]


def test_templates_name_static_files_only_by_their_hash() -> None:
    names = [name for path in TEMPLATES for name in re.findall(r"asset\('([^']+)'\)", path.read_text())]
    assert "sayso.css" in names
    for name in names:
        assert re.fullmatch(rf"/static/{re.escape(name)}\?v=[0-9a-f]{{12}}", asset(name))
    assert [str(path) for path in TEMPLATES if "/static/" in path.read_text()] == []


def test_vendored_files_are_those_of_the_manifest() -> None:
    files = {path.name: path for path in VENDOR.glob("*") if path.name != "manifest.json"} if VENDOR.exists() else {}
    manifest = json.loads((VENDOR / "manifest.json").read_text()) if files else {}
    assert set(manifest) == set(files)
    for name, entry in manifest.items():
        assert entry["sha256"] == sha256(files[name].read_bytes()).hexdigest(), name
        assert entry["name"]
        assert entry["version"]
        assert entry["license"]
        assert entry["source"].startswith("https://")


async def read(client: AsyncClient, url: str, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """Return a response as it was sent, not unpacked."""
    async with client.stream("GET", url, headers=headers) as response:
        raw = b"".join([part async for part in response.aiter_raw()])
    return response.status_code, dict(response.headers), raw


async def test_hashed_urls_are_kept_forever_and_others_are_checked(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        for name, kind in (("sayso.css", "text/css"), ("live.js", "javascript"), ("favicon.svg", "image/svg+xml")):
            status, headers, raw = await read(guest.client, asset(name), **{"Accept-Encoding": "gzip"})
            assert (status, headers["cache-control"], headers["content-encoding"]) == (200, FOREVER, "gzip")
            assert kind in headers["content-type"]
            assert gzip.decompress(raw) == (STATIC / name).read_bytes()
        status, headers, raw = await read(guest.client, "/static/sayso.css?v=old", **{"Accept-Encoding": "identity"})
        assert (headers["cache-control"], raw) == ("no-cache", (STATIC / "sayso.css").read_bytes())
        assert "content-encoding" not in headers
        status, headers, raw = await read(guest.client, "/static/sayso.css", **{"If-None-Match": headers["etag"]})
        assert (status, raw) == (304, b"")


async def test_pictures_are_not_compressed_again(settings: Settings) -> None:
    async with visit(settings, None) as guest:
        _, headers, raw = await read(guest.client, asset("icon-192.png"), **{"Accept-Encoding": "gzip"})
        assert "content-encoding" not in headers
        assert raw == (STATIC / "icon-192.png").read_bytes()
        assert (await guest.client.get("/static/none.css")).status_code == 404


async def test_pages_are_compressed_for_clients_that_take_it(settings: Settings) -> None:
    async with visit(settings) as anna:
        _, headers, raw = await read(anna.client, "/", **{"Accept-Encoding": "br, gzip;q=0.5"})
        assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
        assert b"</html>" in gzip.decompress(raw)
        assert int(headers["content-length"]) == len(raw)
        _, headers, raw = await read(anna.client, "/", **{"Accept-Encoding": "gzip;q=0, identity"})
        assert "content-encoding" not in headers
        assert b"</html>" in raw
