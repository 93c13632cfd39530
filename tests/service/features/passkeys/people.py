"""People with passkeys, as their browsers send forms."""

from typing import Any

from httpx import Response

from sayso.core.records.decisions import Actor, DecisionRequest
from sayso.core.records.proofs import decode_base64url
from sayso.core.records.suspensions import SuspensionRecord
from service.core.store.activity import Activity
from service.features.passkeys.deciding import begin_deciding
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
    assert await visit.send(ADDING, act="add", name=name, signed=answer) == "/me/passkeys?done=add"
    return device


async def sign_in(visit: Visit, device: Authenticator, place: str = "/", **changed: str) -> Response:
    """Sign in with a passkey, with parts of the assertion changed."""
    answer = device.use(await read_options(visit, SIGN_IN_OPTIONS), **changed)
    return await visit.client.post(SIGN_IN, data={"next": place, "signed": answer}, headers=OWN)


async def read_name(visit: Visit) -> str | None:
    """Return who is signed in."""
    page = await visit.client.get("/me")
    return page.text.split("Signed in as ")[1].split(":")[0].strip() if page.status_code == 200 else None


async def read_log(visit: Visit) -> list[Activity]:
    return (await visit.wiring.activity.read_page(0, 100)).entries


async def decide_signed(
    visit: Visit, device: Authenticator, record: SuspensionRecord, by: Actor, action: str = "approve", **fields: Any
) -> None:
    """Decide the first item of a suspension, signed by a passkey."""
    given = {"action": action, "digest": record.items[0].digest, **fields}
    options: Any = await begin_deciding(visit.wiring, by.id, DecisionRequest.model_validate(given))
    signed = {**device.answer(decode_base64url(options["challenge"])), "nonce": options["nonce"]}
    request = DecisionRequest.model_validate({**given, "signed": signed})
    await visit.wiring.desk.decide(record.id, "i1", request, by)
