"""The OpenAPI document is complete, and its examples are valid."""

import json
import re

import pytest

from sayso.core.records.decisions import DecisionRequest
from service.app import create_app
from service.core.settings import Settings
from service.edge.api.runs import RunRequest
from tests.service.worlds import World

DOCUMENT = create_app(Settings(redis_url="redis://nowhere.invalid")).openapi()
OPERATIONS = {
    operation["operationId"]: operation for methods in DOCUMENT["paths"].values() for operation in methods.values()
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operation_documents_its_problems(name: str) -> None:
    operation = OPERATIONS[name]
    assert operation["description"].endswith(".")
    assert len(operation["tags"]) == 1
    assert {"413", "422", "500", "503"} <= set(operation["responses"])
    for status, response in operation["responses"].items():
        kinds = set(response.get("content", {}))
        assert kinds == {"application/problem+json"} if int(status) >= 400 else "application/problem+json" not in kinds


def test_every_tag_is_described() -> None:
    used = {tag for operation in OPERATIONS.values() for tag in operation["tags"]}
    assert used == {tag["name"] for tag in DOCUMENT["tags"]}


def test_every_schema_reference_resolves() -> None:
    named = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(DOCUMENT)))
    assert named <= set(DOCUMENT["components"]["schemas"])


def test_examples_are_valid_requests() -> None:
    for example in DOCUMENT["components"]["schemas"]["RunRequest"]["examples"]:
        RunRequest.model_validate(example)
    content = OPERATIONS["decideItem"]["requestBody"]["content"]["application/json"]
    for example in content["examples"].values():
        DecisionRequest.model_validate(example["value"])
    assert len(content["examples"]) == 4


async def test_openapi_document_needs_no_credential(world: World) -> None:
    async with world.client() as client:
        assert (await client.get("/api/openapi.json")).json() == world.app.openapi()
