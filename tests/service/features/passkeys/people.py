"""People with passkeys, as their browsers send forms."""

from typing import Any

from httpx import Response

from service.core.store.activity import Activity
from tests.fakes.authenticator import Authenticator
from tests.service.edge.web.sites import CSRF, OWN, Visit

ADDING, OPTIONS = "/me/passkeys", "/me/passkeys/options"
SIGN_IN, SIGN_IN_OPTIONS = "/sign-in/-/passkey", "/sign-in/-/passkey/options"


async def read_options(visit: Visit, place: str = OPTIONS, status: int = 200) -> Any:
    answer = await visit.client.post(place, data={"csrf": CSRF}, headers=OWN)
    assert answer.status_code == status, answer.text
    return answer.json()


async def add_passkey(visit: Visit, name: str = "Phone", **fields: Any) -> Authenticator:
    """Add a passkey for the visitor."""
    device = Authenticator(origin=visit.wiring.settings.public_url, **fields)
    answer = device.make(await read_options(visit))
    assert await visit.send(ADDING, act="add", name=name, answer=answer) == "/me/passkeys?done=add"
    return device


async def sign_in(visit: Visit, device: Authenticator, place: str = "/", **changed: str) -> Response:
    """Sign in with a passkey, with parts of the assertion changed."""
    answer = device.use(await read_options(visit, SIGN_IN_OPTIONS), **changed)
    return await visit.client.post(SIGN_IN, data={"next": place, "answer": answer}, headers=OWN)


async def read_name(visit: Visit) -> str | None:
    """Return who is signed in."""
    page = await visit.client.get("/me")
    return page.text.split("Signed in as ")[1].split(":")[0].strip() if page.status_code == 200 else None


async def read_log(visit: Visit) -> list[Activity]:
    return (await visit.wiring.activity.read_page(0, 100)).entries
