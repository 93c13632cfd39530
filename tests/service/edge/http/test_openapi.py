"""The OpenAPI file is built once, for all clients and requests."""

import asyncio
from typing import Any

from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient

from service.edge.http.openapi import Document, serve_document
from tests.service.worlds import World


async def test_openapi_file_is_built_once_for_many_requests() -> None:
    built: list[FastAPI] = []

    def build(app: FastAPI) -> dict[str, Any]:
        built.append(app)
        return {"openapi": "3.1.0", "paths": {"/a/{id}": {"get": {}, "put": {}}}}

    app = FastAPI(openapi_url=None)
    document = serve_document(app, "/file.json", build)
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://127.0.0.1") as client:
        answers = await asyncio.gather(*(client.get("/file.json") for _ in range(20)))
    assert {answer.content for answer in answers} == {answers[0].content}
    assert answers[0].headers["content-type"] == "application/json"
    assert document() is document() is app.openapi()
    assert len(built) == 1
    ((pattern, methods),) = document.methods
    assert pattern.match("/a/5") is not None
    assert methods == {"GET", "PUT"}
    assert built == [app]


async def test_openapi_files_of_the_service_are_those_that_it_describes(world: World) -> None:
    async with world.client() as client:
        for path in ("/api/openapi.json", "/api/aap/openapi.json"):
            first, second = await client.get(path), await client.get(path)
            assert first.status_code == 200
            assert first.content == second.content
            assert first.json()["paths"]
    assert isinstance(world.app.openapi, Document)
