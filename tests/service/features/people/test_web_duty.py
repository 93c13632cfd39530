"""Preferences and absences on the account page."""

from datetime import timedelta

import pytest

from sayso.core.clock import now_ms
from sayso.core.sentences.deadlines import describe_clock
from sayso.wire.people import Preferences
from service.core.settings import Settings
from tests.service.edge.web.sites import add_people, visit

DAY = timedelta(days=1) // timedelta(milliseconds=1)


def local(at_ms: int) -> str:
    return describe_clock(at_ms)[:16].replace(" ", "T")


async def test_account_page_saves_preferences(settings: Settings) -> None:
    async with visit(settings) as anna:
        quiet = {"quiet-start": "22:00", "quiet-end": "07:00", "quiet-mon": "on", "quiet-sun": "on"}
        working = {"working-start": "09:00", "working-end": "17:00", "working-mon": "on", "country": "de"}
        form = {"time_zone": "Europe/Berlin", "digest": "hourly", "cap": "4", **quiet, **working}
        assert await anna.send("/me/preferences", 303, **form) == "/me?done=preferences"
        saved = await anna.wiring.duty.find_preferences("anna")
        assert (saved.time_zone, saved.digest, saved.cap_per_hour, saved.language) == (
            "Europe/Berlin",
            "hourly",
            4,
            "en",
        )
        assert saved.quiet_hours is not None
        assert saved.quiet_hours.weekdays == ("mon", "sun")
        assert saved.working_hours is not None
        assert (saved.working_hours.time_zone, saved.working_hours.country) == ("Europe/Berlin", "DE")
        page = await anna.read("/me?done=preferences")
        assert 'value="22:00"' in page
        await anna.send("/me/preferences")
        assert await anna.wiring.duty.find_preferences("anna") == Preferences()


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"time_zone": "Mars/Olympus"}, "Time zone: there is no time zone"),
        ({"quiet-start": "22:00"}, "Give the quiet hours a start, an end and at least one weekday"),
        ({"working-start": "09:00", "working-end": "17:00"}, "Give the working hours a start"),
        ({"cap": "many"}, "Cap per hour: "),
        (
            {"working-start": "09:00", "working-end": "17:00", "working-mon": "on", "time_zone": "Mars/Olympus"},
            "is unknown. Enter one such as Europe/Berlin",
        ),
        (
            {"working-start": "09:00", "working-end": "17:00", "working-mon": "on", "country": "XX"},
            "The holidays of &#39;XX&#39; are unknown",
        ),
    ],
)
async def test_account_page_shows_refused_preferences(settings: Settings, form: dict[str, str], words: str) -> None:
    async with visit(settings) as anna:
        page = await anna.send("/me/preferences", 422, **form)
        assert words in page
        assert f'value="{next(iter(form.values()))}"' in page
        await anna.send("/me/preferences", 403, csrf="x")


async def test_account_page_adds_and_deletes_absences(settings: Settings) -> None:
    async with visit(settings) as anna:
        await add_people(anna.wiring, "ben")
        await anna.wiring.duty.save_preferences("anna", Preferences(time_zone="Asia/Kathmandu"), "anna")
        start, end = local(now_ms() + DAY), local(now_ms() + 2 * DAY)
        form = {"from": start, "to": end, "delegate": "ben"}
        assert await anna.send("/me/absences", 303, **form) == "/me?done=absences"
        page = await anna.read("/me?done=absences")
        assert f"{start.replace('T', ' ')} to {end.replace('T', ' ')}, ben decides" in page
        (absence,) = await anna.wiring.duty.list_absences("anna")
        offset = timedelta(hours=5, minutes=45) // timedelta(milliseconds=1)
        assert local(absence.from_ms + offset) == start
        page = await anna.send("/me/absences", 409, **form)
        assert "already absent" in page
        assert f'value="{start}"' in page
        assert "Enter the start" in await anna.send("/me/absences", 422, to=end)
        await anna.send("/me/absences", 422, **{**form, "delegate": "nobody"})
        await anna.send("/me/absences/delete", 403, which=absence.id, csrf="x")
        await anna.send("/me/absences/delete", which=absence.id)
        await anna.send("/me/absences/delete", 404, which=absence.id)
        assert await anna.wiring.duty.list_absences("anna") == []
