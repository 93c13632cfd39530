"""Whose word on a client's address counts, how wrong passwords slow down, and under which hosts people sign in."""

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from service.app import create_app
from service.core.settings import Settings
from service.core.settings.limits import network_of
from tests.builders import PASSWORD, make_person
from tests.service.edge.web.sites import OWN, add_people
from tests.service.worlds import World

WRONG = "a wrong password"
PROXY = "10.0.0.5"


def client_at(app: FastAPI, address: str, base_url: str = "http://127.0.0.1:8321") -> AsyncClient:
    """A client that connects from this address."""
    return AsyncClient(transport=ASGITransport(app=app, client=(address, 1234)), base_url=base_url)


async def sign_in(client: AsyncClient, password: str, name: str = "anna", **headers: str) -> int:
    answer = await client.post("/api/v1/sessions", json={"name": name, "password": password}, headers=headers)
    return answer.status_code


async def test_wrong_passwords_from_one_address_lock_nobody_else_out(world: World) -> None:
    async with client_at(world.app, "203.0.113.7") as stranger, client_at(world.app, "198.51.100.2") as anna:
        said = [await sign_in(stranger, WRONG) for _ in range(11)]
        assert said == [*[401] * 10, 429]
        assert await sign_in(anna, PASSWORD) == 201


async def test_wrong_passwords_from_many_addresses_lock_nobody_out(world: World) -> None:
    for number in range(12):
        async with client_at(world.app, f"203.0.113.{number}") as stranger:
            assert await sign_in(stranger, WRONG) == 401
    async with client_at(world.app, "198.51.100.2") as anna:
        assert await sign_in(anna, PASSWORD) == 201


async def test_a_wait_after_wrong_passwords_is_shorter_than_an_approval(world: World) -> None:
    async with client_at(world.app, "203.0.113.7") as client:
        for _ in range(10):
            await sign_in(client, WRONG)
        answer = await client.post("/api/v1/sessions", json={"name": "anna", "password": PASSWORD})
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 60


async def test_a_forwarded_address_evades_no_limit_from_loopback(world: World) -> None:
    async with client_at(world.app, "127.0.0.1") as client:
        said = [await sign_in(client, WRONG, **{"X-Forwarded-For": f"198.51.100.{n}"}) for n in range(11)]
    assert said[-1] == 429


async def test_people_behind_a_trusted_proxy_have_addresses_of_their_own(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"trusted_proxies": (PROXY,)}))
    async with app.router.lifespan_context(app), client_at(app, PROXY) as client:
        await make_person(app.state.process.wiring, "anna")
        said = [await sign_in(client, WRONG, **{"X-Forwarded-For": "203.0.113.7"}) for _ in range(11)]
        other = await sign_in(client, PASSWORD, **{"X-Forwarded-For": "198.51.100.2"})
        spoofed = await sign_in(client, WRONG, **{"X-Forwarded-For": "198.51.100.9, 203.0.113.7"})
    assert (said[-1], other, spoofed) == (429, 201, 429)


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_one_client_of_ipv6_is_counted_as_its_network(address: str, counted: str) -> None:
    assert network_of(address) == counted


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:8321", "sayso@evil.example"])
async def test_a_foreign_host_is_refused_at_sign_in(world: World, host: str) -> None:
    async with world.client() as client:
        answer = await client.post(
            "/api/v1/sessions", json={"name": "anna", "password": PASSWORD}, headers={"Host": host}
        )
        page = await client.get("/sign-in", headers={"Host": host})
        form = {"name": "anna", "password": PASSWORD}
        sent = await client.post("/sign-in", data=form, headers={"Host": host, **OWN})
        inbox = await client.get("/", headers={"Host": host})
    assert (answer.status_code, answer.json()["type"]) == (421, "/problems/unknown-host")
    assert "SAYSO_ALLOWED_HOSTS" in answer.json()["detail"]
    assert [one.status_code for one in (page, sent, inbox)] == [421] * 3
    assert "set-cookie" not in sent.headers


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "localhost:9999", "LOCALHOST", "[::1]:8321", "localhost."])
async def test_this_machines_names_are_hosts_of_a_local_service(world: World, host: str) -> None:
    async with world.client() as client:
        assert (await client.get("/sign-in", headers={"Host": host})).status_code == 200


async def test_only_named_hosts_are_hosts_of_a_production_service(settings: Settings) -> None:
    update = {"env": "production", "public_url": "https://desk.example", "allowed_hosts": ("inside.example",)}
    app = create_app(settings.model_copy(update=update))
    async with app.router.lifespan_context(app), client_at(app, "203.0.113.7") as client:
        await add_people(app.state.process.wiring, "carla")
        hosts = ("desk.example", "inside.example:443", "localhost")
        said = [(await client.get("/sign-in", headers={"Host": host})).status_code for host in hosts]
    assert said == [200, 200, 421]


async def test_health_and_bearer_requests_need_no_known_host(world: World) -> None:
    async with world.client("demo") as client:
        for place in ("/healthz", "/readyz", "/api/v1/runs"):
            assert (await client.get(place, headers={"Host": "10.1.2.3"})).status_code == 200


@pytest.mark.parametrize(("url", "said"), [("https://desk.example", "max-age=31536000"), ("http://127.0.0.1", None)])
async def test_https_is_kept_where_the_address_is_https(settings: Settings, url: str, said: str | None) -> None:
    app = create_app(settings.model_copy(update={"public_url": url}))
    async with app.router.lifespan_context(app), client_at(app, "203.0.113.7", url) as client:
        for place in ("/sign-in", "/api/v1/runs", "/static/sayso.css", "/nothing"):
            assert (await client.get(place)).headers.get("strict-transport-security") == said, place


@pytest.mark.parametrize("host", ["anna@desk", "desk:port", "a..b", "", "desk/x"])
async def test_unreadable_host_is_no_allowed_one(settings: Settings, host: str) -> None:
    """A setting that cannot be read as a host allows no request whose host cannot be read."""
    app = create_app(settings.model_copy(update={"allowed_hosts": ("a..b",)}))
    async with app.router.lifespan_context(app), client_at(app, "127.0.0.1") as client:
        answer = await client.post("/api/v1/sessions", json={"name": "x", "password": PASSWORD}, headers={"Host": host})
    assert answer.json()["type"] == "/problems/unknown-host", answer.text
