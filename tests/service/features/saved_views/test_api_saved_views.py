"""Saved views over HTTP."""

from typing import Any

import pytest

from tests.service.worlds import World

PATH = "/api/v1/account/views"


async def test_person_saves_lists_and_deletes_views(world: World) -> None:
    async with world.client("anna") as anna, world.client("root") as root:
        saved = await anna.post(PATH, json={"name": "Refunds", "search": "tool:refund"})
        assert saved.status_code == 201
        assert (await anna.get(PATH)).json() == {"views": [saved.json()]}
        assert (await root.get(PATH)).json() == {"views": []}
        assert (await root.delete(f"{PATH}/{saved.json()['id']}")).status_code == 404
        assert (await anna.delete(f"{PATH}/{saved.json()['id']}")).status_code == 204
        assert (await anna.get(PATH)).json() == {"views": []}


@pytest.mark.parametrize(
    "body", [{"name": " ", "search": "x"}, {"name": "x" * 61, "search": "x"}, {"name": "x", "search": ""}]
)
async def test_views_without_a_fitting_name_are_refused(world: World, body: dict[str, Any]) -> None:
    async with world.client("anna") as anna:
        assert (await anna.post(PATH, json=body)).status_code == 422
