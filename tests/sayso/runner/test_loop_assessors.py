"""Runs under rules that ask an assessor: once for each call, before anything of its turn runs."""

from collections.abc import Collection
from typing import Any

import pytest

from sayso.core.policy.counters.readings import Reading, Readings, Wanted
from sayso.core.records.judgements import Assessment, Level, Question
from sayso.runner.loop import drive
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import Ledger as Journal
from tests.sayso.runners import Ran, fields_of, make_agent, turn
from tests.sayso.walks import START

RULES = policy(
    rule("small", "allow", tool_name="refund", assess={"by": "fraud", "high": {}}),
    rule("look", "allow", tool_name="look"),
)


class Assessed(Journal):
    """A journal whose assessor rates every call the same."""

    def __init__(self, level: Level) -> None:
        super().__init__("run_1")
        self.level = level
        self.asked: list[Question] = []

    async def recall(self, wanted: Collection[Wanted]) -> Readings:
        questions = [one.question for one in wanted if one.question is not None]
        self.asked += questions
        found = (Assessment(key=one.key, assessor=one.assessor, level=self.level) for one in questions)
        counted = await super().recall([one for one in wanted if one.question is None])
        return {**counted, **{one.key: Reading(assessment=one) for one in found}}


async def go(journal: Journal, *calls: tuple[str, Any]) -> tuple[RunEnded[RunState] | RunSuspended[RunState], Ran]:
    ran: Ran = []
    run = ModelRun(make_agent(ran, turn(*calls)), START)
    return await drive(run, policy=RULES, journal=journal), ran


@pytest.mark.parametrize(("level", "count"), [(Level.LOW, 0), (Level.MEDIUM, 0), (Level.HIGH, 1)])
async def test_allowed_call_waits_only_at_a_named_level(level: Level, count: int) -> None:
    journal = Assessed(level)
    reached, ran = await go(journal, ("refund", {"order": "A", "amount": 5}))
    assert isinstance(reached, RunSuspended) == bool(count)
    assert len(ran) == 1 - count
    assert len(journal.asked) == 1
    if isinstance(reached, RunSuspended):
        assert [one.assessment and one.assessment.level for one in reached.drafts] == [level]
        assert fields_of(reached.events, "policy_decision", "action") == ["request_approval"]


async def test_journal_without_assessors_takes_a_call_for_high() -> None:
    reached, ran = await go(Journal("run_1"), ("refund", {"order": "A", "amount": 5}))
    assert isinstance(reached, RunSuspended)
    (draft,) = reached.drafts
    assert ran == []
    assert draft.assessment is not None
    assert (draft.assessment.level, bool(draft.assessment.fault)) == (Level.HIGH, True)
