"""Rules that read the time of a call: hours, dates and `now`."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from sayso.core.policy.conditions import ConditionError, compile_condition, reads_any
from sayso.core.policy.rules import Action
from tests.sayso.core.policy.rule_files import HEAD, parse, read_problems
from tests.sayso.rule_builders import event, policy, rule

ZURICH = {"hours": "08:00-18:00", "days": ["mon", "tue", "wed", "thu", "fri"], "zone": "Europe/Zurich"}
ZONES = ["UTC", "Europe/Zurich", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe"]
MOMENTS = st.integers(1_700_000_000, 1_900_000_000).map(lambda seconds: seconds * 1000)


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def denies(at_ms: int | None, **parts: Any) -> bool:
    return policy(rule("one", **parts)).judge(event(at_ms=at_ms)).action is Action.DENY


@pytest.mark.parametrize(
    ("moment", "working"),
    [
        ("2026-11-23T08:00+01:00", True),
        ("2026-11-23T17:59:59.999+01:00", True),
        ("2026-11-23T18:00+01:00", False),
        ("2026-11-22T12:00+01:00", False),
        ("2026-03-29T23:00+02:00", False),
        ("2026-03-30T08:00+02:00", True),
    ],
)
def test_during_and_outside_are_opposites(moment: str, working: bool) -> None:
    assert denies(at(moment), during=ZURICH) is working
    assert denies(at(moment), outside=ZURICH) is not working


@examples(max_examples=300, deadline=None)
@given(MOMENTS, st.sampled_from(ZONES), st.sampled_from(["06:00-14:30", "00:00-24:00", "22:00-06:00"]))
def test_during_or_outside_covers_every_moment_once(now_ms: int, zone: str, hours: str) -> None:
    window = {"hours": hours, "zone": zone, "holidays": "CH"}
    assert denies(now_ms, during=window) is not denies(now_ms, outside=window)


@examples(max_examples=300, deadline=None)
@given(MOMENTS, st.sampled_from(ZONES), st.integers(0, 23), st.integers(0, 6))
def test_during_agrees_with_a_condition_on_now(now_ms: int, zone: str, hour: int, day: int) -> None:
    """The two ways to write one rule read the same clock, whatever the zone and the season."""
    days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
    window = {"hours": f"{hour:02}:00-{hour:02}:59", "days": [days[day]], "zone": zone}
    when = f'now.getHours("{zone}") == {hour} && now.getMinutes("{zone}") < 59 && now.getDayOfWeek("{zone}") == {day}'
    assert denies(now_ms, during=window) is denies(now_ms, when=when)


@pytest.mark.parametrize(
    ("moment", "applies"),
    [
        ("2026-12-01T00:00+01:00", True),
        ("2026-11-30T23:59+01:00", False),
        ("2026-12-31T23:59+01:00", True),
        ("2027-01-01T00:00+01:00", False),
    ],
)
def test_rule_applies_between_its_dates(moment: str, applies: bool) -> None:
    dates = {"valid_from": "2026-12-01 Europe/Zurich", "valid_until": "2026-12-31 Europe/Zurich"}
    assert denies(at(moment), **dates) is applies


@pytest.mark.parametrize(
    "parts", [{"during": ZURICH}, {"outside": ZURICH}, {"valid_from": "2026-12-01"}, {"when": "now > timestamp(0)"}]
)
def test_rule_without_the_time_is_asked_about(parts: dict[str, Any]) -> None:
    decision = policy(rule("one", "allow", **parts)).judge(event())
    assert (decision.action, decision.in_doubt) == (Action.REQUEST_APPROVAL, Action.ALLOW)
    assert "rule one" in (decision.error or "")


def test_other_parts_of_a_rule_need_no_time() -> None:
    assert policy(rule("one", tool_name="payout", during=ZURICH)).judge(event()).action is Action.ALLOW


def test_decision_records_the_time_that_rules_saw() -> None:
    assert policy().judge(event(at_ms=7)).at_ms == 7
    assert policy().judge(event()).at_ms is None


def test_reads_time_only_where_a_rule_needs_it() -> None:
    assert not policy(rule("one", when="args.now == 3 && tool == 'now'")).reads_time
    assert not policy(rule("one", during=ZURICH, enabled=False)).reads_time
    for parts in ({"during": ZURICH}, {"outside": ZURICH}, {"valid_until": "2026-12-01"}, {"when": "now > now"}):
        assert policy(rule("one", **parts)).reads_time


@pytest.mark.parametrize(
    ("expression", "reads"),
    [("now.getHours() > 3", True), ("args.now", False), ("args.x == 'now'", False), ("nowhere", False), ("!now", True)],
)
def test_reads_time_finds_the_variable(expression: str, reads: bool) -> None:
    assert reads_any(expression, ("now",)) is reads


def test_condition_with_now_reads_local_time() -> None:
    now = {"at_ms": round(datetime(2026, 7, 1, 6, 30, tzinfo=UTC).timestamp() * 1000)}
    rules = policy(rule("one", when='now.getHours("Europe/Zurich") == 8 && now.getHours() == 6'))
    assert rules.judge(event(**now)).action is Action.DENY


@pytest.mark.parametrize("zone", ["Europe/Zurch", "Zurich", ""])
def test_condition_refuses_an_unknown_zone(zone: str) -> None:
    with pytest.raises(ConditionError, match="no time zone"):
        compile_condition(f'now.getHours("{zone}") > 3')
    compile_condition('now.getHours("+02:00") > 3 || args.x.getHours("Europe/Zurich") > 3')


def test_rule_file_with_hours_and_dates() -> None:
    text = """\
  - id: nights
    tool: deploy
    outside: {hours: "08:00-18:00", days: [mon, tue, wed, thu, fri], zone: Europe/Zurich, holidays: CH}
    valid_from: 2026-12-01
    valid_until: 2026-12-31T18:00 Europe/Zurich
    owner: operations
    review_by: 2027-01-15
    action: deny
"""
    (found,) = parse(HEAD + text).rules
    assert found.condition.outside.hours == "08:00-18:00"
    assert (found.owner, found.review_by) == ("operations", "2027-01-15")
    assert found.is_valid(at("2026-12-31T17:59+01:00"))
    assert not found.is_valid(at("2026-12-31T18:00+01:00"))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("during: {zone: X}", "during.zone: there is no time zone 'X'"),
        ("during: {hours: '08:00-18:00'}", "during.zone: is missing; add it"),
        ("during: {zone: UTC, hour: 1}", "there is no key `hour` here; did you mean `hours`?"),
        ("outside: {zone: UTC, days: [monday]}", "must be 'mon', 'tue'"),
        ("outside: 3", "outside: must be a mapping"),
        ("valid_from: 2026-12-01T08:00", "has no zone"),
        ("valid_until: soon", "is no date"),
        ("review_by: 2026-12-01 UTC", "review_by: '2026-12-01 UTC' is no date"),
        ("valid_from: 2026-12-02\n    valid_until: 2026-12-01", "comes before valid_from"),
        ("owner: ''", "owner: must have at least 1 character"),
    ],
)
def test_rule_file_refuses_what_cannot_work(line: str, problem: str) -> None:
    (found,) = read_problems(f"{HEAD}  - id: one\n    action: deny\n    {line}\n")
    assert problem in found
