"""Entries of the activity log say what an act changed, through the API and the pages alike."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from service.core.operations.states import describe_changes, note_settings
from service.core.settings import Settings
from service.core.store.activity import Activity
from tests.builders import PASSWORD, make_person
from tests.service.worlds import World


async def list_changes(world: World) -> list[tuple[str, str]]:
    page = await world.wiring.activity.read_page(0, 200)
    return [(entry.act, str(entry.data.get("changed", ""))) for entry in reversed(page.entries)]


async def test_acts_over_the_api_say_what_they_changed(world: World) -> None:
    await make_person(world.wiring, "ben")
    acts: list[tuple[str, str, dict[str, Any] | None]] = [
        ("POST", "/reviewers", {"name": "carla", "password": PASSWORD, "roles": ["reviewer"]}),
        ("PUT", "/reviewers/carla/roles", {"roles": ["auditor"]}),
        ("POST", "/reviewers/carla/manager", {"manager": "ben"}),
        ("POST", "/reviewers/carla/deactivate", None),
        ("POST", "/groups", {"name": "payments", "members": ["ben"]}),
        ("PUT", "/groups/payments", {"members": ["anna"], "editors": ["ben"]}),
        ("DELETE", "/groups/payments", None),
        ("POST", "/freezes", {"scope": "all", "reason": "Odd calls"}),
        ("POST", "/freezes/all/unfreeze", None),
        ("PUT", "/account/preferences", {"cap_per_hour": 4}),
    ]
    async with world.client("root") as root:
        for method, path, body in acts:
            answer = await root.request(method, f"/api/v1{path}", json=body)
            assert answer.status_code < 300, answer.text
    assert await list_changes(world) == [
        ("person_added", "active: none → yes; roles: +reviewer"),
        ("roles_set", "roles: +auditor -reviewer"),
        ("manager_set", "manager: none → ben"),
        ("person_deactivated", "active: yes → no"),
        ("group_created", "members: +ben"),
        ("group_changed", "members: +anna -ben; editors: +ben"),
        ("group_deleted", "members: -anna; editors: -ben"),
        ("frozen", "frozen: +all"),
        ("unfrozen", "frozen: -all"),
        ("preferences_saved", "cap_per_hour: none → 4"),
    ]


async def test_refused_and_faulty_acts_change_nothing(world: World) -> None:
    async with world.client("anna") as anna, world.client("root") as root:
        assert (await anna.post("/api/v1/reviewers/root/deactivate")).status_code == 403
        assert (await root.post("/api/v1/reviewers/nobody/deactivate")).status_code == 404
    assert await list_changes(world) == [("person_deactivated", "")]


async def test_long_list_of_changes_is_kept_and_bounded(world: World) -> None:
    names = [f"person-with-a-long-name-{number}" for number in range(100)]
    await world.wiring.activity.record("group_changed", "root", door="api", changed=" ".join(names), note="x" * 500)
    entry: Activity = (await world.wiring.activity.read_page(0, 1)).entries[0]
    assert len(str(entry.data["changed"])) == 1_500
    assert len(str(entry.data["note"])) == 200
    assert entry.hash == entry.compute_hash()


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ({}, {}, ""),
        ({"a": "x"}, {"a": "x"}, ""),
        ({"a": "x"}, {}, "a: x → none"),
        ({}, {"a": ("x", "y")}, "a: +x +y"),
        ({"a": ("x",), "b": "1"}, {"a": (), "b": "2"}, "a: -x; b: 1 → 2"),
    ],
)
def test_changes_are_written_by_name(before: Any, after: Any, says: str) -> None:
    assert describe_changes(before, after) == says


async def test_start_with_other_settings_is_recorded_without_secrets(world: World, tmp_path: Path) -> None:
    async def begin(**given: Any) -> None:
        settings = Settings(redis_url=world.wiring.settings.redis_url, policy=world.wiring.settings.policy, **given)
        world.wiring.settings = settings
        await note_settings(world.wiring)

    drills = tmp_path / "drills.yaml"
    drills.write_text("drills: []\n")
    await begin()
    await begin(workers=3, metrics_token=SecretStr("canary-canary-canary"), drills=drills)
    drills.write_text("drills: [] # changed\n")
    await begin(workers=3, metrics_token=SecretStr("canary-canary-canary"), drills=drills)
    await begin(workers=3, metrics_token=SecretStr("canary-canary-canary"), drills=drills)
    entries = [changed for act, changed in await list_changes(world) if act == "settings_changed"]
    assert len(entries) == 2
    assert "metrics_token: none → set" in entries[0]
    assert "workers: none → 3" in entries[0]
    assert entries[1].startswith("drills: ")
    assert "canary" not in str(entries)
