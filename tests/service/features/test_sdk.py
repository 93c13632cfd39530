"""The desk's package index: who may read it, what it links, and what a program like pip makes of it."""

import base64
import hashlib
import subprocess
import sys
from pathlib import Path
from urllib.parse import urljoin
from zipfile import ZipFile

import pytest

from sayso import __version__
from service.core.settings import Settings
from service.features.sdk import find_wheel
from tests.service.edge.web.sites import serve, visit

WHEEL = f"sayso-{__version__}-py3-none-any.whl"

pytestmark = pytest.mark.usefixtures("sdk_wheel")


async def test_index_leads_strangers_to_the_wheel_and_its_hash(settings: Settings) -> None:
    async with visit(settings, name=None) as stranger:
        assert '<a href="/sdk/sayso/">sayso</a>' in await stranger.read("/sdk/")
        page = await stranger.read("/sdk/sayso/")
        href = page.partition('href="')[2].partition('"')[0]
        assert (page.count("<a "), 'data-requires-python="&gt;=3.11"' in page) == (1, True)
        sent = await stranger.client.get(urljoin("/sdk/sayso/", href.partition("#")[0]))
    assert href.startswith(f"/sdk/files/{WHEEL}#sha256=")
    assert hashlib.sha256(sent.content).hexdigest() == href.rpartition("=")[2]
    assert sent.headers["content-type"] == "application/octet-stream"


async def test_index_answers_briefly_about_other_packages_and_files(settings: Settings) -> None:
    async with visit(settings, name=None) as stranger:
        for place in ("/sdk/pydantic/", "/sdk/files/sayso-9-py3-none-any.whl", "/sdk/files/..%2f..%2fpyvenv.cfg"):
            response = await stranger.client.get(place)
            assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json"), place
        assert f"The desk has {WHEEL}." in (await stranger.client.get("/sdk/files/other.whl")).json()["detail"]


@pytest.mark.parametrize("name", ["anna", None])
async def test_docs_lead_on_with_and_without_a_sign_in(settings: Settings, name: str | None) -> None:
    async with visit(settings, name) as somebody:
        page = await somebody.read("/docs")
    assert f'id="install">pip install --extra-index-url {settings.public_url}/sdk/ sayso</pre>' in page
    assert (
        f'id="install-client">npm install @sayso/client --@sayso:registry={settings.public_url}/sdk/npm/</pre>' in page
    )
    assert '<a href="/api/openapi.json">' in page
    assert ('<a href="/sign-in">' in page, '<a href="/">Back to the inbox</a>' in page) == (name is None, bool(name))


async def test_registry_describes_the_client_or_says_how_to_build_it(settings: Settings) -> None:
    """`tests/typescript` installs it with npm."""
    tarball = Path(sys.prefix) / "sdk" / f"sayso-client-{__version__}.tgz"
    async with visit(settings, name=None) as stranger:
        described = await stranger.client.get("/sdk/npm/@sayso%2fclient")
        sent = await stranger.client.get(f"/sdk/files/{tarball.name}")
        assert (await stranger.client.get("/sdk/npm/@sayso%2fother")).status_code == 404
    if not tarball.is_file():
        assert [answer.status_code for answer in (described, sent)] == [404, 404]
        assert "`make up` builds it with npm and Node.js 20" in described.json()["detail"]
        return
    dist = described.json()["versions"][described.json()["dist-tags"]["latest"]]["dist"]
    digest = base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    place = f"{settings.public_url}/sdk/files/{tarball.name}"
    assert (dist, sent.content) == ({"tarball": place, "integrity": f"sha512-{digest}"}, tarball.read_bytes())


def test_indexed_wheel_is_the_sdk_of_this_version(sdk_wheel: Path) -> None:
    name, content = find_wheel()
    assert (name, content) == (WHEEL, sdk_wheel.read_bytes())
    with ZipFile(sdk_wheel) as archive:
        assert f"\nVersion: {__version__}\n" in archive.read(f"sayso-{__version__}.dist-info/METADATA").decode()


@pytest.mark.parametrize("program", ["pip", "uv"])
def test_wheel_is_downloaded_with_the_command_that_pages_show(settings: Settings, tmp_path: Path, program: str) -> None:
    target = ["--target", str(tmp_path / "taken")]
    pip = [sys.executable, "-m", "pip"] if program == "pip" else [str(Path(sys.executable).with_name("uv")), "pip"]
    with serve(settings) as site:
        command = [*pip, "install", "--no-deps", "--quiet", *target, "--index-url", f"{site.url}/sdk/", "sayso"]
        subprocess.run(command, check=True, cwd=tmp_path)
    assert (tmp_path / "taken" / "sayso" / "__init__.py").is_file()
