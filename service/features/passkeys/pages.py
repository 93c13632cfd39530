"""The pages of passkeys: one's own, another person's for admins, and signing in with one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from sayso.core.clock import new_secret
from sayso.core.text.language import _, mark
from sayso.errors import InvalidInput, NotFound
from service.core.auth.hosts import origin_of
from service.core.settings import Settings
from service.core.wiring import Wiring
from service.edge.web.additions import DecisionForm, DecisionPart, ItemPage
from service.edge.web.items import read_form as read_decision
from service.edge.web.pages import receive, show, show_again
from service.edge.web.sessions import (
    RecordedRoute,
    SignedIn,
    process_of,
    read_form,
    read_post,
    safe_next,
    set_cookie,
    set_session,
    wiring_of,
)
from service.edge.web.sign_ins import close_session, show_sign_in
from service.features.passkeys import deciding
from service.features.passkeys.accounts import LONGEST_NAME, PasskeyAccounts
from service.features.passkeys.ceremonies import find_party
from service.features.passkeys.store import ANSWERED_WITHIN_MS

PATH = "/me/passkeys"
_PAGE = "pages/passkeys.html"
_DONE = {
    "add": mark("The passkey is added. You can sign in with it."),
    "name": mark("The name is saved."),
    "remove": mark("The passkey is removed, and the sessions that it opened have ended."),
}

router = APIRouter(route_class=RecordedRoute)


@router.get(PATH)
async def read(request: Request, visitor: SignedIn, done: str = "") -> Response:
    """Show the visitor's passkeys."""
    return await show(request, visitor, _PAGE, **await _gather(request, visitor.name), done=_DONE.get(done, ""))


@router.post(f"{PATH}/options")
async def begin(request: Request, visitor: SignedIn) -> Response:
    """Return the options with which the browser makes a passkey."""
    _speak_json(request)
    await read_post(request, visitor)
    return JSONResponse(await _accounts(request).begin_adding(visitor.principal, visitor.token))


@router.post(PATH)
async def change(request: Request, visitor: SignedIn) -> Response:
    """Add, name or remove a passkey of the visitor."""
    accounts = _accounts(request)
    async with receive(request, visitor, _PAGE, lambda _post: _gather(request, visitor.name)) as post:
        act = post.get("act", "")
        if act == "add":
            await accounts.add(visitor.principal, visitor.token, post.get("name", ""), post.get("signed", ""))
        elif act == "name":
            await accounts.rename(visitor.name, post.get("which", ""), post.get("name", ""))
        elif act == "remove":
            await accounts.remove(visitor.name, post.get("which", ""))
        else:
            raise InvalidInput(_("The form names no known action. Open the page again and send it from there."))
    return RedirectResponse(f"{PATH}?done={act}", 303)


@router.get("/people/{name}/passkeys")
async def read_of(request: Request, visitor: SignedIn, name: str, done: str = "") -> Response:
    """Show the passkeys of a person."""
    return await show(request, visitor, _PAGE, **await _gather_of(request, name), done=_DONE.get(done, ""))


@router.post("/people/{name}/passkeys")
async def remove_of(request: Request, visitor: SignedIn, name: str) -> Response:
    """Remove a passkey of a person."""
    async with receive(request, visitor, _PAGE, lambda _post: _gather_of(request, name)) as post:
        await _accounts(request).remove_of(visitor.principal, name, post.get("which", ""))
    return RedirectResponse(f"/people/{name}/passkeys?done=remove", 303)


@router.post("/items/{suspension_id}/{item_id}/sign")
async def begin_deciding(request: Request, visitor: SignedIn, suspension_id: str, item_id: str) -> Response:
    """Return the options with which the visitor's passkey signs the decision of the item's form."""
    _speak_json(request)
    form = await read_decision(request, visitor, suspension_id, item_id, await read_post(request, visitor))
    return JSONResponse(await deciding.begin_deciding(form.wiring, visitor.name, form.decision))


@router.post("/sign-in/-/passkey/options")
async def begin_sign_in(request: Request) -> Response:
    """Return the options with which the browser signs in."""
    _speak_json(request)
    await read_form(request)
    browser = _read_browser(request) or new_secret()
    response = JSONResponse(await _accounts(request).begin_sign_in(browser, origin_of(request)))
    settings = process_of(request).settings
    set_cookie(response, settings, _cookie_name(settings), browser, ANSWERED_WITHIN_MS // 1000)
    return response


@router.post("/sign-in/-/passkey")
async def sign_in(request: Request) -> Response:
    """Open a session for the person whose passkey the browser used."""
    post = await read_form(request)
    place = safe_next(post.get("next"))
    show_again(request, lambda problem: show_sign_in(request, place, sentence=problem.detail, problem=problem))
    opened = await _accounts(request).sign_in(post.get("signed", ""), _read_browser(request), origin_of(request))
    await close_session(request)
    response = RedirectResponse(place, 303)
    set_session(response, process_of(request).settings, opened.token)
    return response


async def _preview_nothing(_form: DecisionForm) -> Mapping[str, object]:
    return {}


SIGNING = DecisionPart(asks=lambda _post: False, preview=_preview_nothing, complete=deciding.complete)
"""The part of a decision's form that holds what a passkey signed."""


class Proofs(NamedTuple):
    """Whether a person has an authenticator app, and any passkey."""

    code: bool
    passkey: bool


async def add_to_item(page: ItemPage) -> Mapping[str, object]:
    """Return with what its reader can approve an item that needs more than a session."""
    if page.item.terms.step_up is None:
        return {}
    person = await page.wiring.reviewers.find(page.person)
    passkeys = await page.wiring.feature(PasskeyAccounts).list_of(page.person)
    return {"proofs": Proofs(person is not None and person.app is not None, bool(passkeys))}


def add_to_sign_in(wiring: Wiring) -> Mapping[str, Any]:
    """Return whether the page offers to sign in with a passkey."""
    return {"passkeys": wiring.feature(PasskeyAccounts).is_open()}


def _speak_json(request: Request) -> None:
    """Answer the next error of this request to a script."""
    show_again(request, lambda problem: JSONResponse({"detail": problem.detail}, problem.status))


def _accounts(request: Request) -> PasskeyAccounts:
    return process_of(request).wiring.feature(PasskeyAccounts)


async def _gather(request: Request, name: str) -> dict[str, Any]:
    return {
        "title": _("Passkeys"),
        "person": "",
        "passkeys": await _accounts(request).list_of(name),
        "longest": LONGEST_NAME,
        "usable": find_party(process_of(request).settings) is not None,
    }


async def _gather_of(request: Request, name: str) -> dict[str, Any]:
    if await wiring_of(request).reviewers.find(name) is None:
        raise NotFound(_("There is no person of this name."))
    title = _("Passkeys of %(who)s", who=name)
    return {**await _gather(request, name), "title": title, "person": name}


def _cookie_name(settings: Settings) -> str:
    return "__Host-sayso-passkey" if settings.secure_cookies else f"sayso_passkey_{settings.port}"


def _read_browser(request: Request) -> str:
    return request.cookies.get(_cookie_name(process_of(request).settings), "")[:200]
