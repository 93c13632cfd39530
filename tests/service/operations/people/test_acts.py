"""The tables of acts name every operation and form that changes something."""

from collections.abc import Iterator
from typing import Any

from starlette.routing import Route

from service.api.routers import api
from service.app import create_app
from service.operations.people.acts import ACTS, NO_ACTS, NO_PAGE_ACTS, PAGE_ACTS
from service.settings import Settings
from service.web.form_posts import RecordedRoute
from service.web.routes import PAGES


def list_operations() -> Iterator[str]:
    """Yield the ids of operations that are no reads."""
    document: dict[str, Any] = create_app(Settings()).openapi()
    for path, methods in document["paths"].items():
        if path.startswith(api.prefix):
            yield from (one["operationId"] for method, one in methods.items() if method not in ("get", "head"))


def list_forms() -> list[Route]:
    return [one for page in PAGES for one in page.routes if isinstance(one, Route) and "POST" in (one.methods or ())]


def test_every_operation_is_an_act_or_named_as_none() -> None:
    assert {*list_operations()} == {*ACTS} | NO_ACTS
    assert not NO_ACTS & {*ACTS}


def test_every_form_is_an_act_or_named_as_none() -> None:
    paths = {one.path for one in list_forms()}
    assert paths | {"/history/export"} == {*PAGE_ACTS} | (NO_PAGE_ACTS & paths)
    assert not NO_PAGE_ACTS & {*PAGE_ACTS}


def test_every_form_that_is_an_act_is_recorded() -> None:
    assert [one.path for one in list_forms() if one.path in PAGE_ACTS and not isinstance(one, RecordedRoute)] == []
