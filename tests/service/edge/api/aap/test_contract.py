"""The OpenAPI document of `/api/aap` matches the protocol and the service's answers."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck
from hypothesis import settings as examples
from schemathesis.checks import load_all_checks, not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from starlette.datastructures import State

from service.assembly import assemble
from service.core.settings import Settings
from service.edge.api.aap.app import create_aap
from service.edge.api.aap.models import NewRequest
from tests.service.edge.api.aap.clients import make_instance, make_provisioner
from tests.service.servers import served
from tests.service.worlds import World

DOCUMENT = create_aap(State(), "test").openapi()
OPERATIONS = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}
CODE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")

load_all_checks()
schema = schemathesis.openapi.from_dict(DOCUMENT)
ALWAYS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
WHEN_AS_DRAWN = [negative_data_rejection, missing_required_header, unsupported_method]


@dataclass(frozen=True)
class Site:
    """A running service, the tokens of both kinds, and ids of things that are there."""

    url: str
    provisioner: str
    instance: str
    instance_id: str
    request_id: str


@pytest.fixture
def site(clean_store_url: str) -> Iterator[Site]:
    settings = Settings(redis_url=clean_store_url)
    with served(settings) as url:
        yield asyncio.run(furnish(settings, url))


async def furnish(settings: Settings, url: str) -> Site:
    async with assemble(settings) as wiring:
        provisioner = await make_provisioner(wiring)
        async with make_instance(url, provisioner) as instance:
            answer = await instance.ask("refund", {"amount": 1})
            return Site(url, provisioner, instance.token, instance.id, answer.json()["id"])


turns = count()


@schema.parametrize()
@examples(max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_answers_match_the_openapi_document(case: Any, site: Site) -> None:
    if (case.query or {}).get("wait"):
        case.query["wait"] = "1s"
    instances = case.path.startswith("/v1/instances")
    checks = [*ALWAYS, *WHEN_AS_DRAWN]
    if next(turns) % 2:
        checks = ALWAYS
        if case.path_parameters:
            case.path_parameters["id"] = site.instance_id if instances else site.request_id
    headers = {"Authorization": f"Bearer {site.provisioner if instances else site.instance}"}
    case.call_and_validate(base_url=f"{site.url}/api/aap", headers=headers, checks=checks, timeout=20)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_documents_its_errors(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["description"].endswith(".")
    assert {"401", "403", "429", "500", "503"} <= set(operation["responses"])
    for status, response in operation["responses"].items():
        assert response["headers"]["X-Request-ID"]["required"]
        if int(status) >= 400:
            assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorDocument"}


def test_examples_are_valid_requests() -> None:
    for example in DOCUMENT["components"]["schemas"]["NewRequest"]["examples"]:
        NewRequest.model_validate(example)


async def test_openapi_document_needs_no_credential(world: World) -> None:
    async with world.client() as client:
        assert (await client.get("/api/aap/openapi.json")).json() == DOCUMENT | {
            "info": DOCUMENT["info"] | {"version": "0.2.0"}
        }
