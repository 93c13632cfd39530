"""Who is asked when: groups, delegates, quiet hours, steps and the end."""

from datetime import UTC, datetime

from sayso.policy.engine import Policy
from service.channels.previews import SampleCall
from service.channels.who import plan
from service.store.directory.duty import Hours, Preferences
from service.wiring import Wiring
from tests.builders import make_person
from tests.sayso.rule_builders import policy, rule

CALL = SampleCall(tool="refund", owner="demo")
NIGHT = round(datetime(2036, 11, 22, 23, tzinfo=UTC).timestamp() * 1000)
HOUR_MS = 3_600_000


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
    found = await plan(wiring, rules(escalate=[step]), "refunds", CALL, NIGHT)
    assert [(one.step, one.person, one.sent_at_ms, one.reason) for one in found.asked] == [
        (0, "carla", NIGHT, ""),
        (0, "ben", NIGHT + 8 * HOUR_MS, "Held: quiet hours."),
        (1, "dora", None, "dora has no address on ops."),
    ]
    assert (found.deadline_at_ms, found.end) == (NIGHT + 10 * HOUR_MS, "It is denied.")


async def test_plan_without_anybody_present(wiring: Wiring) -> None:
    await make_team(wiring)
    found = await plan(wiring, rules(reviewers=["group:none"]), "refunds", CALL, NIGHT)
    assert [one.reason for one in found.asked] == ["Nobody is present who may decide."]


async def test_plan_of_a_hold_past_the_deadline(wiring: Wiring) -> None:
    await make_team(wiring)
    quiet = Preferences(quiet_hours=Hours(start="22:00", end="07:00"))
    await wiring.duty.save_preferences("ben", quiet, "ben")
    late = await plan(wiring, rules(reviewers=["ben"], timeout_s=600), "refunds", CALL, NIGHT)
    assert late.asked[0].reason.startswith("Held past the deadline")
    urgent = await plan(wiring, rules(reviewers=["ben"], timeout_s=600, urgent=True), "refunds", CALL, NIGHT)
    assert urgent.asked[0].sent_at_ms == NIGHT
