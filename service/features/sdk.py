"""The SDK from the desk itself: a package index at `/sdk/` (PEP 503), one for npm, the page about documentation."""

import sys
from base64 import b64encode
from functools import cache
from hashlib import sha256, sha512
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from sayso import __version__
from sayso.core.packages import install_command
from sayso.core.text.language import _
from sayso.errors import NotAuthenticated, NotFound
from service.core.settings import CHECKOUT, IS_INSTALLED
from service.edge.web.pages import render, show
from service.edge.web.sessions import find_visitor, process_of

router = APIRouter()
_FOLDER = CHECKOUT.parent / "sdk" if IS_INSTALLED else Path(sys.prefix) / "sdk"
_DOCS = "pages/docs.html"
_PAGE = '<!doctype html><html lang="en"><title>Packages</title><body>{link}</body></html>'
_PYTHON = "&gt;=3.11"


CLIENT = "@sayso/client"
"""The name of the TypeScript client at npm."""


@cache
def _read_file(place: Path) -> tuple[str, bytes]:
    return place.name, place.read_bytes()


def find_wheel() -> tuple[str, bytes]:
    """Return the name and the bytes of the SDK's wheel. Raises `NotFound` where it was not built."""
    for wheel in _FOLDER.glob(f"sayso-{__version__}-*.whl"):
        return _read_file(wheel)
    raise NotFound("This desk has no wheel of its SDK. `make up` builds it; the package sayso-server has it.")


def find_tarball() -> tuple[str, bytes]:
    """Return the name and the bytes of the TypeScript client. Raises `NotFound` where it was not built."""
    place = _FOLDER / f"sayso-client-{__version__}.tgz"
    if not place.is_file():
        raise NotFound(f"This desk has no {CLIENT}. `make up` builds it with npm and Node.js 20.")
    return _read_file(place)


def npm_command(url: str) -> str:
    """Return the command that installs the TypeScript client from the desk at `url`."""
    return f"npm install {CLIENT} --@sayso:registry={url.rstrip('/')}/sdk/npm/"


@router.get("/sdk/")
def list_packages() -> HTMLResponse:
    """Return the index: one package."""
    return HTMLResponse(_PAGE.format(link='<a href="/sdk/sayso/">sayso</a>'))


@router.get("/sdk/sayso/")
def list_wheels() -> HTMLResponse:
    """Return the links of the package: one wheel, with its hash."""
    name, content = find_wheel()
    place = f"/sdk/files/{name}#sha256={sha256(content).hexdigest()}"
    link = f'<a href="{place}" data-requires-python="{_PYTHON}">{name}</a>'
    return HTMLResponse(_PAGE.format(link=link))


@router.get(f"/sdk/npm/{CLIENT}")
def describe_client(request: Request) -> JSONResponse:
    """Return what npm reads of a package: one version, its file and the hash of that."""
    name, content = find_tarball()
    place = f"{process_of(request).settings.public_url.rstrip('/')}/sdk/files/{name}"
    package = {
        "name": CLIENT,
        "version": __version__,
        "engines": {"node": ">=20"},
        "dist": {"tarball": place, "integrity": f"sha512-{b64encode(sha512(content).digest()).decode()}"},
    }
    return JSONResponse({"name": CLIENT, "dist-tags": {"latest": __version__}, "versions": {__version__: package}})


@router.get("/sdk/files/{file}")
def send_file(file: str) -> Response:
    """Return the wheel or the TypeScript client."""
    known, content = find_tarball() if file.endswith(".tgz") else find_wheel()
    if file != known:
        raise NotFound(f"There is no file {file!r}. The desk has {known}.")
    return Response(content, media_type="application/octet-stream")


@router.get("/docs")
async def show_docs(request: Request) -> Response:
    """Show where the documentation is, to anybody."""
    url, title = process_of(request).settings.public_url, _("Documentation")
    install, npm = install_command("", url), npm_command(url)
    try:
        visitor = await find_visitor(request)
    except NotAuthenticated:
        return render(request, _DOCS, title=title, install=install, npm=npm)
    return await show(request, visitor, _DOCS, title=title, install=install, npm=npm)
