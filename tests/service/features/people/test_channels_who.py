"""Who is asked when: groups, delegates, quiet hours, steps and the end."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

from sayso.core.calendar import Hours, WorkingHours
from sayso.core.clock import HOUR_MS
from sayso.core.policy.engine import Policy
from sayso.wire.people import Preferences
from service.channels.kinds import Channels
from service.channels.previews import SampleCall
from service.core.auth.roles import find_rights
from service.core.wiring import Wiring
from service.features.people.who import plan, plan_weeks
from tests.builders import make_person
from tests.channels import MemoryChannel, RoomChannel
from tests.sayso.rule_builders import policy, rule

CALL = SampleCall(tool="refund", owner="demo")
NIGHT = round(datetime(2036, 11, 22, 23, tzinfo=UTC).timestamp() * 1000)
CHANNELS = Channels({"ops": MemoryChannel("ops")})
STEP = {"after_s": 3_600, "reviewers": ["carla"]}


def rules(**terms: object) -> Policy:
    given = {"reviewers": ["group:payments"], "channels": ["ops"], "timeout_s": 36_000, **terms}
    return policy(rule("refunds", "request_approval", terms=given))


async def make_team(wiring: Wiring) -> None:
    for name in ("anna", "ben", "carla"):
        await make_person(wiring, name)
        code = await wiring.contacts.create_code(name, "ops")
        await wiring.contacts.redeem_code("ops", code.code, f"U-{name}")
    await wiring.groups.create("payments", ("anna", "ben"), (), "root")


async def test_plan_names_delegates_holds_and_steps(wiring: Wiring) -> None:
    await make_team(wiring)
    quiet = Preferences(quiet_hours=Hours(start="22:00", end="07:00"))
    await wiring.duty.save_preferences("ben", quiet, "ben")
    await wiring.duty.add_absence("anna", NIGHT - HOUR_MS, NIGHT + HOUR_MS, "carla", "anna")
    step = {"after_s": 3_600, "reviewers": ["dora"]}
    found = await plan(wiring, CHANNELS, rules(escalate=[step]), "refunds", CALL, NIGHT)
    assert [(one.step, one.person, one.sent_at_ms, one.reason) for one in found.asked] == [
        (0, "carla", NIGHT, ""),
        (0, "ben", NIGHT + 8 * HOUR_MS, "Held: quiet hours."),
        (1, "dora", None, "dora has no address on ops."),
    ]
    assert (found.deadline_at_ms, found.end) == (NIGHT + 10 * HOUR_MS, "It is denied.")


async def test_plan_of_a_rule_that_asks_a_manager_names_none(wiring: Wiring) -> None:
    await make_team(wiring)
    found = await plan(wiring, CHANNELS, rules(reviewers=["manager_of:who.person"]), "refunds", CALL, NIGHT)
    assert [one.reason for one in found.asked] == ["their manager has no address on ops."]


async def test_plan_without_anybody_present(wiring: Wiring) -> None:
    await make_team(wiring)
    found = await plan(wiring, CHANNELS, rules(reviewers=["group:none"]), "refunds", CALL, NIGHT)
    assert [one.reason for one in found.asked] == ["Nobody is present who may decide."]


async def test_plan_of_a_hold_past_the_deadline(wiring: Wiring) -> None:
    await make_team(wiring)
    quiet = Preferences(quiet_hours=Hours(start="22:00", end="07:00"))
    await wiring.duty.save_preferences("ben", quiet, "ben")
    late = await plan(wiring, CHANNELS, rules(reviewers=["ben"], timeout_s=600), "refunds", CALL, NIGHT)
    assert late.asked[0].reason.startswith("Held past the deadline")
    urgent = await plan(wiring, CHANNELS, rules(reviewers=["ben"], timeout_s=600, urgent=True), "refunds", CALL, NIGHT)
    assert urgent.asked[0].sent_at_ms == NIGHT


async def test_plan_asks_the_next_step_at_once_outside_working_hours(wiring: Wiring) -> None:
    await make_team(wiring)
    await wiring.groups.update("payments", ("anna", "ben"), (), "root", find_rights(["admin"], {}), WorkingHours())
    found = await plan(wiring, CHANNELS, rules(escalate=[STEP]), "refunds", CALL, NIGHT)
    held = "Held: outside the working hours."
    monday = NIGHT + 34 * HOUR_MS
    assert [(one.at_ms, one.person, one.sent_at_ms, one.reason) for one in found.asked] == [
        (NIGHT, "anna", None, "Held past the deadline: outside the working hours."),
        (NIGHT, "ben", None, "Held past the deadline: outside the working hours."),
        (NIGHT, "carla", NIGHT, ""),
    ]
    longer = await plan(wiring, CHANNELS, rules(escalate=[STEP], timeout_s=200_000), "refunds", CALL, NIGHT)
    assert [(one.person, one.sent_at_ms, one.reason) for one in longer.asked] == [
        ("anna", monday, held),
        ("ben", monday, held),
        ("carla", NIGHT, ""),
    ]
    urgent = await plan(wiring, CHANNELS, rules(escalate=[STEP], urgent=True), "refunds", CALL, NIGHT)
    assert [(one.person, one.sent_at_ms) for one in urgent.asked] == [
        ("anna", NIGHT),
        ("ben", NIGHT),
        ("carla", NIGHT + HOUR_MS),
    ]


async def test_plan_waits_for_the_time_of_a_step_if_somebody_works(wiring: Wiring) -> None:
    await make_team(wiring)
    await wiring.groups.update("payments", ("anna", "ben"), (), "root", find_rights(["admin"], {}), WorkingHours())
    nights = WorkingHours(hours=Hours(start="22:00", end="06:00"))
    await wiring.duty.save_preferences("ben", Preferences(working_hours=nights, cap_per_hour=1), "ben")
    found = await plan(wiring, CHANNELS, rules(escalate=[STEP], timeout_s=200_000), "refunds", CALL, NIGHT)
    assert [(one.person, one.at_ms, one.sent_at_ms, one.reason) for one in found.asked] == [
        ("anna", NIGHT, NIGHT + 34 * HOUR_MS, "Held: outside the working hours."),
        ("ben", NIGHT, NIGHT, "At most 1 interruption an hour."),
        ("carla", NIGHT + HOUR_MS, NIGHT + HOUR_MS, ""),
    ]


async def test_plan_names_destinations_and_unknown_channels(wiring: Wiring) -> None:
    await make_team(wiring)
    channels = Channels({"ops": MemoryChannel("ops", shared_address="#ops"), "room": RoomChannel("room")})
    named = rules(channels=["ops", "room", "gone"], reviewers=["anna", "ben"], escalate=[STEP])
    found = await plan(wiring, channels, named, "refunds", CALL, NIGHT)
    assert [(one.step, one.channel, one.person, one.reason) for one in found.asked] == [
        (0, "ops", "anna", ""),
        (0, "room", "", "The channel's own destination."),
        (0, "gone", "", "There is no channel named gone."),
        (0, "ops", "ben", ""),
        (0, "gone", "", "There is no channel named gone."),
        (1, "ops", "carla", ""),
        (1, "gone", "", "There is no channel named gone."),
    ]
    everybody = await plan(wiring, channels, rules(channels=["ops"], reviewers=[]), "refunds", CALL, NIGHT)
    assert [(one.channel, one.person, one.sent_at_ms) for one in everybody.asked] == [("ops", "", NIGHT)]


async def test_plan_of_a_person_named_beside_their_group(wiring: Wiring) -> None:
    await make_team(wiring)
    await wiring.groups.update("payments", ("anna", "ben"), (), "root", find_rights(["admin"], {}), WorkingHours())
    both = rules(reviewers=["anna", "group:payments"], timeout_s=200_000)
    found = await plan(wiring, CHANNELS, both, "refunds", CALL, NIGHT)
    assert [(one.person, one.sent_at_ms) for one in found.asked] == [("anna", NIGHT), ("ben", NIGHT + 34 * HOUR_MS)]


async def test_plan_weeks_has_each_step_with_the_hours_of_its_group(wiring: Wiring) -> None:
    await make_team(wiring)
    office = WorkingHours(hours=Hours(start="09:00", end="17:00", weekdays=("mon",)))
    await wiring.groups.update("payments", ("anna", "ben"), (), "root", find_rights(["admin"], {}), office)
    terms = rules(escalate=[STEP]).rules[0].terms
    first, then = await plan_weeks(wiring, terms, date(2036, 11, 24), ZoneInfo("UTC"))
    assert [(span.hours, span.people) for span in first.days[0].spans][1] == ("09:00–17:00", ("anna", "ben"))
    assert [span.people for span in first.days[1].spans] == [()]
    assert (then.step, then.after_s, then.days[0].spans[0].people, then.left_out) == (1, 3_600, ("carla",), 0)


async def test_plan_names_browsers_where_the_rule_names_no_channels(wiring: Wiring) -> None:
    await make_team(wiring)
    code = await wiring.contacts.create_code("anna", "push")
    await wiring.contacts.redeem_code("push", code.code, "A1")
    built_in = MemoryChannel("push")
    channels = Channels({"push": built_in}, built_in=built_in)
    found = await plan(wiring, channels, rules(channels=[]), "refunds", CALL, NIGHT)
    assert [(one.channel, one.person, one.sent_at_ms, one.reason) for one in found.asked] == [
        ("push", "anna", NIGHT, ""),
        ("", "ben", None, "The rule names no channels."),
    ]
