"""Sign-ins with a password and the code of an authenticator app."""

import re

from httpx import Response

from service.core.auth.reviewers import BY_PAIR
from tests.service.edge.web.sites import OWN, PASSWORD, Visit
from tests.service.features.codes.apps import make_carla, make_code, make_wrong_code
from tests.service.features.passkeys.people import read_log, read_name

SIGN_IN, SESSIONS = "/sign-in", "/api/v1/sessions"


async def send(guest: Visit, **fields: str) -> Response:
    return await guest.client.post(SIGN_IN, data=fields, headers=OWN)


async def give_password(guest: Visit, **fields: str) -> str:
    """Give Carla's password; return what stands for it on the page that asks for the code."""
    answer = await send(guest, name="carla", password=PASSWORD, **fields)
    assert answer.status_code == 200
    assert "Code of your authenticator app" in answer.text
    assert "set-cookie" not in answer.headers
    assert PASSWORD not in answer.text
    begun = re.search(r'name="begun" value="([0-9a-f]{64})"', answer.text)
    assert begun, answer.text
    return begun[1]


async def test_page_asks_for_the_code_after_the_password(guest: Visit) -> None:
    seed = await make_carla(guest.wiring)
    begun = await give_password(guest, next="/history")
    assert await read_name(guest) is None
    answer = await send(guest, begun=begun, code=make_code(seed), next="/history")
    assert (answer.status_code, answer.headers["location"]) == (303, "/history")
    assert await read_name(guest) == "carla"
    assert [entry.act for entry in await read_log(guest)].count("signed_in") == 1


async def test_wrong_code_is_asked_for_again(guest: Visit) -> None:
    seed = await make_carla(guest.wiring)
    begun = await give_password(guest)
    again = await send(guest, begun=begun, code=make_wrong_code(seed))
    assert again.status_code == 401
    assert "This code is not right" in again.text
    assert begun in again.text
    refused = [entry for entry in await read_log(guest) if entry.target == "carla"]
    assert refused, "the refusal is in the log"
    assert (await send(guest, begun=begun, code=make_code(seed))).status_code == 303


async def test_code_signs_in_once(guest: Visit) -> None:
    code = make_code(await make_carla(guest.wiring))
    assert (await send(guest, begun=await give_password(guest), code=code)).status_code == 303
    guest.client.cookies.clear()
    assert (await send(guest, begun=await give_password(guest), code=code)).status_code == 401
    assert await read_name(guest) is None


async def test_right_code_without_the_password_is_refused(guest: Visit) -> None:
    seed = await make_carla(guest.wiring)
    wrong = await send(guest, name="carla", password="wrong password", code=make_code(seed))
    assert wrong.status_code == 401
    unknown = await send(guest, begun="0" * 64, code=make_code(seed))
    assert unknown.status_code == 401
    assert "Type your name and password again." in unknown.text
    assert await read_name(guest) is None


async def test_password_changed_before_the_code_opens_nothing(guest: Visit) -> None:
    seed = await make_carla(guest.wiring)
    begun = await give_password(guest)
    await guest.wiring.reviewers.set_password("carla", "another good password")
    await send(guest, begun=begun, code=make_code(seed))
    assert await read_name(guest) is None


async def test_person_deactivated_before_the_code_does_not_sign_in(guest: Visit) -> None:
    seed = await make_carla(guest.wiring)
    await guest.wiring.reviewers.add("root", PASSWORD, ("admin",))
    begun = await give_password(guest)
    await guest.wiring.reviewers.deactivate("carla")
    assert (await send(guest, begun=begun, code=make_code(seed))).status_code == 401


async def test_wrong_codes_count_as_attempts_to_sign_in(guest: Visit) -> None:
    seed = await make_carla(guest.wiring)
    begun, wrong = await give_password(guest), make_wrong_code(seed)
    for _ in range(BY_PAIR.most - 1):
        assert (await send(guest, begun=begun, code=wrong)).status_code == 401
    assert (await send(guest, begun=begun, code=make_code(seed))).status_code == 429
    assert (await send(guest, name="carla", password=PASSWORD)).status_code == 429


async def test_input_from_before_the_sign_in_survives_the_code(guest: Visit) -> None:
    seed = await make_carla(guest.wiring)
    answer = await send(guest, name="carla", password=PASSWORD, next="/operate", reason="Too <many> refunds")
    assert "Too &lt;many&gt; refunds" in answer.text
    begun = re.findall(r'name="begun" value="(.*?)"', answer.text)[0]
    wrong = await send(guest, begun=begun, code=make_wrong_code(seed), next="/operate", reason="Too <many> refunds")
    assert "Too &lt;many&gt; refunds" in wrong.text
    done = await send(guest, begun=begun, code=make_code(seed), next="/operate", reason="Too <many> refunds")
    assert (done.status_code, done.headers["location"]) == (307, "/operate")


async def test_person_without_an_app_needs_no_code(guest: Visit) -> None:
    await guest.wiring.reviewers.add("ben", PASSWORD, ("reviewer",))
    assert (await send(guest, name="ben", password=PASSWORD)).status_code == 303
    answer = await guest.client.post(SESSIONS, json={"name": "ben", "password": PASSWORD})
    assert answer.status_code == 201


async def test_api_says_that_a_code_is_needed(guest: Visit) -> None:
    seed = await make_carla(guest.wiring)
    given = {"name": "carla", "password": PASSWORD}
    needed = await guest.client.post(SESSIONS, json=given)
    assert (needed.status_code, needed.json()["type"]) == (401, "/problems/code-required")
    wrong = await guest.client.post(SESSIONS, json={**given, "code": make_wrong_code(seed)})
    assert (wrong.status_code, wrong.json()["type"]) == (401, "/problems/wrong-code")
    misfit = await guest.client.post(SESSIONS, json={**given, "password": "wrong password", "code": make_code(seed)})
    assert (misfit.status_code, misfit.json()["type"]) == (401, "/problems/not-authenticated")
    opened = await guest.client.post(SESSIONS, json={**given, "code": make_code(seed)})
    assert opened.status_code == 201
    again = await guest.client.post(SESSIONS, json={**given, "code": make_code(seed)})
    assert again.status_code == 401


async def test_removed_app_is_asked_for_no_more(guest: Visit) -> None:
    await make_carla(guest.wiring)
    await guest.wiring.reviewers.codes.remove("carla")
    assert (await send(guest, name="carla", password=PASSWORD)).status_code == 303
