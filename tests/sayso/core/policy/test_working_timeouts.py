"""Deadlines in working time in the terms of rules."""

from datetime import datetime
from typing import Any

import pytest

from sayso.core.policy.strictness import strictest_terms
from sayso.core.records.items import freeze_terms
from sayso.core.records.terms import LONGEST_WAIT_S, RuleTerms
from sayso.core.sentences.rules import describe_wait
from tests.sayso.core.policy.rule_files import HEAD, parse, read_problems

OFFICE = {"hours": "08:00-18:00", "days": ["mon", "tue", "wed", "thu", "fri"], "zone": "Europe/Zurich"}
HOURS = "working_hours: {hours: '08:00-18:00', days: [mon, tue, wed, thu, fri], zone: Europe/Zurich, holidays: CH}"
FRIDAY_MS = round(datetime.fromisoformat("2026-11-27T16:00+01:00").timestamp() * 1000)
TUESDAY_MS = round(datetime.fromisoformat("2026-12-01T16:00+01:00").timestamp() * 1000)


def terms_of(terms: str, start: str = "") -> RuleTerms:
    text = HEAD.replace("rules:", f"terms: {{{start}}}\nrules:") if start else HEAD
    rules = parse(f"{text}  - {{id: one, action: request_approval, terms: {{{terms}}}}}\n")
    found: RuleTerms = rules.rules[0].terms
    return found


def deadline_of(terms: RuleTerms, now_ms: int = FRIDAY_MS) -> int:
    return freeze_terms(terms, rule_id="one", rule_version="1", now_ms=now_ms).deadline_at_ms


def test_deadline_is_computed_when_asked() -> None:
    terms = terms_of(f"timeout: 2 working days, {HOURS}, extend_by_s: 60")
    frozen = freeze_terms(terms, rule_id="one", rule_version="1", now_ms=FRIDAY_MS)
    assert (frozen.deadline_at_ms, frozen.extend_until_ms) == (TUESDAY_MS, TUESDAY_MS + 60_000)


def test_working_hours_of_the_file_apply_to_its_rules() -> None:
    assert deadline_of(terms_of("timeout: 2 working days", f"timeout_s: 300, {HOURS}")) == TUESDAY_MS
    assert deadline_of(terms_of("", f"timeout: 2 working days, {HOURS}")) == TUESDAY_MS
    assert deadline_of(terms_of("timeout_s: 60", f"timeout: 2 working days, {HOURS}")) == FRIDAY_MS + 60_000


def test_rules_in_another_process_have_the_same_deadline() -> None:
    terms = terms_of(f"timeout: 2 working days, {HOURS}")
    assert deadline_of(RuleTerms.model_validate_json(terms.model_dump_json())) == TUESDAY_MS


def test_deadline_never_exceeds_the_longest_wait() -> None:
    closed: dict[str, Any] = {"timeout": "1 working day", "working_hours": {"days": ["sat"], "zone": "UTC"}}
    soon = RuleTerms.model_validate({**closed, "timeout_s": 60})
    assert deadline_of(soon) == FRIDAY_MS + 60_000


def test_strictest_terms_keep_the_shortest_working_time() -> None:
    long, short = (
        RuleTerms.model_validate({"timeout": text, "working_hours": OFFICE, "timeout_s": LONGEST_WAIT_S})
        for text in ("2 working days", "6 working hours")
    )
    seconds = RuleTerms(timeout_s=60)
    assert strictest_terms([long, short]).timeout == "6 working hours"
    both = strictest_terms([seconds, long])
    assert (both.timeout, both.timeout_s) == ("2 working days", 60)
    assert deadline_of(both) == FRIDAY_MS + 60_000


def test_describe_wait_says_the_working_time() -> None:
    terms = terms_of(f"timeout: 2 working days, {HOURS}")
    assert describe_wait(terms) == "2 working days"
    assert terms.timeout_s == LONGEST_WAIT_S
    assert describe_wait(terms.model_copy(update={"timeout_s": 60})) == "2 working days, at most 1 min,"


@pytest.mark.parametrize(
    ("terms", "problem"),
    [
        ("timeout: 2 working days", "needs working_hours beside it"),
        (f"timeout: 2 days, {HOURS}", "'2 days' is no working time"),
        (f"timeout: 2 working days, timeout_s: 60, {HOURS}", "timeout and timeout_s both set the deadline"),
        (f"timeout: 30 working days, {HOURS}", "may take over 30 days"),
        ("working_hours: {zone: Mars}", "there is no time zone 'Mars'"),
    ],
)
def test_rule_file_refuses_a_timeout_that_cannot_work(terms: str, problem: str) -> None:
    found = read_problems(f"{HEAD}  - {{id: one, action: request_approval, terms: {{{terms}}}}}\n")
    assert any(problem in one for one in found), found
