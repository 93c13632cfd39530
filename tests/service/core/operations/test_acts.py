"""The tables of acts name every operation and form that changes something."""

from collections.abc import Iterator
from typing import Any

from starlette.routing import Route

from service.app import create_app
from service.core.operations.acts import ACTS, NO_ACTS, NO_PAGE_ACTS, PAGE_ACTS
from service.core.settings import Settings
from service.edge.web.sessions import RecordedRoute
from service.features.pages import PAGES
from service.features.routers import api


def list_operations() -> Iterator[tuple[str, set[str]]]:
    """Yield the ids of operations that are no reads, each with the fields of its body."""
    document: dict[str, Any] = create_app(Settings()).openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items() if path.startswith(api.prefix) else ():
            if method not in ("get", "head"):
                yield operation["operationId"], {*find_fields(document, operation)}


def find_fields(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the body of an operation, none without a body."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    (schema,) = [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]
    name = schema.get("$ref", "").rpartition("/")[2]
    fields: dict[str, Any] = document["components"]["schemas"][name]["properties"] if name else {}
    return fields


def list_forms() -> list[Route]:
    return [one for page in PAGES for one in page.routes if isinstance(one, Route) and "POST" in (one.methods or ())]


def test_every_operation_is_an_act_or_named_as_none() -> None:
    assert {name for name, _ in list_operations()} | {"exportHistory", "exportEvidence", "exportOverrides"} == {
        *ACTS
    } | NO_ACTS
    assert not NO_ACTS & {*ACTS}


def test_log_keeps_fields_that_the_operation_takes() -> None:
    fields = {**dict.fromkeys(ACTS, frozenset[str]()), **dict(list_operations())}
    assert {name: {*act.fields} - fields[name] for name, act in ACTS.items() if {*act.fields} - fields[name]} == {}


def test_every_form_is_an_act_or_named_as_none() -> None:
    paths = {one.path for one in list_forms()}
    assert paths | {"/history/export"} == {*PAGE_ACTS} | (NO_PAGE_ACTS & paths)
    assert not NO_PAGE_ACTS & {*PAGE_ACTS}


def test_every_form_that_is_an_act_is_recorded() -> None:
    assert [one.path for one in list_forms() if one.path in PAGE_ACTS and not isinstance(one, RecordedRoute)] == []
