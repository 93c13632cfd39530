"""The SDK from the desk itself, in a package index at `/sdk/` (PEP 503), and the page about documentation."""

import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse

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


@cache
def _read_wheel(place: Path) -> tuple[str, bytes]:
    return place.name, place.read_bytes()


def find_wheel() -> tuple[str, bytes]:
    """Return the name and the bytes of the SDK's wheel. Raises `NotFound` where it was not built."""
    for wheel in _FOLDER.glob(f"sayso-{__version__}-*.whl"):
        return _read_wheel(wheel)
    raise NotFound("This desk has no wheel of its SDK. `make up` builds it; the package sayso-server has it.")


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


@router.get("/sdk/files/{wheel}")
def send_wheel(wheel: str) -> Response:
    """Return the wheel."""
    known, content = find_wheel()
    if wheel != known:
        raise NotFound(f"There is no file {wheel!r}. The desk has {known}.")
    return Response(content, media_type="application/octet-stream")


@router.get("/docs")
async def show_docs(request: Request) -> Response:
    """Show where the documentation is, to anybody."""
    title, install = _("Documentation"), install_command("", process_of(request).settings.public_url)
    try:
        visitor = await find_visitor(request)
    except NotAuthenticated:
        return render(request, _DOCS, title=title, install=install)
    return await show(request, visitor, _DOCS, title=title, install=install)
