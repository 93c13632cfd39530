"""Tenants: two desks behind one service and in one store, and neither learns anything of the other."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from pydantic import SecretStr
from rq import Worker
from starlette.routing import Route

from sayso.core.clock import new_id
from service.app import create_app
from service.core.jobs import DrainQueue, build_worker, count_workers
from service.core.settings import InvalidSettings, Settings
from service.core.settings.tenants import find_desk, list_desks
from service.core.store.connection.formats import check_format
from service.core.wiring import Wiring
from service.features.pages import PAGES
from service.tenants import TenantApps
from tests.builders import ask, make_agent, make_pending, make_person, person, register_agent
from tests.service.edge.api.test_access import OPERATIONS, ROWS, SECRET
from tests.service.worlds import POLICY

HOSTS = {"acme": "http://acme.example", "globex": "http://globex.example"}
CANARY = "acme-secret"


class House:
    """Two desks, with an admin `root` and an agent each."""

    def __init__(self, served: TenantApps, wirings: Mapping[str, Wiring]) -> None:
        self.served, self.wirings = served, wirings
        self.tokens: dict[tuple[str, str], str] = {}

    def client(self, tenant: str, token: str | None = None, cookie: bool = False) -> AsyncClient:
        headers = {"Authorization": f"Bearer {token}"} if token and not cookie else {}
        client = AsyncClient(transport=ASGITransport(app=self.served), base_url=HOSTS[tenant], headers=headers)
        if token and cookie:
            client.cookies.set("sayso_session_80", token)
        return client


def write_file(folder: Path, **rows: Mapping[str, Any]) -> Path:
    (folder / "policy.yaml").write_text(POLICY)
    file = folder / "tenants.yaml"
    desks = {name: {"public_url": url, "policy": "policy.yaml", **rows.get(name, {})} for name, url in HOSTS.items()}
    file.write_text(json.dumps({"tenants": desks}))
    return file


@pytest.fixture
async def house(clean_store_url: str, tmp_path: Path) -> AsyncIterator[House]:
    await check_format(clean_store_url)
    settings = Settings(
        redis_url=clean_store_url, tenants=write_file(tmp_path), home=tmp_path, webhook_secret=(SecretStr(SECRET),)
    )
    async with AsyncExitStack() as running:
        apps = {desk.public_url: create_app(desk) for desk in list_desks(settings).values()}
        for app in apps.values():
            await running.enter_async_context(app.router.lifespan_context(app))
        wirings = {name: apps[url].state.process.wiring for name, url in HOSTS.items()}
        house = House(TenantApps(apps), wirings)
        for name, wiring in wirings.items():
            await register_agent(wiring)
            house.tokens[name, "demo"] = await make_agent(wiring, "demo")
            house.tokens[name, "root"] = await make_person(wiring, "root", "reviewer", "admin", "auditor")
        yield house


async def make_ids(wiring: Wiring, word: str) -> dict[str, str]:
    """Make one of everything that has an id; return the ids by the names that paths give them."""
    pending = await make_pending(wiring, ask(order=word))
    person_name, group_name = f"{word}-ben", f"{word}-group"
    await make_person(wiring, person_name)
    await wiring.groups.create(group_name, (person_name,), (), "root")
    key, _ = await wiring.api_keys.create(f"{word}-bot")
    frozen = await wiring.freezes.freeze("agent:nobody", word, person("root"))
    return {
        "suspension_id": pending.id,
        "run_id": pending.run.id,
        "name": person_name,
        "group": group_name,
        "key_id": key.id,
        "freeze_id": frozen.id,
    }


def make_random_ids(real: Mapping[str, str]) -> dict[str, str]:
    """Return ids of the same kinds that nobody has."""
    random = {name: new_id(value.partition("_")[0]) for name, value in real.items() if "_" in value}
    return {**real, **random, "name": "nobody-ben", "group": "nobody-group"}


OTHERS = {
    "item_id": "i1",
    "session_id": "ses_" + "0" * 32,
    "endpoint_id": "whe_none",
    "sender_id": "whs_none",
    "channel": "none",
    "contact_id": "con_" + "0" * 32,
    "absence_id": "abs_" + "0" * 32,
    "seq": "2",
    "replay_id": "rpl_" + "0" * 32,
    "view_id": "view_" + "0" * 32,
    "grant_id": "gra_" + "0" * 32,
    "mandate_id": "man_" + "0" * 32,
    "inquiry_id": "inq_" + "0" * 32,
    "attachment_id": "att_" + "0" * 32,
    "version": "0" * 16,
}
"""Ids of what both desks lack, and numbers within a run or suspension."""

GIVEN = ("suspension_id", "run_id", "name", "group", "key_id", "freeze_id")
FOREIGN = [name for name, (_, path, _) in OPERATIONS.items() if any(f"{{{given}" in path for given in GIVEN)]


_CHANGING = "|".join(
    (
        r"\b[0-9a-f]{100,}\b",  # the secret of a form
        r"(err|sus|run)_[0-9a-f]{32}",
        r"\d{4}-\d\d-\d\d(T[\d:.]+Z)?|\d\d:\d\d(:\d\d)?|\b1[78]\d{11}\b|\b\d+ ?ms\b",
    )
)


def mask(text: str, ids: Mapping[str, str]) -> str:
    """Return an answer without the ids that were asked for, and without what differs between any two answers."""
    for value in sorted(ids.values(), key=len, reverse=True):
        text = text.replace(value, "<id>")
    return re.sub(_CHANGING, "<new>", text)


@pytest.mark.parametrize("who", ["demo", "root"])
@pytest.mark.parametrize("name", FOREIGN)
async def test_id_of_another_tenant_is_answered_like_one_that_nobody_has(house: House, name: str, who: str) -> None:
    method, path, _ = OPERATIONS[name]
    real = await make_ids(house.wirings["acme"], CANARY)
    body = ROWS[name].body
    answers = []
    for ids in (real, make_random_ids(real)):
        async with house.client("globex", house.tokens["globex", who]) as client:
            answer = await client.request(method, fill(path, ids), json=body)
        answers.append((answer.status_code, mask(answer.text, ids), sorted({*answer.headers} - {"content-length"})))
    assert answers[0] == answers[1]
    assert CANARY not in answers[0][1]


def fill(path: str, ids: Mapping[str, str]) -> str:
    return re.sub(r"{(\w+)(:\w+)?}", lambda named: {**OTHERS, **ids}.get(named[1], "none"), path)


PAGE_PATHS = sorted(
    {
        route.path
        for router in PAGES
        for route in router.routes
        if isinstance(route, Route) and "GET" in (route.methods or ())
    }
)


@pytest.mark.parametrize("path", PAGE_PATHS)
async def test_page_shows_nothing_of_another_tenant(house: House, path: str) -> None:
    real = await make_ids(house.wirings["acme"], CANARY)
    pages = []
    for ids in (real, make_random_ids(real)):
        place = fill(path, ids)
        async with house.client("globex", house.tokens["globex", "root"], cookie=True) as client:
            if "live" in place:
                return  # a stream has no end; what wakes it is a topic of the tenant
            answer = await client.get(place)
        pages.append((answer.status_code, mask(answer.text, ids)))
    assert pages[0] == pages[1]
    assert CANARY not in pages[0][1]


LISTS = [name for name, (method, path, _) in OPERATIONS.items() if method == "GET" and "{" not in path]


@pytest.mark.parametrize("name", LISTS)
async def test_list_has_nothing_of_another_tenant(house: House, name: str) -> None:
    real = await make_ids(house.wirings["acme"], CANARY)
    for who in ("demo", "root"):
        async with house.client("globex", house.tokens["globex", who]) as client:
            text = (await client.get(OPERATIONS[name][1])).text
        assert not [value for value in (CANARY, *real.values()) if value in text]


@pytest.mark.parametrize("who", ["demo", "root"])
async def test_credential_of_another_tenant_is_none(house: House, who: str) -> None:
    token = house.tokens["acme", who]
    async with house.client("acme", token) as own, house.client("globex", token) as other:
        assert (await own.get("/api/v1/runs")).status_code == 200
        assert (await other.get("/api/v1/runs")).status_code == 401
    async with house.client("globex", token, cookie=True) as browser:
        assert (await browser.get("/")).status_code == 303


@pytest.mark.parametrize("kind", ["provisioner", "directory"])
async def test_machine_key_of_another_tenant_is_none(house: House, kind: Any) -> None:
    _, key = await house.wirings["acme"].api_keys.create("machine", kind=kind)
    path = "/scim/v2/Users" if kind == "directory" else "/api/aap/v1/instances/00000000-0000-0000-0000-000000000000"
    async with house.client("acme", key) as own, house.client("globex", key) as other:
        assert (await own.get(path)).status_code in (200, 404)
        assert (await other.get(path)).status_code == 401


async def test_same_name_is_another_person_with_another_password(house: House) -> None:
    await house.wirings["acme"].reviewers.set_password("root", "another battery")
    async with house.client("acme") as acme, house.client("globex") as globex:
        credentials = {"name": "root", "password": "another battery"}
        opened = await acme.post("/api/v1/sessions", json=credentials)
        refused = await globex.post("/api/v1/sessions", json=credentials)
    assert (opened.status_code, refused.status_code) == (201, 401)


async def test_host_of_no_tenant_is_misdirected_except_for_probes(house: House) -> None:
    async with AsyncClient(transport=ASGITransport(app=house.served), base_url="http://10.0.0.7:8321") as client:
        assert (await client.get("/")).status_code == 421
        assert (await client.get("/healthz")).status_code == 200


async def test_tenants_in_different_stores_share_nothing(clean_store_url: str, tmp_path: Path) -> None:
    other = re.sub(r"db=\d+|/\d+$", lambda found: found[0][:-1] + str((int(found[0][-1]) + 1) % 10), clean_store_url)
    assert other != clean_store_url
    settings = Settings(redis_url=clean_store_url, tenants=write_file(tmp_path, globex={"redis_url": other}))
    desks = list_desks(settings)
    assert (desks["acme"].store_url, desks["globex"].store_url) == (clean_store_url, other)


def test_workers_of_another_tenant_are_not_counted_and_get_no_jobs(clean_store_url: str) -> None:
    worker = build_worker(clean_store_url, Worker, "w-1_acme", "acme")
    worker.register_birth()  # type: ignore[no-untyped-call]
    worker.set_state("idle")
    acme, globex = (DrainQueue(clean_store_url, 30, tenant) for tenant in ("acme", "globex"))
    try:
        assert [count_workers(clean_store_url, tenant) for tenant in ("acme", "globex")] == [1, 0]
        assert (globex.ensure(), acme.ensure()) == (0, 1)
    finally:
        worker.register_death()  # type: ignore[no-untyped-call]
        acme.close()
        globex.close()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("tenants: {}", "at least 1"),
        ("tenants: {Acme: {public_url: 'http://a'}}", "should match pattern"),
        ("tenants: {acme: {}}", "tenants.acme.public_url"),
        ("tenants: {acme: {public_url: 'http://a', port: 1}}", "tenants.acme.port"),
        ("tenants: {acme: {public_url: 'http://a/b'}}", "give nothing beside it"),
        ("tenants: {acme: {public_url: 'http://a'}, globex: {public_url: 'http://A'}}", "globex has the host of acme"),
        ("tenants: {acme: {public_url: 'http://a', redis_url: 'ftp://b'}}", "acme.redis_url"),
        ("tenants: [", "not YAML"),
    ],
)
def test_fault_of_the_file_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text(text)
    with pytest.raises(InvalidSettings, match=re.escape(says)):
        list_desks(Settings(tenants=file))


def test_missing_file_and_unknown_tenant_are_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="cannot be read"):
        list_desks(Settings(tenants=tmp_path / "none.yaml"))
    with pytest.raises(InvalidSettings, match=r"SAYSO_TENANT is default\. Set it to one of acme, globex"):
        find_desk(Settings(tenants=write_file(tmp_path)))


def test_desk_without_the_file_has_one_tenant() -> None:
    settings = Settings()
    assert list_desks(settings) == {"default": settings}
    assert find_desk(settings) is settings
    assert isinstance(create_app(settings), FastAPI)
