"""Archived runs are listed by day, on the page, over the API and from History, and opened by id."""

from pathlib import Path

import pytest

from service.core.settings import Settings
from tests.service.features.archive.runs import archive, end_a_run, keep, list_files
from tests.service.worlds import POLICY, World


@pytest.fixture
def settings(clean_store_url: str, tmp_path: Path) -> Settings:
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    return Settings(home=tmp_path, redis_url=clean_store_url, policy=policy, archive=f"file://{tmp_path}/archive")


async def test_archived_runs_are_listed_by_day_and_read_by_id(world: World) -> None:
    runs = [await end_a_run(world.wiring) for _ in range(3)]
    async with world.client("anna") as anna, world.client("demo") as demo, world.client("other") as other:
        assert (await anna.get("/api/v1/archive")).json() == {"day": "", "runs": []}
        await keep(world.wiring)
        page = (await anna.get("/api/v1/archive", params={"limit": 2})).json()
        assert [run["id"] for run in page["runs"]] == [record.run.id for record in runs[:2]]
        rest = (await anna.get("/api/v1/archive", params={"day": page["day"], "skip": 2})).json()
        assert [run["id"] for run in rest["runs"]] == [runs[2].run.id]
        assert (await anna.get("/api/v1/archive", params={"day": "2001-01-01"})).json()["runs"] == []
        refused = await anna.get("/api/v1/archive", params={"day": "yesterday"})
        assert (refused.status_code, "2026-10-31" in refused.text) == (422, True)
        assert (await other.get(f"/api/v1/runs/{runs[0].run.id}")).status_code == 404
        assert (await demo.get(f"/api/v1/runs/{runs[0].run.id}")).json()["status"] == "completed"
        trail = (await anna.get(f"/api/v1/runs/{runs[1].run.id}/events")).json()
        assert trail["events"][0]["seq"] == 1


async def test_damaged_segment_is_named_over_the_api_and_by_doctor(world: World, tmp_path: Path) -> None:
    ended = await end_a_run(world.wiring)
    await keep(world.wiring)
    (file,) = list_files(tmp_path)
    file.unlink()
    archive(world.wiring).forget_opened()
    async with world.client("root") as root:
        answer = await root.get(f"/api/v1/runs/{ended.run.id}")
        assert answer.status_code == 409
        assert "cannot be read: it is missing" in answer.text
        assert "it is missing" in (await root.get("/api/v1/diagnostics")).text
