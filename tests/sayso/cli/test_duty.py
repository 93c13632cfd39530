"""Commands for absences and preferences."""

import json
from datetime import UTC, datetime

from sayso.core.clock import DAY_MS, iso_utc, now_ms
from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401

Desk = tuple[str, str, str, str]


def test_absence_add_list_and_delete(desk: Desk, sayso: Run) -> None:  # noqa: F811
    start, end = (iso_utc(now_ms() + days * DAY_MS)[:10] for days in (1, 3))
    added = sayso("absence", "add", start, end, "--delegate", "root")
    assert "root decides for anna from" in added.stdout, added.stderr
    (absence,) = json.loads(sayso("absence", "list", "--json").stdout)
    assert datetime.fromisoformat(absence["starts_at"]) == datetime.fromisoformat(start).replace(tzinfo=UTC)
    assert "anna" in sayso("absence", "list", "--all", key=desk[3]).stdout
    assert "already absent" in sayso("absence", "add", start, end).stderr
    assert "is not a time" in sayso("absence", "add", "tomorrow", end).stderr
    assert "is deleted" in sayso("absence", "delete", absence["id"]).stdout
    for_anna = sayso("absence", "add", start, end, "--person", "anna", key=desk[3])
    assert "Nobody decides for anna" in for_anna.stdout


def test_absence_by_date_is_in_the_time_zone_of_the_person(desk: Desk, sayso: Run) -> None:  # noqa: F811
    start, end = (iso_utc(now_ms() + days * DAY_MS)[:10] for days in (10, 12))
    assert "Asia/Tokyo" in sayso("preferences", "--time-zone", "Asia/Tokyo").stdout
    for who in ((), ("--person", "anna")):
        added = sayso("absence", "add", start, end, *who, key=desk[3] if who else desk[2])
        assert f"from {start} 00:00 to {end} 00:00 (Asia/Tokyo)." in added.stdout, added.stderr
        (absence,) = json.loads(sayso("absence", "list", "--json").stdout)
        assert datetime.fromisoformat(absence["starts_at"]) == datetime.fromisoformat(f"{start}T00:00+09:00")
        assert "is deleted" in sayso("absence", "delete", absence["id"]).stdout
    exact = sayso("absence", "add", f"{start}T08:00+01:00", end)
    assert f"from {start} 16:00" in exact.stdout, exact.stderr


def test_preferences_show_and_change(sayso: Run) -> None:  # noqa: F811
    assert "Time zone UTC, quiet hours off" in sayso("preferences").stdout
    changed = sayso("preferences", "--time-zone", "Europe/Berlin", "--quiet", "22:00-07:00", "--cap", "4")
    assert "quiet hours 22:00-07:00 on 7 days a week" in changed.stdout, changed.stderr
    found = json.loads(sayso("preferences", "--digest", "daily", "--quiet", "off", "--cap", "0", "--json").stdout)
    assert (found["digest"], found["quiet_hours"], found["cap_per_hour"]) == ("daily", None, None)
    assert found["time_zone"] == "Europe/Berlin"
    assert "22:00-07:00" in sayso("preferences", "--quiet", "late").stderr
