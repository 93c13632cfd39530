"""Quick routes answer byte for byte as FastAPI does, to good, bad and hostile requests."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import NamedTuple

import pytest
from httpx import Response

from sayso.core.canonical_json import JsonObject, canonical_json
from service.app import create_app
from service.core.settings import Settings
from service.edge.api import suspensions
from service.edge.api.quick_routes import serve_quickly
from service.edge.api.routes import SignedInRoute
from tests.builders import make_pending
from tests.service.worlds import World

Header = tuple[bytes, bytes]
JSON = (b"content-type", b"application/json")


class Request(NamedTuple):
    """A request of `who`, for a path with the ids of a suspension, its run and its digest."""

    name: str
    method: str
    path: str
    who: str | None = "anna"
    body: bytes = b""
    headers: tuple[Header, ...] = ()


@pytest.fixture
async def plain(world: World, settings: Settings) -> AsyncIterator[World]:
    """The same world, served by FastAPI alone."""
    app = create_app(settings, quick=False)
    async with app.router.lifespan_context(app):
        yield replace(world, app=app)


async def send(world: World, one: Request) -> Response:
    async with world.client(one.who) as client:
        return await client.request(one.method, one.path, content=one.body or None, headers=[*one.headers])


def show(answer: Response) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return answer.status_code, answer.headers.raw, answer.content


SUSPENSION = "/api/v1/suspensions/{id}"
DECISION = f"{SUSPENSION}/items/i1/decision"
ASKS = "/api/v1/suspensions"
RUN = "/api/v1/runs/{run}"
YES = b'{"action": "approve", "digest": "%s"}' % (b"0" * 64)
ASK = b'{"agent": "demo", "calls": [{"tool": "refund", "args": {"order": "A-1", "amount": 900}}]}'

CREDENTIALS: tuple[tuple[str, tuple[Header, ...]], ...] = (
    ("no credential", ()),
    ("empty bearer", ((b"authorization", b"Bearer "),)),
    ("other scheme", ((b"authorization", b"Basic YTpi"),)),
    ("unknown token", ((b"authorization", b"Bearer nobody"),)),
    ("two credentials", ((b"authorization", b"Bearer a"), (b"authorization", b"Bearer b"))),
    ("control characters", ((b"authorization", b"Bearer \x01\xff"),)),
    ("a cookie instead", ((b"cookie", b"sayso=a"),)),
)
BODIES = (
    ("empty", b""),
    ("null", b"null"),
    ("a list", b"[]"),
    ("a text", b'"x"'),
    ("no JSON", b"{"),
    ("a repeated key", b'{"action": "deny", "action": "approve"}'),
    ("NaN", b'{"action": NaN}'),
    ("a large integer", b'{"action": 99999999999999999999}'),
    ("half a pair", b'{"action": "\\ud800"}'),
    ("not UTF-8", b'{"action": "\xff"}'),
    ("a NUL", b'{"action": "\\u0000"}'),
    ("deep", b"[" * 40 + b"]" * 40),
    ("many values", b"[" + b"1," * 20_001 + b"1]"),
    ("nothing in it", b"{}"),
    ("unknown fields", b'{"surprise": 1, "__proto__": {}}'),
    ("wrong types", b'{"action": 1, "digest": [], "calls": {}, "agent": 5, "success": "yes", "report_within_s": "1"}'),
    ("many faults", b'{"calls": [%s{}]}' % (b"{}," * 40)),
    ("too large", b'{"message": "%s"}' % (b"x" * 2_000_000)),
)
HEADERS: tuple[tuple[str, tuple[Header, ...]], ...] = (
    ("no type", ()),
    ("form", ((b"content-type", b"application/x-www-form-urlencoded"),)),
    ("Latin-1", ((b"content-type", b"application/json; charset=latin-1"),)),
    ("UTF-8", ((b"content-type", b'Application/JSON; charset="UTF-8"'),)),
    ("two types", (JSON, JSON)),
    ("gzip", (JSON, (b"content-encoding", b"gzip"))),
    ("two keys", (JSON, (b"idempotency-key", b"a"), (b"idempotency-key", b"b"))),
    ("a key with spaces", (JSON, (b"idempotency-key", b"a b"))),
    ("a long key", (JSON, (b"idempotency-key", b"k" * 201))),
    ("a good key", (JSON, (b"idempotency-key", b"k" * 200))),
    ("two people", (JSON, (b"sayso-on-behalf-of", b"a"), (b"sayso-on-behalf-of", b"b"))),
    ("an unknown person", (JSON, (b"sayso-on-behalf-of", b"a.b.c"))),
    ("an announced large body", (JSON, (b"content-length", b"99999999"))),
    ("another host", (JSON, (b"host", b"evil.example"), (b"x-forwarded-host", b"evil.example"))),
    ("another origin", (JSON, (b"origin", b"https://evil.example"))),
)
QUERIES = (
    "wait=61",
    "wait=",
    "wait",
    "wait=0",
    "wait=0s&wait=0s",
    "wait=-1s",
    "other=1",
    "wait=0s&x",
    "wait=%00",
    "%ff",
)
PATHS = (
    SUSPENSION,
    "/api/v1/suspensions/sus_unknown",
    f"/api/v1/suspensions/{'x' * 101}",
    "/api/v1/suspensions/%00",
    "/api/v1/suspensions/a%0Ab",
    "/api/v1/suspensions/a%2Fb",
    "/api/v1/suspensions/",
    f"{SUSPENSION}/",
    f"{SUSPENSION}/items/i9/decision",
    f"{SUSPENSION}/items/{'x' * 101}/decision",
    f"{SUSPENSION}/items/i1/decision/",
    f"/api/v1/suspensions/{'x' * 101}/items/{'x' * 101}/redeem",
    f"{SUSPENSION}/items/i1/redeem",
    f"{SUSPENSION}/items/i1/outcome",
    DECISION,
    "/api/v1/runs/run_unknown",
    RUN,
)
POSTS = (ASKS, DECISION, f"{SUSPENSION}/items/i1/redeem", f"{SUSPENSION}/items/i1/outcome", "/api/v1/runs")
PEOPLE = ("anna", "demo", "other")
REQUESTS = (
    *(
        Request(path + " with " + name, "POST", path, None, YES, (JSON, *sent))
        for path in POSTS
        for name, sent in CREDENTIALS
    ),
    *(Request("GET with " + name, "GET", SUSPENSION, None, b"", sent) for name, sent in CREDENTIALS),
    *(Request(f"{path}: {name}", "POST", path, "demo", body, (JSON,)) for path in POSTS for name, body in BODIES),
    *(Request(f"decide: {name}", "POST", DECISION, "anna", body, (JSON,)) for name, body in BODIES),
    *(Request(f"{path}: {name}", "POST", path, "demo", ASK, sent) for path in POSTS[1:] for name, sent in HEADERS),
    *(Request(f"decide: {name}", "POST", DECISION, "anna", YES, sent) for name, sent in HEADERS),
    *(Request(f"{path}?{query}", "GET", f"{path}?{query}") for path in (SUSPENSION, RUN) for query in QUERIES),
    *(
        Request(f"{path}?{query}", "POST", f"{path}?{query}", "anna", YES, (JSON,))
        for path in POSTS
        for query in QUERIES
    ),
    *(
        Request(f"{method} {path} by {name}", method, path, name, YES if method == "POST" else b"", (JSON,))
        for path in PATHS
        for method, names in (("GET", PEOPLE), ("POST", PEOPLE), ("HEAD", ("demo",)), ("PUT", ("demo",)))
        for name in names
    ),
)


async def test_every_refusal_is_the_same_both_ways(world: World, plain: World) -> None:
    record = await make_pending(world.wiring)
    differing = []
    for one in REQUESTS:
        path = one.path.replace("{id}", record.id).replace("{run}", record.run.id)
        answers = [show(await send(way, one._replace(path=path))) for way in (world, plain)]
        if answers[0] != answers[1]:
            differing.append((one.name, *answers))
    assert differing == []


async def test_every_answer_is_the_same_both_ways(world: World, plain: World) -> None:
    """Each request is repeated under its key the other way, in turn."""
    ways = [world, plain]

    async def same(method: str, path: str, name: str, body: JsonObject | None = None, key: str = "") -> Response:
        headers = (JSON, *(((b"idempotency-key", key.encode()),) if key else ()))
        one = Request("", method, path, name, canonical_json(body) if body is not None else b"", headers)
        ways.reverse()
        first, second = [await send(way, one) for way in ways]
        assert show(first) == show(second)
        assert first.status_code in (200, 201)
        return first

    for number in range(4):  # the quick way and FastAPI's alternate as the first
        definition: JsonObject = {"description": "Pay a customer back."}
        call: JsonObject = {"tool": "refund", "args": {"order": "A-é\u2028", "amount": 1e-7}, "definition": definition}
        ask: JsonObject = {"mode": "poll", "calls": [call], "title": "Refund", "context": {"a": [1.5, 1e22, None]}}
        asked = await same("POST", ASKS, "demo", ask, f"ask-{number}")
        found = asked.json()
        place = f"{ASKS}/{found['id']}"
        assert asked.headers["location"] == place
        assert (await same("GET", f"{place}?wait=0s", "demo")).json() == found
        yes: JsonObject = {"action": "approve", "digest": found["items"][0]["digest"]}
        await same("POST", f"{place}/items/i1/decision", "anna", yes, f"decide-{number}")
        await same("GET", f"{place}?wait=30s", "anna")  # decided, it does not wait
        await same("POST", f"{place}/items/i1/redeem", "demo", None, f"redeem-{number}")
        outcome: JsonObject = {"success": True, "output": {"paid": 1e22}}
        await same("POST", f"{place}/items/i1/outcome", "demo", outcome, f"redeem-{number}")
        await same("GET", f"/api/v1/runs/{found['run']['id']}?wait=5s", "demo")
        started = await same("POST", "/api/v1/runs", "demo", {"agent": "demo", "input": "x"}, f"start-{number}")
        await same("GET", started.headers["location"], "demo")
        ways.reverse()


def test_parameter_of_another_kind_is_refused() -> None:
    (route,) = (one for one in suspensions.router.routes if getattr(one, "operation_id", "") == "listSuspensions")
    assert isinstance(route, SignedInRoute)
    with pytest.raises(TypeError, match="cannot provide"):
        serve_quickly(route)
