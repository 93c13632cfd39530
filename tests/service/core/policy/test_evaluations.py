"""Nothing that an agent sends is evaluated where it keeps the service from answering others."""

import asyncio
from typing import Any

import pytest
from httpx import Response

from sayso.core.canonical_json import JsonObject
from sayso.errors import InvalidInput, TooManyRequests
from service.core.concurrency import Turns
from service.core.policy.evaluations import Evaluations, Fit
from service.edge.web.sessions import cookie_name
from tests.service.edge.web.sites import let_in
from tests.service.hostiles import ALIASES, BRACKETS, CONDITIONS, RECURSIVE, deep
from tests.service.worlds import World


async def ask(world: World, schema: dict[str, Any], args: Any) -> Response:
    call = {"tool": "look", "args": args, "definition": {"parameters": schema}}
    async with world.client("demo") as client:
        return await client.post("/api/v1/suspensions", json={"mode": "poll", "calls": [call]})


async def check(world: World, text: str) -> Response:
    async with world.client("demo") as client:
        return await client.post("/api/v1/policy/check", json={"text": text}, timeout=60)


async def answers_meanwhile(world: World, hostile: "asyncio.Task[Response]") -> bool:
    """Whether others are answered while it is evaluated: more than once, so that it was under way."""
    async with world.client() as client:
        for _ in range(3):
            assert (await client.get("/healthz")).status_code == 200
    return not hostile.done()


async def test_the_service_answers_while_a_hostile_schema_is_evaluated(world: World) -> None:
    hostile = asyncio.create_task(ask(world, RECURSIVE, deep(24)))
    assert await answers_meanwhile(world, hostile)
    refused = await hostile
    assert refused.status_code == 422
    assert "It is unknown whether calls[0].args fits its schema" in refused.json()["detail"]
    assert "and was ended" in refused.json()["detail"]  # by its time or its memory, whichever is over first


async def test_a_reviewers_edit_fails_closed_where_its_schema_cannot_be_judged(world: World) -> None:
    asked = (await ask(world, RECURSIVE, {"x": {"x": 1}})).json()
    item = asked["items"][0]
    word = {"action": "approve", "digest": item["digest"], "args": deep(24)}
    async with world.client("anna") as client:
        path = f"/api/v1/suspensions/{asked['id']}/items/{item['item_id']}"
        hostile = asyncio.create_task(client.post(f"{path}/decision", json=word))
        assert await answers_meanwhile(world, hostile)
        assert (await hostile).status_code == 422
        assert (await client.get(f"/api/v1/suspensions/{asked['id']}")).json()["status"] == "pending"


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"anyOf": [{}] * 1_001}, "1001 alternatives"),
        ({"pattern": "(" * 1_001}, "a pattern of 1001 characters"),
        ({"description": "x" * 140_000}, "the limit is 131072"),
    ],
)
async def test_a_schema_beyond_the_bounds_is_refused_at_once(world: World, schema: dict[str, Any], said: str) -> None:
    refused = await ask(world, schema, {})
    assert refused.status_code == 422
    assert said in refused.json()["detail"]


@pytest.mark.parametrize("text", [BRACKETS, ALIASES, CONDITIONS], ids=["brackets", "aliases", "conditions"])
async def test_the_service_answers_while_hostile_rules_are_checked(world: World, text: str) -> None:
    hostile = asyncio.create_task(check(world, text))
    assert await answers_meanwhile(world, hostile)
    checked = await hostile
    assert checked.status_code == 200
    assert len(checked.json()["faults"]) <= 201


async def test_one_caller_is_evaluated_one_after_the_other() -> None:
    turns, inside = Turns(waiting=2), asyncio.Event()

    async def hold() -> None:
        async with turns.take("demo"):
            inside.set()
            await asyncio.Event().wait()

    holding = [asyncio.create_task(hold()) for _ in range(2)]
    await inside.wait()
    with pytest.raises(TooManyRequests, match="are being evaluated"):
        async with turns.take("demo"):
            raise AssertionError("nobody gets here")
    async with turns.take("other"):
        pass
    for one in holding:
        one.cancel()
    await asyncio.gather(*holding, return_exceptions=True)
    async with turns.take("demo"):
        pass


WIDE: JsonObject = {"items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}


@pytest.mark.parametrize(
    ("fit", "here"),
    [
        (Fit({"properties": {"a": {"type": "string", "pattern": r"^\d{4}$"}}}, {"a": "2026"}, "args"), True),
        (Fit(WIDE, ["x"] * 1_000, "args"), True),
        (Fit(WIDE, [1] * 1_000, "args"), False),
        (Fit(WIDE, ["x"] * 20_000, "args"), False),
        (Fit({"pattern": "(a{50}){50}"}, "a" * 10_000, "args"), False),
        (Fit(RECURSIVE, {"x": 1}, "args"), False),
        (Fit({"properties": {f"p{n}": {"type": "string"} for n in range(900)}}, {}, "args"), False),
        (Fit({"format": "idn-hostname"}, "a", "value", formats=True), False),
        (Fit({"format": "date"}, "2026-11-22", "value", formats=True), True),
    ],
)
def test_only_what_is_cheap_for_certain_is_evaluated_in_the_service(fit: Fit, here: bool) -> None:
    assert fit.check_here() is here


@pytest.mark.parametrize("schema", [{"type": "string"}, {"pattern": "^(?=a)", "type": "string"}], ids=["here", "apart"])
async def test_invalid_value_has_the_same_message_everywhere(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        await Evaluations().check_value({"properties": {"a": schema}}, {"a": 1}, "args", caller="demo")
    assert refused.value.facts["problems"] == ['args.a: 1 is not of type "string"']


async def test_an_enum_that_is_missed_lists_its_values_or_says_where_they_are() -> None:
    few, many = [f"option-{n}" for n in range(30)], [f"option-{n}" for n in range(900)]
    for offered in (few, many):
        with pytest.raises(InvalidInput) as refused:
            await Evaluations().check_value(
                {"properties": {"a": {"enum": [*offered]}}}, {"a": "x"}, "args", caller="me"
            )
        message = refused.value.message
        if offered is few:
            assert all(f'"{one}"' in message for one in few)
        else:
            assert "more; the schema lists them at properties/a/enum" in message


async def test_the_service_answers_while_a_page_of_thousands_of_values_is_shown(world: World) -> None:
    asked = (await ask(world, {"type": "object"}, {"rows": [{"a": n, "b": "y"} for n in range(4_000)]})).json()
    settings = world.wiring.settings
    async with world.client() as client:
        client.cookies.set(cookie_name(settings), await let_in(settings, "ben"))
        page = asyncio.create_task(client.get(f"/items/{asked['id']}/{asked['items'][0]['item_id']}"))
        assert await answers_meanwhile(world, page)
        shown = await page
    last = '3<span class="three" data-group=",">999</span>'
    assert (shown.status_code, last in shown.text) == (200, True)
