"""Who is asked when over a week."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from sayso.core.calendar import Hours, WorkingHours
from sayso.wire.people import Preferences
from service.core.auth.duty import SLOTS, Day, list_days
from service.core.store.directory import Absence

MONDAY = date(2036, 11, 24)
BERLIN = ZoneInfo("Europe/Berlin")
OFFICE = Preferences(
    working_hours=WorkingHours(
        time_zone="Europe/Berlin", hours=Hours(start="08:30", end="17:00", weekdays=("mon", "tue", "wed", "thu", "fri"))
    )
)


def write(day: Day) -> list[tuple[str, str]]:
    return [(span.hours, " ".join(span.people)) for span in day.spans]


def moment(day: int, hour: int) -> int:
    return round(datetime(2036, 11, day, hour, tzinfo=UTC).timestamp() * 1000)


def test_people_without_hours_are_asked_all_day() -> None:
    week = list_days({"anna": Preferences()}, ["anna"], [], MONDAY, BERLIN)
    assert [write(day) for day in week] == [[("00:00–24:00", "anna")]] * 7
    assert week[0].spans[0].is_whole_day
    assert [day.day.isoweekday() for day in week] == [1, 2, 3, 4, 5, 6, 7]


def test_working_hours_split_the_day_in_the_reader_zone() -> None:
    hours = {"anna": OFFICE, "ben": OFFICE}
    week = list_days(hours, ["anna", "ben"], [], MONDAY, BERLIN)
    assert write(week[0]) == [("00:00–08:30", ""), ("08:30–17:00", "anna ben"), ("17:00–24:00", "")]
    assert write(week[5]) == [("00:00–24:00", "")]
    abroad = list_days(hours, ["anna"], [], MONDAY, ZoneInfo("UTC"))
    assert write(abroad[0])[1] == ("07:30–16:00", "anna")
    assert sum(span.slots for span in abroad[0].spans) == SLOTS


def test_delegate_is_asked_for_an_absent_person() -> None:
    away = Absence(id="1", person="anna", from_ms=moment(25, 9), to_ms=moment(25, 15), delegate="ben")
    week = list_days({"anna": Preferences(), "ben": OFFICE}, ["anna"], [away], MONDAY, BERLIN)
    assert write(week[1]) == [("00:00–10:00", "anna"), ("10:00–16:00", "ben"), ("16:00–24:00", "anna")]
    nobody = away.model_copy(update={"delegate": None})
    week = list_days({"anna": Preferences()}, ["anna"], [nobody], MONDAY, BERLIN)
    assert write(week[1])[1] == ("10:00–16:00", "")


def test_urgent_item_asks_outside_the_hours() -> None:
    week = list_days({"anna": OFFICE}, ["anna"], [], MONDAY, BERLIN, urgent=True)
    assert write(week[6]) == [("00:00–24:00", "anna")]


def test_day_that_loses_an_hour_keeps_its_half_hours() -> None:
    sunday = date(2036, 3, 30)  # 02:00 is followed by 03:00
    week = list_days({"anna": OFFICE}, ["anna"], [], sunday, BERLIN)
    assert sum(span.slots for span in week[0].spans) == SLOTS
    assert write(week[1])[1] == ("08:30–17:00", "anna")
