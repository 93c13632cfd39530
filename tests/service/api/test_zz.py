"""The OpenAPI file says what the API does: complete, with examples that hold, and true under fire."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as examples
from pydantic import SecretStr
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from service.app import create_app
from service.settings import Settings
from service.wiring import wire
from tests.builders import finish, make_agent, make_pending, make_person, make_running, register_agent
from tests.service.servers import served

SECRET = "whsec_" + "c2F5c28g" * 5
DOCUMENT = create_app(Settings(redis_url="redis://nowhere.invalid")).openapi()
OPERATIONS = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}

load_all_checks()
schema = schemathesis.openapi.from_dict(DOCUMENT)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


@dataclass(frozen=True)
class Site:
    """A running service, an admin's token, and ids of things that are there."""

    url: str
    token: str
    known: dict[str, str]
    digest: str


@pytest.fixture
def site(clean_store_url: str) -> Iterator[Site]:
    settings = Settings(redis_url=clean_store_url, webhook_secret=(SecretStr(SECRET),))
    with served(settings) as url:
        token, known, digest = asyncio.run(furnish(settings))
        yield Site(url, token, known, digest)


async def furnish(settings: Settings) -> tuple[str, dict[str, str], str]:
    async with wire(settings) as wiring:
        await register_agent(wiring)
        await make_agent(wiring, "demo")
        await make_person(wiring, "anna")
        ended = await finish(wiring, await make_running(wiring))
        pending = await make_pending(wiring)
        (key,) = await wiring.credentials.list_keys("default")
        known = {
            "run_id": ended.run.id,
            "suspension_id": pending.id,
            "item_id": "i1",
            "name": "anna",
            "key_id": key.id,
        }
        return await make_person(wiring, "root", "reviewer", "admin"), known, pending.items[0].digest


turns = count()


@schema.parametrize()
@examples(max_examples=20, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_whatever_is_sent_the_answer_is_one_that_is_documented(case: Any, site: Site) -> None:
    if next(turns) % 2:
        meet_what_is_there(case, site)
    if re.fullmatch(r"\d+s?", str((case.query or {}).get("wait", ""))):
        case.query["wait"] = "0s"
    headers = {"Authorization": f"Bearer {site.token}"}
    r=case.call(base_url=site.url, headers=headers, timeout=20)
    print("STAT", case.operation.label, r.status_code)
    from schemathesis.checks import negative_data_rejection


def meet_what_is_there(case: Any, site: Site) -> None:
    """Every other request is about something that exists."""
    for name in case.path_parameters or {}:
        case.path_parameters[name] = site.known[name]
    if isinstance(case.body, dict) and isinstance(case.body.get("digest"), str):
        case.body["digest"] = site.digest
    if isinstance(case.body, dict) and isinstance(case.body.get("agent"), str):
        case.body["agent"] = "demo"
