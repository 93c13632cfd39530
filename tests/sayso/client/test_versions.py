"""Clients say once that the desk has another version; no call fails of it."""

import logging
from functools import partial

import httpx
import pytest

from sayso import AsyncClient, Client, __version__
from service.core.settings import Settings
from tests.service.servers import served


def respond(version: str | None, request: httpx.Request) -> httpx.Response:
    headers = {"Sayso-Version": version} if version is not None else {}
    return httpx.Response(200, json={"runs": [], "next_skip": None, "unreadable": []}, headers=headers)


def say(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "sayso"]


def test_client_says_once_that_the_desk_is_another_version(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        with Client("http://other.test", "key", transport=httpx.MockTransport(partial(respond, "9.9.9"))) as client:
            assert client.runs().runs == client.runs().runs == []
    (said,) = say(caplog)
    assert said.startswith(f"The desk at http://other.test is Sayso 9.9.9, and this SDK is {__version__}.")


@pytest.mark.parametrize("version", [None, __version__, "no version"])
async def test_async_client_is_silent_about_the_same_version(
    caplog: pytest.LogCaptureFixture, version: str | None
) -> None:
    caplog.set_level(logging.DEBUG, "sayso")
    transport = httpx.MockTransport(partial(respond, version))
    async with AsyncClient("http://same.test", "key", transport=transport) as client:
        await client.runs()
    assert say(caplog) == []


async def test_async_client_says_that_the_desk_is_another_version(caplog: pytest.LogCaptureFixture) -> None:
    transport = httpx.MockTransport(partial(respond, "9.9.8"))
    async with AsyncClient("http://later.test", "key", transport=transport) as client:
        await client.runs()
    assert [text.partition(", and")[0] for text in say(caplog)] == ["The desk at http://later.test is Sayso 9.9.8"]


def test_every_response_of_a_desk_has_its_version(clean_store_url: str) -> None:
    with served(Settings(redis_url=clean_store_url)) as url:
        for place in ("/healthz", "/sign-in", "/static/none.css", "/api/v1/runs", "/nothing", "/sdk/"):
            assert httpx.get(url + place).headers["sayso-version"] == __version__, place
