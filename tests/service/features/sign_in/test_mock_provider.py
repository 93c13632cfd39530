"""Signing in with `oidc-provider-mock`, a provider of others, through its own form."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from oidc_provider_mock import User, run_server_in_thread

from service.core.settings import Settings
from tests.service.edge.web.sites import settings_for, visit
from tests.service.features.sign_in.browsers import BEGIN, write_file

CLAIMS = {"preferred_username": "Dana", "groups": ["bosses"], "zoneinfo": "Europe/Berlin"}


@pytest.fixture
def issuer() -> Iterator[str]:
    with run_server_in_thread(user_claims=[User(sub="d-1", claims=CLAIMS)]) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path, issuer: str) -> Settings:
    file = write_file(tmp_path, issuer, groups={"bosses": {"roles": ["reviewer", "auditor"], "groups": ["payments"]}})
    receivers = issuer.removeprefix("http://")
    return settings_for(clean_store_url, tmp_path, sign_in=str(file), internal_receivers=receivers)


async def test_person_signs_in_through_the_form_of_the_provider(settings: Settings) -> None:
    async with visit(settings, None) as guest, httpx.AsyncClient() as browser:
        begun = await guest.client.get(BEGIN, params={"next": "/runs"})
        assert (await browser.get(begun.headers["location"])).status_code == 200
        back = (await browser.post(begun.headers["location"], data={"sub": "d-1"})).headers["location"]
        answer = await guest.client.get(back)
        assert answer.status_code == 303, answer.text
        person = await guest.wiring.reviewers.find("dana")
        assert answer.headers["location"] == "/runs"
        assert person is not None
        assert person.roles == ("reviewer", "auditor")
        assert await guest.wiring.reviewers.list_groups("dana") == ("payments",)
        assert (await guest.wiring.duty.find_preferences("dana")).time_zone == "Europe/Berlin"
        again = await guest.client.get(back)
        assert again.status_code == 401
