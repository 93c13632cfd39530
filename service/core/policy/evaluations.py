"""Evaluate schemas, rules and states from outside: cheap ones here, others in a process killed at its limit."""

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeVar

from pydantic import Field, JsonValue
from pydantic_core import from_json, to_json

from sayso.core.canonical_json import JsonObject, count_values
from sayso.core.clock import monotonic_ms
from sayso.core.policy.budgets import Job, Verdict, settle, settle_blocking
from sayso.core.policy.conditions import ConditionError, Facts, compile_condition
from sayso.core.policy.files.findings import Known
from sayso.core.policy.functions import Names
from sayso.core.records.base import Immutable
from sayso.core.records.items import ItemDraft
from sayso.core.records.run_state import SealedState, StateRef, read_state, seal_state
from sayso.core.records.suspensions import OURS
from sayso.core.schemas.bounds import Weight, check_size, weigh
from sayso.core.schemas.validators import compile_schema, list_problems, refuse
from sayso.errors import Conflict, InvalidInput, TooLarge
from sayso.runner.agents import AgentManifest
from sayso.runner.fallbacks import is_offered
from sayso.runner.protocol import FrameworkState
from service.core.cache import share
from service.core.concurrency import Turns
from service.core.policy.sandbox import Overrun, Sandbox

SMALL_BYTES = 16_384  # a larger schema is evaluated in the sandbox
PAIRS = 100_000  # limit of schema parts times value parts: at about 100 ns each, 10 ms

LISTED_PAIRS = 3_000  # the same for a misfit, times the nesting of alternatives: each problem takes microseconds

PATTERN_STEPS = 2_000_000  # limit of pattern steps times value bytes: some milliseconds of linear search
_SMALL_VALUES = 1_500  # a schema up to this size compiles in some milliseconds

# Formats whose check is linear in the text.
_FORMATS = frozenset(("date", "date-time", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"))

SANDBOX = Sandbox(places=2, limit_s=2.0)  # evaluates schemas of unknown cost


@dataclass(frozen=True, slots=True)
class Fit:
    """A value, its schema and its name in messages. `formats` checks formats such as `date`."""

    schema: JsonObject
    value: JsonValue
    name: str
    formats: bool = False

    def check_here(self) -> bool:
        """Check the value if cheap, else return False; raises `InvalidInput` for a misfit or too large a schema."""
        raw = to_json(self.schema)
        weight = _weigh(raw) if len(raw) <= SMALL_BYTES else None
        if weight is None:
            check_size(self.schema)
            return False
        if weight.apart or weight.values > _SMALL_VALUES or (self.formats and not weight.formats <= _FORMATS):
            return False
        pairs = weight.parts * count_values(self.value, PAIRS)
        if pairs > PAIRS or (weight.pattern and weight.pattern * len(to_json(self.value)) > PATTERN_STEPS):
            return False
        if compile_schema(raw, self.formats).is_valid(self.value):
            return True
        if pairs * (1 + weight.levels) > LISTED_PAIRS:
            return False
        refuse(find_problems(self))
        return True

    def job(self) -> JsonObject:
        return {"kind": "fit", "schema": self.schema, "value": self.value, "name": self.name, "formats": self.formats}


def check_value(schema: JsonObject, value: JsonValue, name: str, *, formats: bool = False) -> None:
    """Raise `InvalidInput`, naming each place, when `value` does not fit `schema`; blocking."""
    fit = Fit(schema, value, name, formats)
    if not fit.check_here():
        refuse(SANDBOX.run(fit.job())["problems"])


def find_problems(fit: Fit) -> list[str]:
    """Return each problem of the value with its place, at any cost."""
    return list_problems(fit.schema, fit.value, fit.name, formats=fit.formats)


def is_answer(ask: ItemDraft, value: JsonValue) -> bool:
    """Return whether the value is one of the choices and fits the schema."""
    try:
        check_value(ask.response_schema or {}, value, "value", formats=True)
    except InvalidInput:
        return False
    return is_offered(ask, value)


@lru_cache(maxsize=1024)
def _weigh(schema: bytes) -> Weight:
    return weigh(from_json(schema))


def judge_job(job: Mapping[str, Any]) -> JsonObject:
    """Return the verdicts on the conditions of a job as JSON, at any cost."""
    described = job["facts"]
    now = {} if described["now"] is None else {"now": datetime.fromisoformat(described["now"])}
    lists = {name: tuple(entries) for name, entries in described["lists"].items()}
    provenance: Mapping[str, object] = described["provenance"]
    facts = Facts({**described["values"], **now}, Names(lists, described["constants"]), lambda: provenance)
    return {"verdicts": [_judge(when, facts) for when in job["whens"]]}


def read_verdicts(answer: Mapping[str, Any]) -> Sequence[Verdict]:
    """Return the verdicts that `judge_job` returned as JSON."""
    return [Verdict(holds, fault, computed) for holds, fault, computed in answer["verdicts"]]


def _judge(when: str, facts: Facts) -> list[Any]:
    condition = compile_condition(when)
    try:
        holds, fault = condition.evaluate(facts), ""
    except ConditionError as error:
        holds, fault = None, error.problem
    return [holds, fault, facts.computing.list_computed(condition.reading)]


class SuspendedFramework(Immutable):
    """A suspended run of another framework, as a worker needs it to resume."""

    framework: str = Field(min_length=1, max_length=100, description="As the agent's manifest says.")
    framework_version: str = Field(default="", max_length=100)
    adapter: str = Field(default="", max_length=100, description="What wrote the state, with its version.")
    state_schema: str = Field(min_length=1, max_length=100, description="As the agent's manifest says.")
    manifest_digest: str = Field(pattern="^[0-9a-f]{64}$", description="Of the agent that started the run.")
    state: str = Field(description="The framework's own state: a JSON object in UTF-8, as base64.")
    unseen: bool = Field(default=False, strict=True, description="Whether Sayso cannot see the framework's tool calls.")


def check_suspended(manifest: AgentManifest, framework_run: SuspendedFramework) -> None:
    """Raise `Conflict` if the state is not of this agent, `InvalidInput` if the agent is of Sayso's own runner."""
    origin = manifest.origin
    if origin.framework == OURS:
        raise InvalidInput(f"The agent {manifest.name!r} is of Sayso's own runner; leave out framework_run.")
    written = (framework_run.framework, framework_run.state_schema)
    if written != (origin.framework, origin.state_schema):
        raise Conflict(
            f"This state is of {' / '.join(written)}; the agent {manifest.name!r} needs {origin.framework} / "
            f"{origin.state_schema}. Run the same adapter as the workers."
        )
    if framework_run.manifest_digest != origin.manifest_digest:
        raise Conflict(
            f"The run has other tools than the workers' agent {manifest.name!r}. Deploy the same version to both."
        )


def pack_state(agent: str, framework_run: SuspendedFramework, limit_bytes: int) -> SealedState:
    """Return the sealed state; raises `TooLarge` or `InvalidInput`."""
    try:
        raw = base64.b64decode(framework_run.state, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"The state is not base64: {error}. Encode the JSON object's UTF-8 bytes.") from error
    if len(raw) > limit_bytes:
        raise TooLarge(f"The state is {len(raw)} bytes; the limit is {limit_bytes}. Trim its messages.")
    state = FrameworkState(
        agent=agent,
        framework=framework_run.framework,
        state_schema=framework_run.state_schema,
        native=read_state(raw),
        unseen=framework_run.unseen,
        step=1,
    )
    return seal_state(state.model_dump_json().encode())


RULES = Sandbox(places=1, limit_s=10.0, jobs_each=20)  # some seconds for thousands of conditions

NO_LISTS: Mapping[str, str] = {}
MOST_FAULTS = 200  # limit of reported faults
STATE_LIMIT_S = 10.0
SMALL_STATE_CHARS = 32_768  # a state up to this size is read and packed in some milliseconds
_WAITING = 16  # limit of waiting jobs per caller
JUDGING_S = 4.0  # limit of all deferred conditions of one evaluation together

T = TypeVar("T")


class RulesFound(Immutable):
    """The result of a check of rules: number, version and warnings, or the faults."""

    rules: int = 0
    version: str | None = None
    faults: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Evaluations:
    """Evaluations of one event loop, one at a time for each caller."""

    def __init__(self) -> None:
        self._turns = Turns(_WAITING)

    async def check_value(
        self, schema: JsonObject, value: JsonValue, name: str, *, caller: str, formats: bool = False
    ) -> None:
        """Raise `InvalidInput`, naming each place, for a value that does not fit, or a schema beyond the bounds."""
        fit = Fit(schema, value, name, formats)
        if fit.check_here():
            return
        try:
            answer = await self.run(SANDBOX, fit.job(), caller)
        except Overrun as error:
            words = "Ask the agent's developer for fewer alternatives, references and patterns."
            raise InvalidInput(
                f"It is unknown whether {name} fits its schema. {error.message.partition('. ')[0]}. {words}",
                problems=[f"{name}: the schema could not be evaluated within its limits"],
            ) from error
        refuse(answer["problems"])

    async def judge(self, evaluate: Callable[[], T], *, caller: str) -> T:
        """Return what an evaluation of rules returns; costly conditions are judged in the sandbox, within a limit."""

        async def act() -> T:
            return evaluate()

        return await self.settle(act, caller=caller)

    async def settle(self, act: Callable[[], Awaitable[T]], *, caller: str) -> T:
        """Do what `judge` does for an operation that evaluates rules before it changes anything; it may be repeated."""
        until_ms = monotonic_ms() + JUDGING_S * 1000

        async def compute(job: Job) -> Sequence[Verdict]:
            left_s = min(SANDBOX.limit_s, (until_ms - monotonic_ms()) / 1000)
            if left_s <= 0:
                return _give_up(job, f"it took longer than {JUDGING_S:g} s together with the others")
            try:
                return read_verdicts(await self.run(SANDBOX, write_job(job), caller, left_s))
            except Overrun as error:
                return _give_up(job, error.message)

        return await settle(act, compute)

    async def check_values(self, fits: Sequence[Fit], *, caller: str) -> None:
        """Check the values one by one, yielding to other tasks between them."""
        for fit in fits:
            await self.check_value(fit.schema, fit.value, fit.name, caller=caller, formats=fit.formats)
            await asyncio.sleep(0)

    async def check_rules(
        self, text: str, file: str, known: Known, *, lists: Mapping[str, str] = NO_LISTS, caller: str
    ) -> RulesFound:
        """Return the number of rules, their version and warnings; or their faults. `lists` are files by name."""
        job: JsonObject = {
            "kind": "rules",
            "text": text,
            "file": file,
            "lists": dict(lists),
            "most": MOST_FAULTS,
            "reviewers": None if known.reviewers is None else dict(known.reviewers),
            "groups": {name: list(members) for name, members in known.groups.items()},
            "tools": dump_tools(known),
            "now_ms": known.now_ms,
        }
        try:
            return RulesFound.model_validate(await self.run(RULES, job, caller))
        except Overrun as error:
            words = f"{file}: the rules could not be checked. {error.message.partition('. ')[0]}. Split the file."
            return RulesFound(faults=(words,))

    async def seal_state(
        self, manifest: AgentManifest, framework_run: SuspendedFramework, limit_bytes: int, *, caller: str
    ) -> SealedState:
        """Return the sealed state of a framework; raises what `service.core.policy.evaluations` raises."""
        check_suspended(manifest, framework_run)
        if len(framework_run.state) <= SMALL_STATE_CHARS:
            return pack_state(manifest.name, framework_run, limit_bytes)
        job: JsonObject = {"kind": "state", "agent": manifest.name, "most": limit_bytes}
        job |= {"framework_run": framework_run.model_dump()}
        try:
            answer = await self.run(SANDBOX, job, caller, STATE_LIMIT_S)
        except Overrun as error:
            why = error.message.partition(". ")[0]
            raise InvalidInput(f"The state could not be read. {why}. Send a smaller state.") from error
        return SealedState(StateRef.model_validate(answer["ref"]), base64.b64decode(answer["blob"]))

    async def run(self, sandbox: Sandbox, job: JsonObject, caller: str, limit_s: float | None = None) -> Any:
        """Run a job to its end in its caller's turn. A caller that disconnects does not free the slot."""

        async def run() -> Any:
            async with self._turns.take(caller):
                return await asyncio.get_running_loop().run_in_executor(sandbox.threads, sandbox.run, job, limit_s)

        return await asyncio.shield(share(run()))


def judge_blocking(evaluate: Callable[[], T]) -> T:
    """Do what `Evaluations.judge` does in a thread, which may wait."""

    def compute(job: Job) -> Sequence[Verdict]:
        try:
            return read_verdicts(SANDBOX.run(write_job(job)))
        except Overrun as error:
            return _give_up(job, error.message)

    return settle_blocking(evaluate, compute)


def write_job(job: Job) -> JsonObject:
    """Return the job as JSON; `judge_job` does it."""
    return {"kind": "judge", "facts": job.facts, "whens": [*job.whens]}


def _give_up(job: Job, why: str) -> Sequence[Verdict]:
    return [Verdict(None, f"it cannot be computed: {why.partition('. ')[0]}")] * len(job.whens)


def dump_tools(known: Known) -> JsonObject:
    """Return the tools of each agent as JSON, for a job."""
    return {name: [tool.model_dump() for tool in tools] for name, tools in known.tools.items()}
