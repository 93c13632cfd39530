"""Admins list and plant drills; no view of an open item tells of them."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from service.features.control.drills import drills_of
from tests.service.features.control.test_planting import FILE
from tests.service.worlds import World


@pytest.fixture
def drills(world: World, tmp_path: Path) -> None:
    path = tmp_path / "drills.yaml"
    path.write_text(FILE)
    object.__setattr__(world.wiring, "settings", world.wiring.settings.model_copy(update={"drills": path}))
    assert drills_of(path).every_h == 24


@pytest.mark.usefixtures("drills")
async def test_planted_drill_looks_like_any_item_over_the_api(world: World) -> None:
    async with world.client("root") as root:
        listed = (await root.get("/api/v1/drills")).json()
        assert [one["id"] for one in listed["drills"]] == ["unknown-recipient"]
        body: dict[str, JsonValue] = {"template": "unknown-recipient", "reviewer": "anna"}
        planted = await root.post("/api/v1/drills", json=body)
        assert planted.status_code == 201, planted.text
        suspension = planted.json()["suspension_id"]
    async with world.client("anna") as anna:
        shown = await anna.get(f"/api/v1/suspensions/{suspension}")
        assert shown.status_code == 200
        events = await anna.get(f"/api/v1/runs/{shown.json()['run']['id']}/events")
    assert "drill" not in (shown.text + events.text).lower()
