"""Signing in with a provider through the pages: who gets in, as whom, and what is refused with which sentence."""

from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx import ASGITransport, AsyncClient

from service.core.auth.codes import make_seed
from service.core.settings import Settings
from service.core.store.people import AuthenticatorApp, People
from tests.service.edge.web.sites import OWN, PASSWORD, add_people
from tests.service.features.codes.apps import make_code, make_wrong_code
from tests.service.features.sign_in.browsers import BACK, BEGIN, Browser

Change = Callable[[dict[str, Any]], dict[str, Any]]


async def test_sign_in_opens_a_session_of_a_new_account(guest: Browser) -> None:
    page = await guest.visit.read("/sign-in?next=/runs")
    assert 'href="/sign-in/company?next=/runs"' in page
    assert "Sign in with Company" in page
    answer = await guest.sign_in("/runs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs")
    assert await guest.read_name() == "carla"
    person = await guest.visit.wiring.reviewers.find("carla")
    assert person is not None
    assert (person.roles, person.password_hash) == (("reviewer",), "")
    acts = [(entry.act, entry.by, entry.data.get("provider")) for entry in await guest.read_log()]
    assert acts == [("signed_in", "carla", "company"), ("person_added", "carla", "company")]


async def test_request_to_the_provider_has_pkce_state_and_nonce(guest: Browser) -> None:
    location = await guest.begin()
    asked = parse_qs(urlsplit(location).query)
    assert asked["response_type"] == ["code"]
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["scope"] == ["openid profile email"]
    assert asked["redirect_uri"] == [f"{guest.visit.wiring.settings.public_url}{BACK}"]
    assert len({asked["state"][0], asked["nonce"][0], asked["code_challenge"][0]}) == 3
    again = parse_qs(urlsplit(await guest.begin()).query)
    assert again["state"] != asked["state"]
    assert again["nonce"] != asked["nonce"]


async def test_second_sign_in_is_of_the_same_account_after_a_rename(guest: Browser) -> None:
    await guest.sign_in()
    guest.provider.claims["preferred_username"] = "Carla.Renamed"
    guest.client.cookies.clear()
    await guest.sign_in()
    assert await guest.read_name() == "carla"


async def test_two_tabs_of_a_browser_both_finish(guest: Browser) -> None:
    first, second = await guest.begin("/runs"), await guest.begin("/history")
    for location, place in ((second, "/history"), (first, "/runs")):
        assert (await guest.come_back(location)).headers["location"] == place


async def test_signed_in_person_goes_on_without_the_provider(guest: Browser) -> None:
    await guest.sign_in()
    answer = await guest.client.get(BEGIN, params={"next": "/runs"})
    assert answer.headers["location"] == "/runs"


@pytest.mark.parametrize(
    ("claim", "name"),
    [("Anna.Müller@Example.com", "anna.muller@example.com"), ("José  Álvarez", "jose.alvarez"), ("O", "o")],
)
async def test_name_of_the_claim_becomes_a_name_here(guest: Browser, claim: str, name: str) -> None:
    guest.provider.claims["preferred_username"] = claim
    await guest.sign_in()
    assert await guest.read_name() == name


@pytest.mark.parametrize("claim", ["анна", "a b/c", "", "x" * 65, "sayso:clock", "-a", 7, None, ["anna"]])
async def test_claim_that_is_no_name_is_refused(guest: Browser, claim: object) -> None:
    guest.provider.claims["preferred_username"] = claim
    answer = await guest.sign_in()
    assert 400 <= answer.status_code < 500
    assert await guest.read_name() is None


async def test_time_zone_of_the_claims_is_that_of_a_new_person_alone(guest: Browser) -> None:
    guest.provider.claims["zoneinfo"] = "Europe/Berlin"
    await guest.sign_in()
    duty = guest.visit.wiring.duty
    assert (await duty.find_preferences("carla")).time_zone == "Europe/Berlin"
    guest.provider.claims["zoneinfo"] = "Asia/Tokyo"
    guest.client.cookies.clear()
    await guest.sign_in()
    assert (await duty.find_preferences("carla")).time_zone == "Europe/Berlin"


async def test_claims_of_the_userinfo_endpoint_count_for_the_same_subject_alone(guest: Browser) -> None:
    del guest.provider.claims["preferred_username"]
    guest.provider.further = {"preferred_username": "carla"}
    await guest.sign_in()
    assert await guest.read_name() == "carla"
    guest.client.cookies.clear()
    guest.provider.further = {"sub": "s-2", "preferred_username": "carla"}
    answer = await guest.sign_in()
    assert "described another person" in unescape(answer.text)


TABLE = {
    "groups": {
        "staff": {"roles": ["reviewer"]},
        "bosses": {"roles": ["admin", "reviewer"], "groups": ["payments"]},
        "books": {"roles": ["auditor"]},
    },
    "default_roles": [],
}


@pytest.mark.parametrize("settings_fields", [TABLE], indirect=True)
async def test_roles_and_groups_follow_the_claims_at_each_sign_in(guest: Browser, settings_fields: Any) -> None:
    wiring, groups = guest.visit.wiring, guest.provider.claims
    await wiring.reviewers.add("root", PASSWORD, ("admin",))
    await wiring.groups.create("local", (), (), "root")

    async def sign_in_with(*names: str) -> tuple[set[str], tuple[str, ...]]:
        groups["groups"] = list(names)
        guest.client.cookies.clear()
        assert (await guest.sign_in()).status_code == 303
        person = await wiring.reviewers.find("carla")
        assert person is not None
        return set(person.roles), await wiring.reviewers.list_groups("carla")

    assert await sign_in_with("staff", "bosses", "unknown") == ({"reviewer", "admin"}, ("payments",))
    await wiring.groups.set_member("local", "carla", member=True)
    assert await sign_in_with("staff") == ({"reviewer"}, ("local",))
    assert await sign_in_with("books") == ({"auditor"}, ("local",))
    groups["groups"] = ["unknown"]
    guest.client.cookies.clear()
    answer = await guest.sign_in()
    assert answer.status_code == 403
    assert "None of your groups of Company has a role here. Ask an admin" in answer.text


@pytest.mark.parametrize("settings_fields", [{"groups": {"staff": {"roles": ["refunder"]}}}], indirect=True)
async def test_role_that_no_admin_made_is_refused(guest: Browser, settings_fields: Any) -> None:
    guest.provider.claims["groups"] = ["staff"]
    answer = await guest.sign_in()
    assert answer.status_code == 422
    assert "give at least one of them" in answer.text
    assert await guest.visit.wiring.reviewers.find("carla") is None


@pytest.mark.parametrize("settings_fields", [TABLE], indirect=True)
async def test_last_active_admin_stays_one(guest: Browser, settings_fields: Any) -> None:
    for group in ("bosses", "staff"):
        guest.provider.claims["groups"] = [group]
        guest.client.cookies.clear()
        assert (await guest.sign_in()).status_code == 303
    person = await guest.visit.wiring.reviewers.find("carla")
    assert person is not None
    assert "admin" in person.roles


LIMITS = {"required_group": "desk", "email_domains": ["example.com"]}
MAIL = {"email": "c@example.com", "email_verified": True}


@pytest.mark.parametrize("settings_fields", [LIMITS], indirect=True)
@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"groups": ["desk"], **MAIL}, 303),
        ({"groups": "desk", **MAIL, "email": "C@EXAMPLE.com"}, 303),
        ({"groups": ["Desk"], **MAIL}, 403),
        (MAIL, 403),
        ({"groups": ["desk"], **MAIL, "email": "c@example.com.evil.org"}, 403),
        ({"groups": ["desk"], **MAIL, "email": "c@sub.example.com"}, 403),
        ({"groups": ["desk"], **MAIL, "email_verified": "true"}, 403),
        ({"groups": ["desk"], "email": "c@example.com"}, 403),
        ({"groups": ["desk"]}, 403),
    ],
)
async def test_group_and_mail_domain_limit_who_signs_in(
    guest: Browser, settings_fields: Any, claims: dict[str, Any], status: int
) -> None:
    guest.provider.claims |= claims
    assert (await guest.sign_in()).status_code == status


async def test_deactivated_person_cannot_sign_in(guest: Browser) -> None:
    await guest.sign_in()
    await guest.visit.wiring.reviewers.deactivate("carla")
    guest.client.cookies.clear()
    answer = await guest.sign_in()
    assert answer.status_code == 403
    assert "carla is deactivated here. Ask an admin." in answer.text


# Accounts that exist already.


async def test_another_subject_of_the_same_name_gets_no_account(guest: Browser) -> None:
    await guest.sign_in()
    guest.client.cookies.clear()
    guest.provider.claims["sub"] = "s-2"
    answer = await guest.sign_in()
    assert "Is this account yours?" in answer.text
    secret = answer.text.split('name="secret" value="')[1].split('"')[0]
    for password in ("", PASSWORD):
        linked = await guest.client.post(BEGIN, data={"secret": secret, "password": password}, headers=OWN)
        assert linked.status_code == 401
    assert await guest.read_name() is None


async def test_local_account_is_linked_with_its_password_alone(guest: Browser) -> None:
    await add_people(guest.visit.wiring, "carla")

    async def link(password: str, **changed: str) -> int:
        answer = await guest.sign_in("/runs")
        assert (answer.status_code, "Is this account yours?" in answer.text) == (200, True)
        assert await guest.read_name() is None
        secret = answer.text.split('name="secret" value="')[1].split('"')[0]
        form = {"secret": secret, "password": password, **changed}
        linked = await guest.client.post(BEGIN, data=form, headers=OWN)
        again = await guest.client.post(BEGIN, data=form, headers=OWN)
        assert again.status_code == 401, "the secret is of one use"
        return linked.status_code

    assert await link("a wrong password") == 401
    assert await link(PASSWORD, secret="0" * 64) == 401
    assert await link(PASSWORD) == 303
    assert await guest.read_name() == "carla"
    guest.client.cookies.clear()
    assert (await guest.sign_in("/runs")).headers["location"] == "/runs"


async def test_account_with_an_app_is_linked_with_its_code_too(guest: Browser) -> None:
    await add_people(guest.visit.wiring, "carla")
    app = AuthenticatorApp(seed=make_seed(), added_at_ms=0, used_step=-1)
    people = guest.visit.wiring.part(People)
    await people.change_reviewer("carla", lambda person: person.model_copy(update={"app": app}))
    for code, status in (("", 401), (make_wrong_code(app.seed), 401), (make_code(app.seed), 303)):
        secret = (await guest.sign_in()).text.split('name="secret" value="')[1].split('"')[0]
        form = {"secret": secret, "password": PASSWORD, "code": code}
        assert (await guest.client.post(BEGIN, data=form, headers=OWN)).status_code == status
    assert await guest.read_name() == "carla"


async def test_account_whose_password_an_admin_set_is_not_linked(guest: Browser) -> None:
    await guest.visit.wiring.reviewers.add("carla", PASSWORD, ("reviewer",), "root")
    answer = await guest.sign_in()
    secret = answer.text.split('name="secret" value="')[1].split('"')[0]
    linked = await guest.client.post(BEGIN, data={"secret": secret, "password": PASSWORD}, headers=OWN)
    assert linked.status_code == 403
    assert "root set your password" in linked.text


async def test_link_of_another_browser_is_refused(guest: Browser, settings: Settings) -> None:
    await add_people(guest.visit.wiring, "carla")
    answer = await guest.sign_in()
    secret = answer.text.split('name="secret" value="')[1].split('"')[0]
    transport = ASGITransport(app=guest.visit.app)
    async with AsyncClient(transport=transport, base_url=settings.public_url) as other:
        linked = await other.post(BEGIN, data={"secret": secret, "password": PASSWORD}, headers=OWN)
    assert linked.status_code == 401
    assert "was not begun in this browser" in linked.text


@pytest.mark.parametrize("settings_fields", [{"directory": True}, {}], indirect=True)
async def test_account_of_the_directory_is_linked_where_both_have_the_same_names(
    guest: Browser, settings_fields: dict[str, Any]
) -> None:
    await guest.visit.wiring.reviewers.add_managed("carla", "directory")
    answer = await guest.sign_in()
    assert ("Is this account yours?" in answer.text) == (not settings_fields)
    assert await guest.read_name() == ("carla" if settings_fields else None)
    guest.client.cookies.clear()
    guest.provider.claims["sub"] = "s-2"
    await guest.sign_in()
    assert await guest.read_name() is None, "the account has one subject"


@pytest.mark.parametrize("settings_fields", [{"directory": True}], indirect=True)
async def test_account_with_a_password_is_not_linked_by_its_name(guest: Browser, settings_fields: Any) -> None:
    await guest.visit.wiring.reviewers.add_managed("carla", "directory")
    await guest.visit.wiring.reviewers.set_password("carla", PASSWORD)
    assert "Is this account yours?" in (await guest.sign_in()).text


async def test_person_without_a_password_is_not_asked_for_one_on_me(guest: Browser) -> None:
    await guest.sign_in()
    assert "Change password" not in await guest.visit.read("/me")


async def test_name_of_an_agent_is_no_name_of_a_person(guest: Browser) -> None:
    await guest.visit.wiring.api_keys.create("Carla")
    answer = await guest.sign_in()
    assert "An agent is named carla" in answer.text


@pytest.mark.parametrize("settings_plan", [{"local_accounts": "off"}], indirect=True)
async def test_passwords_can_be_switched_off(guest: Browser, settings_plan: Any) -> None:
    await add_people(guest.visit.wiring, "anna")
    assert 'name="password"' not in await guest.visit.read("/sign-in")
    form = {"name": "anna", "password": PASSWORD}
    refused = await guest.client.post("/sign-in", data=form, headers=OWN)
    assert refused.status_code == 401
    assert "Passwords are switched off here. Sign in with Company." in refused.text
    api = await guest.client.post("/api/v1/sessions", json=form)
    assert api.status_code == 401
    assert (await guest.sign_in()).status_code == 303


@pytest.mark.parametrize("settings_plan", [{"local_accounts": "break_glass"}], indirect=True)
async def test_password_of_an_admin_alone_counts_as_break_glass(guest: Browser, settings_plan: Any) -> None:
    wiring = guest.visit.wiring
    await add_people(wiring, "anna")
    await wiring.reviewers.add("root", PASSWORD, ("reviewer", "admin"))
    page = await guest.visit.read("/sign-in")
    assert "<details><summary>Sign in with a password</summary>" in page
    refused = await guest.client.post("/sign-in", data={"name": "anna", "password": PASSWORD}, headers=OWN)
    assert refused.status_code == 401
    opened = await guest.client.post("/sign-in", data={"name": "root", "password": PASSWORD}, headers=OWN)
    assert opened.status_code == 303


async def test_session_of_a_provider_is_not_that_of_the_password(guest: Browser) -> None:
    await guest.sign_in()
    wiring = guest.visit.wiring
    await wiring.reviewers.set_password("carla", "another horse battery", "root")
    guest.client.cookies.clear()
    await guest.sign_in()
    (session,) = await wiring.reviewers.list_sessions("carla")
    assert (session.session.provider, session.session.made_by) == ("company", "")
    assert (await guest.client.post("/me/keys", data={"csrf": ""}, headers=OWN)).status_code == 403


# Signing out.


async def test_sign_out_offers_to_sign_out_at_the_provider(guest: Browser) -> None:
    await guest.sign_in()
    csrf = (await guest.visit.read("/me")).split('name="csrf" value="')[1].split('"')[0]
    answer = await guest.client.post("/sign-out", data={"csrf": csrf}, headers=OWN)
    assert answer.headers["location"] == "/sign-in/company/end"
    page = await guest.visit.read("/sign-in/company/end")
    assert f'href="{guest.provider.url}/end?client_id=sayso&amp;post_logout_redirect_uri=' in page
    assert await guest.read_name() is None


async def test_sign_out_without_such_a_place_shows_the_sign_in_page(guest: Browser) -> None:
    guest.provider.metadata = {"end_session_endpoint": None}
    answer = await guest.client.get("/sign-in/company/end")
    assert answer.headers["location"] == "/sign-in"
