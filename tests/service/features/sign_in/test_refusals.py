"""Sign-ins with a provider that are refused, each with a sentence that says why."""

from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx import ASGITransport, AsyncClient
from starlette.responses import JSONResponse, Response

from sayso.core.clock import now_ms
from service.core.settings import Settings
from tests.fakes.provider import make_key
from tests.service.features.sign_in.browsers import BEGIN, Browser

Change = Callable[[dict[str, Any]], dict[str, Any]]


def soon(**changed: Any) -> Change:
    return lambda claims: {**claims, **changed}


def without(name: str) -> Change:
    return lambda claims: {key: value for key, value in claims.items() if key != name}


NOW_S = now_ms() // 1000
CHANGES: dict[str, tuple[Change, str]] = {
    "wrong issuer": (soon(iss="https://evil.example"), "another issuer"),
    "issuer with a slash": (lambda claims: {**claims, "iss": f"{claims['iss']}/"}, "another issuer"),
    "wrong audience": (soon(aud="other"), "another client"),
    "several audiences without azp": (soon(aud=["sayso", "other"]), "another client"),
    "azp of another": (soon(azp="other"), "another client"),
    "wrong nonce": (soon(nonce="0" * 64), "another sign-in"),
    "no nonce": (without("nonce"), "another sign-in"),
    "expired": (soon(exp=NOW_S - 3600), "has expired"),
    "no end": (without("exp"), "without its times"),
    "of the future": (soon(iat=NOW_S + 3600), "of the future"),
    "not yet valid": (soon(nbf=NOW_S + 3600), "of the future"),
    "no subject": (without("sub"), "named nobody"),
    "at_hash of another access token": (soon(at_hash="x" * 22), "do not belong together"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_id_token_with_a_wrong_claim_is_refused(guest: Browser, name: str) -> None:
    guest.provider.change, sentence = CHANGES[name]
    answer = await guest.sign_in("/runs")
    assert answer.status_code == 401
    assert sentence in unescape(answer.text)
    assert 'role="alert"' in answer.text
    assert "Sign in with Company" in answer.text, "the page offers to begin again"
    assert await guest.read_name() is None
    (entry,) = await guest.read_log()
    assert (entry.act, entry.outcome, entry.target) == ("signed_in", "refused", "company")


@pytest.mark.parametrize(
    ("name", "changed"),
    [("exp", -30), ("iat", 30), ("nbf", 30)],
)
async def test_clocks_may_differ_by_a_minute(guest: Browser, name: str, changed: int) -> None:
    guest.provider.change = lambda claims: {**claims, name: claims["iat"] + changed}
    assert (await guest.sign_in()).status_code == 303


async def test_code_and_state_are_of_one_use(guest: Browser) -> None:
    location = await guest.begin()
    back = guest.provider.consent(location)
    assert (await guest.client.get(back)).status_code == 303
    guest.client.cookies.clear()
    again = await guest.client.get(back)
    assert again.status_code == 401
    assert "was not begun in this browser" in again.text
    code = parse_qs(urlsplit(back).query)["code"][0]
    replayed = await guest.come_back(await guest.begin(), code=code)
    assert replayed.status_code == 401
    assert "did not confirm this sign-in. Begin again." in replayed.text
    assert "<b>no</b>" not in replayed.text


async def test_state_of_another_browser_is_refused(guest: Browser, settings: Settings) -> None:
    back = guest.provider.consent(await guest.begin())
    transport = ASGITransport(app=guest.visit.app)
    async with AsyncClient(transport=transport, base_url=settings.public_url) as victim:
        for _ in range(2):  # without a sign-in of its own under way, and with one
            answer = await victim.get(back)
            assert answer.status_code == 401
            assert "was not begun in this browser" in answer.text
            await victim.get(BEGIN)
    assert (await guest.client.get(back)).status_code == 401, "the state is used up"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"state": "0" * 64}, "was not begun in this browser"),
        ({"state": ""}, "was not begun in this browser"),
        ({"code": ""}, "was not completed. Begin again."),
        ({"code": "", "error": "<script>alert(1)</script>"}, "was not completed. Begin again."),
        ({"code": "unknown"}, "did not confirm this sign-in"),
        ({"iss": "https://evil.example"}, "Another provider answered"),
    ],
)
async def test_wrong_redirect_of_the_provider_is_refused(
    guest: Browser, changed: dict[str, str], sentence: str
) -> None:
    answer = await guest.come_back(await guest.begin(), **changed)
    assert answer.status_code in (401, 403)
    assert sentence in unescape(answer.text)
    assert "<script>alert" not in answer.text
    assert await guest.read_name() is None


async def test_issuer_of_the_redirect_is_needed_where_the_provider_says_so(guest: Browser) -> None:
    guest.provider.metadata = {"authorization_response_iss_parameter_supported": True}
    assert (await guest.sign_in()).status_code == 401
    assert (await guest.come_back(await guest.begin(), iss=guest.provider.url)).status_code == 303


async def test_new_key_of_the_provider_is_found(guest: Browser) -> None:
    guest.provider.keys = [make_key("ES256", "k2")]
    assert (await guest.sign_in()).status_code == 303
    assert guest.provider.asked.count("/jwks") == 1


async def test_unknown_key_is_looked_up_once_and_refused(guest: Browser) -> None:
    guest.provider.sign = make_key("RS256", "unknown").sign
    for _ in range(5):
        answer = await guest.sign_in()
        assert answer.status_code == 401
        assert "signed with a key that it does not publish" in answer.text
    assert guest.provider.asked.count("/jwks") == 1
    assert guest.provider.asked.count("/.well-known/openid-configuration") == 1


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/.well-known/openid-configuration", lambda: Response("<html>", 200)),
        ("/.well-known/openid-configuration", lambda: Response(status_code=500)),
        ("/.well-known/openid-configuration", lambda: JSONResponse({"issuer": 7})),
        ("/.well-known/openid-configuration", lambda: Response(b" " * 10_000_000, 200)),
        ("/.well-known/openid-configuration", lambda: Response(status_code=302, headers={"Location": "/jwks"})),
        ("/.well-known/openid-configuration", lambda: JSONResponse([[[]]] * 1000)),
    ],
    ids=["no JSON", "an error", "other members", "a huge response", "a redirect", "a list"],
)
async def test_provider_that_answers_badly_is_named(guest: Browser, path: str, answer: Callable[[], Response]) -> None:
    guest.provider.answers[path] = answer
    refused = await guest.client.get(BEGIN)
    assert refused.status_code == 503
    assert "Company cannot be used now" in refused.text
    assert (await guest.client.get(BEGIN)).status_code == 503
    assert len(guest.provider.asked) == 1, "a failing provider is asked again after ten seconds"


@pytest.mark.parametrize("path", ["/token", "/jwks"])
async def test_huge_response_in_a_sign_in_is_refused(guest: Browser, path: str) -> None:
    guest.provider.answers[path] = lambda: Response(b" " * 10_000_000, 200)
    answer = await guest.sign_in()
    assert answer.status_code == 503
    assert "sent more than 65536 bytes" in answer.text


async def test_metadata_of_another_issuer_are_refused(guest: Browser) -> None:
    guest.provider.metadata = {"issuer": "https://evil.example"}
    answer = await guest.client.get(BEGIN)
    assert answer.status_code == 401
    assert "names another issuer than this desk knows" in answer.text


@pytest.mark.parametrize("name", ["token_endpoint", "jwks_uri", "authorization_endpoint"])
@pytest.mark.parametrize("url", ["http://169.254.169.254/latest", "http://10.0.0.1/", "file:///etc/passwd"])
async def test_provider_leads_to_no_address_that_is_not_named(guest: Browser, name: str, url: str) -> None:
    guest.provider.metadata = {name: url}
    answer = await guest.client.get(BEGIN)
    if answer.status_code == 303:
        answer = await guest.come_back(answer.headers["location"])
    assert answer.status_code == 401
    assert "names an address that this desk may not reach" in answer.text


async def test_unknown_provider_is_not_found(guest: Browser) -> None:
    for place in ("/sign-in/other", "/sign-in/other/callback", "/sign-in/other/end"):
        assert (await guest.client.get(place)).status_code == 404
    assert (await guest.client.post("/sign-in/other/logout")).status_code == 404


async def test_many_sign_ins_of_one_address_must_wait(guest: Browser) -> None:
    statuses = [(await guest.client.get(BEGIN)).status_code for _ in range(101)]
    assert (statuses[0], statuses[99], statuses[100]) == (303, 303, 429)


# Passwords beside a provider.
