"""Candidates: whole files of rules that judge calls beside the rules in force, without any effect.

A candidate sees what the rules in force see, and nothing else is read for it. So it cannot judge a call for which one
of its rules reads a counter, or asks an assessor, that the rules in force do not.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from pydantic import PrivateAttr

from sayso.core.canonical_json import JsonObject
from sayso.core.clock import monotonic_ms, thread_ms
from sayso.core.policy.engine import Policy
from sayso.core.policy.events import PolicyEvent
from sayso.core.records.tools import ToolDefinition
from sayso.core.text.language import mark
from sayso.features.whatif.reevaluation import JudgedBeside, RecordedCall, Rejudged, judge_without_effect

NOT_READ = mark("A rule of the candidate remembers or asks what the rules in force do not.")
TOO_SLOW = mark("The candidate was paused, because judging a call by it took too long.")
BROKEN = mark("Judging the call by the candidate failed.")
NOT_BESIDE = mark("A process judged the call without the candidate.")

SLOW_MS = 20
REST_TIMES = 50
"""After a slow judgement a candidate rests so many times as long: it takes at most 2 % of a process's time."""

_MAX_REASON_CHARS = 300


class Candidate:
    """The rules that one process judges calls by without effect; `clock` and `cpu` time of the thread are in ms."""

    def __init__(
        self, policy: Policy, clock: Callable[[], float] = monotonic_ms, cpu: Callable[[], float] = thread_ms
    ) -> None:
        self.policy = policy
        self._clock = clock
        self._cpu = cpu
        self._rests_until_ms = 0.0

    def judge(self, event: PolicyEvent, definition: ToolDefinition, *, registered: bool = True) -> JudgedBeside:
        """Return what the rules would do with a call. Never raises, and rests after a slow call."""
        began_ms, before_ms = self._clock(), self._cpu()
        if began_ms < self._rests_until_ms:
            return self._miss(TOO_SLOW)
        try:
            judged = judge_without_effect(self.policy, event, definition, registered=registered)
            beside = self._miss(NOT_READ)
            if judged is not None:
                error = judged.error[:_MAX_REASON_CHARS] if judged.error is not None else None
                judged = judged.model_copy(update={"reason": judged.reason[:_MAX_REASON_CHARS], "error": error})
                beside = JudgedBeside(rule_version=self.policy.version, judged=judged)
        except Exception:  # noqa: BLE001 - a candidate never changes what happens to a call
            beside = self._miss(BROKEN)
        took_ms = self._cpu() - before_ms
        if took_ms > SLOW_MS:
            self._rests_until_ms = began_ms + took_ms * REST_TIMES
        return beside

    def _miss(self, missing: str) -> JudgedBeside:
        return JudgedBeside(rule_version=self.policy.version, missing=missing)


class PolicyBeside(Policy):
    """The rules in force, with a candidate beside them. They judge as they do without it."""

    _candidate: Candidate = PrivateAttr()

    @classmethod
    def join(cls, policy: Policy, candidate: Candidate) -> "PolicyBeside":
        """Return the rules with a candidate beside them."""
        parts: dict[str, Any] = {name: getattr(policy, name) for name in Policy.model_fields}
        joined = cls.model_construct(**parts)
        joined._version = policy.version
        joined._candidate = candidate
        return joined

    @property
    def candidate(self) -> Candidate:
        return self._candidate

    def judge_beside(self, event: PolicyEvent, definition: ToolDefinition, *, registered: bool) -> JsonObject | None:
        """Return what to record of the candidate."""
        beside = self.candidate.judge(event, definition, registered=registered)
        return beside.model_dump(mode="json", exclude_none=True)

    @cached_property
    def reads_time(self) -> bool:
        """Whether an enabled rule needs the time of a call, also one of the candidate."""
        return any(rule.enabled and rule.reads_time for rule in (*self.rules, *self.candidate.policy.rules))


def list_judged_beside(calls: Sequence[RecordedCall], version: str) -> tuple[list[RecordedCall], list[Rejudged | None]]:
    """Return the calls, each with why a candidate of this version did not judge it, if so, and what it said."""
    noted = (call.beside for call in calls)
    beside = [side if side is not None and side.rule_version == version else None for side in noted]
    missing = [NOT_BESIDE if side is None or not (side.judged or side.missing) else side.missing for side in beside]
    marked = [call.model_copy(update={"missing": why}) for call, why in zip(calls, missing, strict=True)]
    return marked, [side.judged if side is not None else None for side in beside]
