"""No GET changes the store, but for sightings of items, entries on exports, and steps of OAuth."""

import asyncio
from functools import partial
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.routing import Mount, Route

from sayso.core.records.items import Item
from sayso.core.records.permissions import Envelope, MandatedTool
from sayso.features.permissions.making import name_mandate
from service.app import create_app
from service.core.settings import Settings
from service.core.store.activity import Activity
from service.core.store.connection.formats import check_format
from service.core.wiring import Wiring
from service.features.discussions.discussing import attach
from service.features.pages import PAGES
from service.features.sdk import find_wheel
from service.features.whatif.store import Replay, ReplayStore
from tests.builders import ask, make_agent, make_pending, make_person, person, register_agent
from tests.service.core.operations.test_sightings import UNATTENDED
from tests.service.damages import KEYS
from tests.service.edge.web.sites import Site
from tests.service.edge.web.test_gallery import gallery
from tests.service.worlds import read_store

pytestmark = pytest.mark.usefixtures("sdk_wheel")

SEES = ("/items/{suspension_id}/{item_id}", "/api/v1/suspensions/{suspension_id}")
"""They note once that a reviewer saw an item, where its fallback or its delivery depends on it."""

INSTALLS = ("/install/slack/{name}", "/install/slack/{name}/done")
"""OAuth prescribes GET. They save a state for one use and a token, for admins and a configured channel only."""

SIGN_INS = ("/sign-in/{provider}", "/sign-in/{provider}/callback", "/sign-in/{provider}/end")
"""OpenID Connect prescribes GET. They save a state for one use, and open a session, for a provider of the file only."""

BUILT = ("/sdk/npm/@sayso/client",)
"""npm builds what it serves, and a machine may lack npm."""

EXPORTS = {
    "/history/export": ("history_exported", "web", [303, 200, 303, 303]),
    "/api/v1/history/export": ("history_exported", "api", [401, 401, 200, 403]),
    "/api/v1/overrides": ("overrides_exported", "api", [401, 401, 200, 200]),
    "/api/v1/evidence": ("evidence_exported", "api", [401, 401, 200, 403]),
}
"""Each adds one entry a reader to the activity log: its act and door, and the statuses by credential."""

QUERIES = {"/api/v1/evidence": "?run={run_id}"}
"""What a path needs after it."""


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """Set up the store: one that was never set up is not ready."""
    asyncio.run(check_format(settings.store_url))
    return settings


def list_gets(app: FastAPI) -> list[str]:
    """Return the paths of all routes that take GET."""
    found = [path for path, methods in app.openapi()["paths"].items() if "get" in methods]
    found += [route.path for pages in PAGES for route in pages.routes if isinstance(route, Route) if _gets(route)]
    for route in app.routes:
        if isinstance(route, Route) and _gets(route):
            found.append(route.path)
        elif isinstance(route, Mount) and isinstance(route.app, FastAPI):
            found += [f"{route.path}{path}" for path in list_gets(route.app)]
    return found


def _gets(route: Route) -> bool:
    return "GET" in (route.methods or ())


async def populate(wiring: Wiring) -> dict[str, Any]:
    """Fill a desk with one of everything; return names for the parameters of paths, and credentials."""
    root = await make_person(wiring, "root", "reviewer", "admin")
    places = await gallery(wiring)
    await register_agent(wiring)
    key = await make_agent(wiring, "demo")
    unattended = await make_pending(wiring, ask(terms=UNATTENDED))
    await wiring.freezes.freeze("agent:nobody", "", person("root"))
    calls = MandatedTool(tool="refund", definition="d" * 64)
    envelope = Envelope(for_s=60, count=1, tools=(calls,))
    plan = await make_pending(wiring, ask().model_copy(update={"mandate": envelope}))
    file = await attach(wiring, unattended.id, "i1", "log.txt", b"a log", person("ben"))
    replay = Replay(id="rpl_1", by="root", file="f", version="v", from_ms=0, to_ms=1, started_at_ms=0, updated_at_ms=0)
    await wiring.part(ReplayStore).create(replay)
    await wiring.desk.claim(unattended.id, "i1", person("ben"))
    return {
        "suspension_id": unattended.id,
        "item_id": "i1",
        "run_id": places["run"].removeprefix("/runs/"),
        "attachment_id": file.id,
        "name": "anna",
        "provider": "company",
        "group": "payments",
        "id": "x",
        "mandate_id": name_mandate(plan.id),
        "like": f"{unattended.id}-i1",
        "replay_id": replay.id,
        "version": wiring.rules.policy().version,
        "rule_id": "never-over-1000",
        "file": find_wheel()[0],
        "token": "0" * 64,
        "root": root,
        "key": key,
    }


def read_all(site: Site, names: dict[str, Any], template: str) -> list[int]:
    """Get a path with every kind of credential; return the statuses. A stream is left after its headers."""
    place = f"{template}{QUERIES.get(template, '')}".format(**names)
    statuses = []
    for headers in (
        {},
        {"Cookie": f"sayso_session_8321={names['root']}"},
        {"Authorization": f"Bearer {names['root']}"},
        {"Authorization": f"Bearer {names['key']}"},
    ):
        with httpx.stream("GET", f"{site.url}{place}", headers=headers, timeout=30) as response:
            statuses.append(response.status_code)
            if "event-stream" not in response.headers.get("content-type", ""):
                response.read()
    return statuses


def compare(site: Site, before: dict[bytes, bytes | None]) -> set[bytes]:
    """Return the keys whose values changed."""
    after = asyncio.run(read_store(site.settings.store_url))
    return {key for key in {*before, *after} if before.get(key) != after.get(key)}


async def read_log(wiring: Wiring) -> list[Activity]:
    return (await wiring.activity.read_page(0, 200)).entries


async def read_item(wiring: Wiring, suspension_id: str) -> Item:
    return (await wiring.desk.suspensions.read(suspension_id)).record.items[0]


def test_no_get_changes_the_store(site: Site) -> None:
    names = site.act(populate)
    read_all(site, names, "/me/notifications")  # the first reader makes the desk's key for web push
    before = asyncio.run(read_store(site.settings.store_url))
    walked = list_gets(create_app(site.settings))
    assert {*SEES, *INSTALLS, *SIGN_INS, *EXPORTS, "/", "/live", "/api/v1/runs", "/api/aap/v1/requests/{id}"} <= {
        *walked
    }
    for template in walked:
        if template in (*SEES, *EXPORTS):
            continue
        statuses = read_all(site, names, template)
        assert max(statuses) < 500, template
        closed = (*INSTALLS, *SIGN_INS, *BUILT)
        assert min(statuses) < 400 or template in closed or template.startswith("/api/aap"), template
        assert compare(site, before) == set(), template


@pytest.mark.parametrize("path", EXPORTS)
def test_export_adds_one_entry_to_the_log_and_changes_nothing_else(site: Site, path: str) -> None:
    names = site.act(populate)
    known = site.act(read_log)
    before = asyncio.run(read_store(site.settings.store_url))
    act, door, statuses = EXPORTS[path]
    assert read_all(site, names, path) == statuses
    changed = compare(site, before)
    done = [entry for entry in site.act(read_log)[: -len(known) or None] if entry.outcome == "done"]
    readers = ["demo", "root"] if statuses[-1] == 200 else ["root"]
    assert [(entry.act, entry.by, entry.door) for entry in done] == [(act, name, door) for name in readers]
    assert KEYS.activity.encode() in changed
    assert [key for key in changed if b"activity" not in key and b":refusals:" not in key] == []


def test_sighting_changes_only_the_item(site: Site) -> None:
    names = site.act(populate)
    for template, again in (SEES, SEES[::-1]):
        record = site.act(lambda wiring: make_pending(wiring, ask(terms=UNATTENDED)))
        before = asyncio.run(read_store(site.settings.store_url))
        fresh = {**names, "suspension_id": record.id}
        read_all(site, fresh, template)
        changed = compare(site, before)
        assert changed
        changed = {key for key in changed if not key.endswith(b":unchecked")}  # events for the next checkpoint
        own = (record.id.encode(), record.run.id.encode(), b":commits")
        assert all(any(part in key for part in own) for key in changed), changed
        seen, item = site.act(partial(read_item, suspension_id=record.id)), record.items[0]
        assert seen == item.model_copy(update={"seen_by": seen.seen_by, "seen_at_ms": seen.seen_at_ms})
        before = asyncio.run(read_store(site.settings.store_url))
        read_all(site, fresh, again)
        assert compare(site, before) == set()
