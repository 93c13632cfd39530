"""Back-channel logout: a provider ends the sessions of a person here, and nobody else does."""

from collections.abc import Callable
from typing import Any

import pytest
from httpx import Response

from sayso.core.clock import now_ms
from tests.fakes.provider import FakeProvider, make_key
from tests.service.edge.web.sites import let_in
from tests.service.features.sign_in.browsers import Browser

LOGOUT = "/sign-in/company/logout"
EVENT = "http://schemas.openid.net/event/backchannel-logout"


async def send(guest: Browser, claims: dict[str, Any], **header: Any) -> Response:
    token = guest.provider.keys[0].sign(claims, **{"typ": "logout+jwt", **header})
    return await guest.client.post(LOGOUT, data={"logout_token": token})


async def count_sessions(guest: Browser) -> int:
    return len(await guest.visit.wiring.reviewers.list_sessions("carla"))


async def sign_in_at(guest: Browser, session: str) -> dict[str, str]:
    """Sign in anew, in a session at the provider; return the browser's cookies."""
    guest.client.cookies.clear()
    guest.provider.claims["sid"] = session
    assert (await guest.sign_in()).status_code == 303
    return dict(guest.client.cookies)


async def test_logout_of_a_session_ends_the_one_here(guest: Browser) -> None:
    first = await sign_in_at(guest, "session-1")
    await sign_in_at(guest, "session-2")
    answer = await send(guest, guest.provider.make_logout(sid="session-1"))
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    assert await count_sessions(guest) == 1
    assert await guest.read_name() == "carla", "the other session stays"
    guest.client.cookies.clear()
    guest.client.cookies.update(first)
    assert await guest.read_name() is None


async def test_logout_of_a_subject_ends_all_sessions_with_the_provider(guest: Browser, settings: Any) -> None:
    await sign_in_at(guest, "session-1")
    await sign_in_at(guest, "session-2")
    local = await let_in(settings, "anna")
    assert await count_sessions(guest) == 2
    assert (await send(guest, guest.provider.make_logout())).status_code == 200
    assert await count_sessions(guest) == 0
    assert (await guest.visit.wiring.credentials.identify(local)).name == "anna"
    ended = (await guest.read_log())[0]
    assert (ended.act, ended.data) == ("sessions_ended", {"provider": "company", "sessions": 2})


async def test_logout_without_a_type_of_token_counts(guest: Browser) -> None:
    await sign_in_at(guest, "session-1")
    assert (await send(guest, guest.provider.make_logout(), typ="JWT")).status_code == 200
    assert await count_sessions(guest) == 0


async def test_logout_of_a_stranger_ends_nothing(guest: Browser) -> None:
    await sign_in_at(guest, "session-1")
    for changed in ({"sub": "s-2"}, {"sid": "session-9"}):
        assert (await send(guest, guest.provider.make_logout(**changed))).status_code == 200
    assert await count_sessions(guest) == 1


async def test_logout_token_is_of_one_use(guest: Browser) -> None:
    await sign_in_at(guest, "session-1")
    claims = guest.provider.make_logout()
    assert (await send(guest, claims)).status_code == 200
    await sign_in_at(guest, "session-2")
    replayed = await send(guest, claims)
    assert replayed.status_code == 400
    assert replayed.json()["error"] == "invalid_request"
    assert await count_sessions(guest) == 1


Forge = Callable[[FakeProvider], str]


def claims(**changed: Any) -> Forge:
    return lambda provider: provider.keys[0].sign(provider.make_logout(**changed), typ="logout+jwt")


def header(**changed: Any) -> Forge:
    return lambda provider: provider.keys[0].sign(provider.make_logout(), **changed)


FORGED: dict[str, Forge] = {
    "a nonce": claims(nonce="n"),
    "no event": claims(events={}),
    "the event as a text": claims(events={EVENT: "x"}),
    "events as a list": claims(events=[EVENT]),
    "another event": claims(events={"http://schemas.openid.net/secevent/risc/event-type/account-purged": {}}),
    "no id": claims(jti=None),
    "an empty id": claims(jti=""),
    "neither subject nor session": claims(sub=None),
    "a number as subject": claims(sub=7),
    "an empty session": claims(sid=""),
    "no end": claims(exp=None),
    "an end in a year": claims(exp=now_ms() // 1000 + 31_536_000),
    "an end in the past": claims(exp=now_ms() // 1000 - 3600),
    "no time": claims(iat=None),
    "another issuer": claims(iss="https://evil.example"),
    "another audience": claims(aud="other"),
    "the type of an access token": header(typ="at+jwt"),
    "an unknown key": lambda provider: make_key("RS256", "k9").sign(provider.make_logout(), typ="logout+jwt"),
    "another key of the same id": lambda provider: make_key().sign(provider.make_logout(), typ="logout+jwt"),
    "an ID token": lambda provider: provider.keys[0].sign(provider.make_claims("n")),
    "no token": lambda provider: "",
    "too long a token": lambda provider: f"a.b.{'c' * 9_000}",
}


@pytest.mark.parametrize("name", FORGED)
async def test_forged_logout_token_ends_nothing(guest: Browser, name: str) -> None:
    await sign_in_at(guest, "session-1")
    answer = await guest.client.post(LOGOUT, data={"logout_token": FORGED[name](guest.provider)})
    assert answer.status_code == 400
    assert answer.json()["error"] == "invalid_request"
    assert await count_sessions(guest) == 1
    refused = (await guest.read_log())[0]
    assert (refused.act, refused.outcome) == ("sessions_ended", "refused")


async def test_logout_without_a_form_is_refused(guest: Browser) -> None:
    assert (await guest.client.post(LOGOUT, json={"logout_token": "x"})).status_code == 400
