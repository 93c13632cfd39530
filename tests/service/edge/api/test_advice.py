"""Every refusal at the door of the API that gives advice is followed: the corrected request succeeds.

An advice in one of `SOURCES` without a row in `TABLE` fails the last test. Rows of other places belong here, too.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from service.core.settings import CHECKOUT
from tests.service.worlds import World

SOURCES = (
    "sayso/core/canonical_json.py",
    "service/edge/http/bodies.py",
    "service/edge/http/middleware.py",
    "service/edge/api/routes.py",
)
_ADVICE = re.compile(r"(?:^|[.;:,] )((?:send|correct|flatten|add|remove|compare|write|rename)\b[^.;]*)", re.IGNORECASE)
_ELSEWHERE = {
    "Send plain values": "only Python can pass what is not JSON; tests/sayso/core/test_canonical_json.py",
    "write its sentence": "no refusal",
    "Send it again in": "followed in tests/service/edge/http/test_middleware.py",
    "Send less, or sign in first": "followed in tests/service/edge/web/test_sign_ins.py",
    "Compare it with": "names a document",
    "write it as args": "of grants, whose page lists the arguments",
    "send the item's own": "followed below, with an item",
}
JSON = {"Content-Type": "application/json"}
CALL = {"tool": "move", "args": {}, "definition": {"parameters": {"properties": {"n": {"type": "integer"}}}}}
BODY: dict[str, Any] = {"mode": "poll", "calls": [CALL]}


class Followed(NamedTuple):
    """An advice, a request that gets it, and the request that follows it."""

    advice: str
    refused: bytes
    followed: bytes
    headers: dict[str, str] = JSON
    corrected: dict[str, str] = JSON
    place: str = "/api/v1/suspensions"
    who: str = "demo"


def body(**fields: Any) -> bytes:
    return json.dumps({**BODY, **fields}).encode()


def number(text: str) -> bytes:
    return body(calls=[{**CALL, "args": {"n": "N"}}]).replace(b'"N"', text.encode())


def context(text: str) -> bytes:
    return body(context={"a": "X"}).replace(b'"X"', text.encode())


def absence(zone: str) -> bytes:
    return json.dumps({"starts_at": f"2099-01-01T00:00:00{zone}", "ends_at": f"2099-01-09T00:00:00{zone}"}).encode()


def freeze(scope: str) -> bytes:
    return json.dumps({"scope": scope, "reason": "a test"}).encode()


ACCOUNT = "/api/v1/account"
GOOD = body()
TABLE = [
    Followed("Send UTF-8 JSON", body(title="\u00e9").replace(b"\\u00e9", b"\xe9"), body(title="\u00e9")),
    Followed("Correct it and try again", GOOD[:-1], GOOD),
    Followed("Flatten it", context("[" * 40 + "]" * 40), context("[[]]")),
    Followed("Send fewer digits", number("9" * 4_001), number("9" * 4_000)),
    Followed("Send fewer digits", number("9" * 5_000), number("-" + "9" * 4_000)),
    Followed("Send fewer", context("[" + "0," * 25_000 + "0]"), context("[0]")),
    Followed("Send it once", GOOD[:-1] + b',"mode":"poll"}', GOOD),
    Followed("Send null or a string instead", context("NaN"), context("null")),
    Followed("Send null or a string instead", context("1e999"), context('"1e999"')),
    Followed("Send whole characters", context('"\\ud800"'), context('"\\ud83d\\ude00"')),
    Followed("Send one JSON object", b"", GOOD),
    Followed("Send plain JSON", GOOD, GOOD, {**JSON, "Content-Encoding": "gzip"}),
    Followed("Send Content-Type: application/json", GOOD, GOOD, {"Content-Type": "application/json; charset=latin-1"}),
    Followed("Send one credential", GOOD, GOOD, {**JSON, "Authorization": "Basic eDp5"}),
    Followed("Send it once", GOOD, GOOD, place="/api/v1/suspensions?limit=1&limit=1"),
    Followed("Send less", body(title="x" * 6_000_000), GOOD),
    Followed("add it", json.dumps({"mode": "poll"}).encode(), GOOD),
    Followed("remove it", body(colour="red"), GOOD),
    Followed("send one", b"[]", GOOD),
    Followed("Correct it and send it again", body(calls=[]), GOOD),
    Followed(
        "write it as 2026-11-21T12:00:00Z", absence(""), absence("Z"), place="/api/v1/account/absences", who="anna"
    ),
    Followed("write all, agent:<name> or", freeze("demo"), freeze("agent:demo"), place="/api/v1/freezes", who="root"),
    Followed("rename the tool with", body(calls=[{**CALL, "tool": "p y"}]), body(calls=[{**CALL, "tool": "p_y"}])),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.advice)
async def test_advice_leads_to_success_when_it_is_followed(world: World, row: Followed) -> None:
    async with world.client(row.who) as client:
        method = "GET" if "?" in row.place else "POST"
        refused = await client.request(method, row.place, content=row.refused, headers=row.headers)
        assert 400 <= refused.status_code < 500, refused.text
        assert row.advice.lower() in refused.json()["detail"].lower()
        place = row.place.partition("&")[0]
        followed = await client.request(method, place, content=row.followed, headers=row.corrected)
        assert followed.status_code in (200, 201), followed.text


async def test_advice_on_a_digest_leads_to_a_decision(world: World) -> None:
    async with world.client("demo") as demo, world.client("anna") as anna:
        made = (await demo.post("/api/v1/suspensions", content=GOOD, headers=JSON)).json()
        place = f"/api/v1/suspensions/{made['id']}/items/i1/decision"
        refused = await anna.post(place, json={"action": "approve", "digest": "abc"})
        assert "send the item's own, 64 of 0-9 and a-f" in refused.json()["detail"]
        followed = await anna.post(place, json={"action": "approve", "digest": made["items"][0]["digest"]})
        assert followed.status_code == 200, followed.text


def list_advice(path: Path) -> Iterator[str]:
    """Yield each advice in the texts of a module, without its docstrings."""
    tree = ast.parse(path.read_text())
    documented = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        if node.body and isinstance(node.body[0], ast.Expr)
    } | {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documented:
            yield from (found[1].strip() for found in _ADVICE.finditer(node.value))


@pytest.mark.parametrize("source", SOURCES)
def test_each_advice_of_the_door_is_followed(source: str) -> None:
    known = [*(row.advice.lower() for row in TABLE), *(one.lower() for one in _ELSEWHERE)]
    advice = [*dict.fromkeys(list_advice(CHECKOUT / source))]
    assert advice
    lacking = [one for one in advice if not any(name in one.lower() or one.lower() in name for name in known)]
    assert lacking == [], "add a row that follows it"
