"""Questions to the assessors of a file. Every failure counts as the level high, so silence makes no call look safe."""

import asyncio
import importlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import Any, Self

import structlog
from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator

from sayso.core.canonical_json import parse_json
from sayso.core.clock import new_id, now_ms
from sayso.core.policy.counters.readings import Reading
from sayso.core.policy.rule_keys import AssessorName
from sayso.core.records.base import Immutable
from sayso.core.records.judgements import LEVELS, Assessment, Level, Question, assess_unanswered
from sayso.core.signing import sign_message
from sayso.errors import InvalidInput, SaysoError
from service.core.outgoing.connections import UnsafeUrl, check_url
from service.core.outgoing.http import Posts
from service.core.settings.receivers import InternalReceivers, read_plan

Function = Callable[[dict[str, Any]], object]
"""A function of the call that returns what an assessor's server would answer."""


class InvalidAssessors(InvalidInput):
    """The assessors file is invalid; correct it and start again."""


class AssessorPlan(Immutable):
    """One assessor: a server, which gets signed requests, or a function."""

    url: str | None = Field(default=None, pattern="^https?://", max_length=2000)
    secret: SecretStr | None = None
    function: str | None = Field(default=None, pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$")
    timeout_s: float = Field(default=2, ge=0.1, le=10)
    medium: float = Field(default=0.5, gt=0, le=1)
    high: float = Field(default=0.8, gt=0, le=1)

    @field_validator("secret")
    @classmethod
    def _check_secret(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None:
            sign_message(secret.get_secret_value(), "check", now_ms() // 1000, b"")  # raises ValueError
        return secret

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.url is None) == (self.function is None):
            raise ValueError("an assessor has a url or a function; write one of them")
        if (self.url is None) != (self.secret is None):
            raise ValueError("a url needs a secret that signs its requests, and a function has none; correct that")
        if self.medium > self.high:
            raise ValueError("medium is above high, so no score is medium; swap them")
        if self.function is not None:
            self.load_function()
        return self

    def load_function(self) -> Function:
        """Return the function; raises `ValueError` if there is none."""
        module, _, name = (self.function or "").partition(":")
        try:
            target = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            raise ValueError(f"{self.function} cannot be imported: {error}; correct it") from error
        if not callable(target):
            raise ValueError(f"{self.function} is not a function; correct it")
        function: Function = target
        return function

    def find_level(self, score: float) -> Level:
        if score >= self.high:
            return Level.HIGH
        return Level.MEDIUM if score >= self.medium else Level.LOW


class AssessorPlans(Immutable):
    """The content of the file."""

    assessors: dict[AssessorName, AssessorPlan] = Field(default_factory=dict)


def check_receivers(plans: AssessorPlans, internal: InternalReceivers, *, loopback: bool = False) -> None:
    """Raise `InvalidAssessors` with each url to which no request may be sent."""
    faults = []
    for name, plan in plans.assessors.items():
        try:
            if plan.url is not None:
                check_url(plan.url, loopback=loopback, internal=internal)
        except UnsafeUrl as error:
            faults.append(f"SAYSO_ASSESSORS: assessors.{name}.url: {error.message}")
    if faults:
        raise InvalidAssessors("\n".join(faults))


def read_assessors(path: Path | None) -> AssessorPlans:
    """Return the assessors of a file, none without a file; raises `InvalidAssessors` with all faults."""
    return read_plan(path, AssessorPlans, "SAYSO_ASSESSORS", InvalidAssessors)


assessors_of = cache(read_assessors)  # return the assessors of a file, read once in each process


MOST_BYTES = 4_096  # the longest answer
_THREADS = 8
_BUSY = f"{_THREADS} earlier calls of functions have not ended"

log = structlog.get_logger()


class NoAnswer(SaysoError):
    """The assessor gave no usable answer, so the call counts as high."""


class AssessorAnswer(Immutable, strict=True):
    """What an assessor answers: a score, a level or both, of which the higher counts."""

    level: Level | None = Field(default=None, strict=False)
    score: float | None = Field(default=None, ge=0, le=1)
    reason: str = Field(default="", max_length=2000)

    @model_validator(mode="after")
    def _check_stated(self) -> "AssessorAnswer":
        if self.level is None and self.score is None:
            raise ValueError("an answer has a score or a level")
        return self


class Assessors:
    """The assessors of one process. Functions run in a few threads; one that never ends keeps its thread."""

    def __init__(self, plans: AssessorPlans, posts: Posts) -> None:
        self._plans, self._posts = plans.assessors, posts
        self._threads = BoundedSemaphore(_THREADS)

    async def ask(self, questions: Mapping[str, Question]) -> dict[str, Reading]:
        """Return what the assessors say, all at once, by the key of the question. Never raises for an answer."""
        assessments = await asyncio.gather(*map(self._ask, questions.values()))
        return {assessment.key: Reading(assessment=assessment) for assessment in assessments}

    async def _ask(self, question: Question) -> Assessment:
        plan = self._plans.get(question.assessor)
        if plan is None:
            return assess_unanswered(question, "SAYSO_ASSESSORS defines no assessor of this name")
        try:
            async with asyncio.timeout(plan.timeout_s):
                raw = await (self._call(plan, question) if plan.url is None else self._post(plan, plan.url, question))
            return _read_answer(plan, question, raw)
        except TimeoutError:
            fault = f"no answer within {plan.timeout_s:g} s"
        except SaysoError as error:
            fault = error.message
        log.warning("assessor_failed", assessor=question.assessor, fault=fault)
        return assess_unanswered(question, fault)

    async def _post(self, plan: AssessorPlan, url: str, question: Question) -> bytes:
        secrets = [plan.secret.get_secret_value()] if plan.secret is not None else []
        answer = await self._posts.post(url, secrets, new_id("msg"), question.body)
        if answer.error:
            raise NoAnswer(answer.error)
        if answer.status != 200:
            raise NoAnswer(f"the status is {answer.status}, not 200")
        return answer.body

    async def _call(self, plan: AssessorPlan, question: Question) -> bytes:
        if not self._threads.acquire(blocking=False):
            raise NoAnswer(_BUSY)
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[bytes] = loop.create_future()

        def settle(answer: bytes, fault: str) -> None:
            if answered.done():
                return  # too late
            if fault:
                answered.set_exception(NoAnswer(fault))
            else:
                answered.set_result(answer)

        def run() -> None:
            answer, fault = b"", ""
            try:
                answer = json.dumps(plan.load_function()(json.loads(question.body)), allow_nan=False).encode()
            except Exception as error:  # noqa: BLE001 - the function is not ours; its call counts as high
                fault = f"the function raised {type(error).__name__}"
            finally:
                self._threads.release()
            with suppress(RuntimeError):  # the process ends
                loop.call_soon_threadsafe(settle, answer, fault)

        Thread(target=run, name=f"assessor-{question.assessor}", daemon=True).start()
        return await answered


def _read_answer(plan: AssessorPlan, question: Question, raw: bytes) -> Assessment:
    if len(raw) > MOST_BYTES:
        raise NoAnswer(f"the answer has more than {MOST_BYTES} bytes")
    try:
        answer = AssessorAnswer.model_validate(parse_json(raw))
    except ValidationError as error:
        raise NoAnswer("the answer is not an object with a score from 0 to 1 or a level, and a reason") from error
    except SaysoError as error:
        raise NoAnswer("the answer is not JSON") from error
    of_score = plan.find_level(answer.score) if answer.score is not None else None
    stated = [level for level in (answer.level, of_score) if level]
    return Assessment(
        key=question.key,
        assessor=question.assessor,
        level=max(stated, key=LEVELS.index),
        score=answer.score,
        reason=answer.reason,
    )
