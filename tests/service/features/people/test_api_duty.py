"""Preferences and absences over HTTP."""

from datetime import timedelta
from typing import Any

import pytest

from sayso.core.clock import iso_utc, now_ms
from tests.service.worlds import World

DAY = timedelta(days=1) // timedelta(milliseconds=1)


def span(**fields: Any) -> dict[str, Any]:
    return {"starts_at": iso_utc(now_ms()), "ends_at": iso_utc(now_ms() + DAY), **fields}


async def test_person_reads_and_saves_preferences(world: World) -> None:
    quiet = {"start": "22:00", "end": "07:00", "weekdays": ["sun", "mon"]}
    async with world.client("anna") as anna, world.client("root") as root:
        path = "/api/v1/account/preferences"
        assert (await anna.get(path)).json()["digest"] == "off"
        saved = await anna.put(path, json={"time_zone": "Europe/Berlin", "quiet_hours": quiet, "cap_per_hour": 5})
        assert saved.status_code == 200
        assert saved.json()["quiet_hours"]["weekdays"] == ["mon", "sun"]
        other = "/api/v1/reviewers/anna/preferences"
        assert (await root.get(other)).json() == saved.json()
        assert (await root.put(other, json={"digest": "daily"})).json()["time_zone"] == "UTC"
        assert (await anna.put(other, json={})).status_code == 403
        assert (await root.get("/api/v1/reviewers/nobody/preferences")).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"time_zone": "Mars/Olympus"},
        {"quiet_hours": {"start": "7", "end": "8"}},
        {"working_hours": {"country": "XX"}},
        {"surprise": 1},
    ],
)
async def test_preferences_that_cannot_work_are_refused(world: World, body: dict[str, Any]) -> None:
    async with world.client("anna") as anna:
        assert (await anna.put("/api/v1/account/preferences", json=body)).status_code == 422


async def test_absences_of_oneself_and_of_others(world: World) -> None:
    async with world.client("anna") as anna, world.client("root") as root:
        own = "/api/v1/account/absences"
        made = await anna.post(own, json=span(delegate="root"))
        assert made.status_code == 201
        assert (made.json()["person"], made.json()["delegate"]) == ("anna", "root")
        assert (await anna.post(own, json=span())).status_code == 409
        by_admin = await root.post("/api/v1/reviewers/root/absences", json=span())
        assert (await anna.get(own)).json() == {"absences": [made.json()]}
        everybody = (await anna.get("/api/v1/absences")).json()["absences"]
        assert {one["person"] for one in everybody} == {"anna", "root"}
        assert (await anna.delete(f"/api/v1/reviewers/root/absences/{by_admin.json()['id']}")).status_code == 403
        assert (await root.delete(f"/api/v1/reviewers/anna/absences/{made.json()['id']}")).status_code == 204
        assert (await anna.get(own)).json() == {"absences": []}
        assert (await anna.post(own, json=span(delegate="nobody"))).status_code == 422
        assert (await anna.post(own, json=span(starts_at="2026-11-22"))).status_code == 422
        own_id = (await anna.post(own, json=span())).json()["id"]
        assert (await anna.delete(f"{own}/{own_id}")).status_code == 204
