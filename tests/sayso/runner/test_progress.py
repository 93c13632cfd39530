"""What a run has done so far, as rules see it: tools that ran, and tokens of its model calls."""

from typing import Any

from sayso.core.policy.engine import Policy
from sayso.core.records.events import Event, TrailEntry
from sayso.core.records.suspensions import MOST_TOOLS, ModelUsage, Progress, RunRef, RunStatus
from sayso.core.records.tools import ToolDefinition
from sayso.features.whatif.reevaluation import list_calls
from sayso.runner.loop import drive
from sayso.runner.models import ChatMessage, ModelTurn
from sayso.runner.protocol import RunEnded, RunSuspended
from sayso.runner.runs import ModelRun
from sayso.runner.transcripts import RunState, describe_run
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import Ledger, approve, fields_of, make_agent, reload, turn
from tests.sayso.walks import START

LOOK, DROP, REFUND = ("look", {"order": "A"}), ("drop", {"order": "A"}), ("refund", {"order": "A", "amount": 5})
CRASH = ("crash", {"order": "A"})
TAINT = policy(
    rule("taint", "request_approval", tool_name="refund", after=["look"]), rule("drops", "deny", tool_name="drop")
)
RUN = RunRef(id="run_1", agent="support", owner="demo", thread_id="thread_1", key_id="key_1")


class Counting:
    """A model that tells its name, and how many tokens each of its turns took."""

    def __init__(self, *turns: ModelTurn, tokens: int | None = 500) -> None:
        self._turns, self._tokens = turns, tokens

    async def complete(self, messages: list[ChatMessage], tools: list[ToolDefinition]) -> ModelTurn:
        """Return the next turn."""
        place = sum(message["role"] == "assistant" for message in messages)
        found = self._turns[place] if place < len(self._turns) else ModelTurn(text="done")
        usage = {} if self._tokens is None else {"prompt_tokens": self._tokens, "completion_tokens": 100}
        return found.model_copy(update={"usage": usage})

    def describe(self) -> dict[str, str]:
        """Return the facts that rules read."""
        return {"model": "m-1", "provider": "models.test"}


async def go(rules: Policy, *turns: ModelTurn, **changes: Any) -> RunEnded[RunState] | RunSuspended[RunState]:
    agent = make_agent([], *turns, **changes)
    return await drive(ModelRun(agent, START, RUN), policy=rules, journal=Ledger("run_1"))


async def test_call_after_a_tool_is_asked_about() -> None:
    pause = await go(TAINT, turn(LOOK), turn(REFUND))
    assert isinstance(pause, RunSuspended)
    assert [draft.rule_id for draft in pause.drafts] == ["taint"]
    assert pause.state.progress == Progress(tools=("look",))
    assert fields_of(pause.events, "tool_batch_started", "progress") == [{"tools": ["look"], "usage": None}]


async def test_calls_of_one_turn_come_after_none_of_each_other() -> None:
    end = await go(TAINT, turn(LOOK, REFUND))
    assert isinstance(end, RunEnded)
    assert end.state.progress == Progress(tools=("look", "refund"))


async def test_denied_call_has_not_run_and_a_failed_one_has() -> None:
    end = await go(TAINT, turn(DROP, CRASH), turn(("unknown", {})))
    assert end.state.progress == Progress(tools=("crash",))


async def test_saved_state_keeps_the_tools() -> None:
    pause = await go(TAINT, turn(LOOK), turn(REFUND))
    assert isinstance(pause, RunSuspended)
    agent = make_agent([], turn(LOOK), turn(REFUND))
    end = await drive(
        ModelRun(agent, reload(pause.state), RUN),
        policy=TAINT,
        journal=Ledger("run_1"),
        outcomes={0: approve(pause.drafts[0])},
    )
    assert end.state.progress == Progress(tools=("look", "refund"))


async def test_run_saved_by_an_earlier_version_has_unknown_tools() -> None:
    agent = make_agent([], turn(REFUND))
    earlier = START.model_copy(update={"progress": None})
    pause = await drive(ModelRun(agent, earlier, RUN), policy=TAINT, journal=Ledger("run_1"))
    assert isinstance(pause, RunSuspended)
    assert "could not be evaluated" in str(pause.drafts[0].prompt.reason)


async def test_tokens_of_the_model_calls_are_counted_by_model() -> None:
    end = await go(policy(), model=Counting(turn(LOOK)))
    assert end.state.progress == Progress(
        tools=("look",), usage=(ModelUsage(model="m-1", input_tokens=1000, output_tokens=200, model_calls=2),)
    )


async def test_model_calls_beyond_the_tokens_of_a_rule_are_denied() -> None:
    rules = policy(rule("budget", "deny", subjects=["llm_call"], when="run.tokens >= 1200", reason="Too dear"))
    end = await go(rules, model=Counting(*(turn(LOOK) for _ in range(5))))
    assert isinstance(end, RunEnded)
    assert (end.status, end.state.step) == (RunStatus.DEGRADED, 2)
    assert "Too dear" in str(end.error)


async def test_model_without_usage_is_denied_where_a_rule_needs_it() -> None:
    rules = policy(rule("budget", "deny", subjects=["llm_call"], when="run.tokens >= 1200"))
    end = await go(rules, model=Counting(turn(LOOK), tokens=None))
    assert isinstance(end, RunEnded)
    assert (end.status, end.state.step) == (RunStatus.DEGRADED, 1)


def test_facts_of_the_run_come_from_its_record() -> None:
    about = describe_run(START, RUN.model_copy(update={"environment": "staging", "facts": {"env": "prod"}}))
    assert (about.key, about.started_by, about.tenant, about.environment) == ("demo", "demo", "default", "staging")
    assert about.context == {"env": "prod"}
    assert describe_run(START).key is None


def entries(events: tuple[Event, ...]) -> list[TrailEntry]:
    """Return the events as they are read from a trail."""
    return [TrailEntry(seq=at, at_ms=0, type=one.type, data=one.data, hash="") for at, one in enumerate(events, 1)]


async def test_replay_sees_the_tools_that_ran_before_each_call() -> None:
    journal = Ledger("run_1")
    agent = make_agent([], turn(LOOK), turn(DROP), turn(LOOK))
    end = await drive(ModelRun(agent, START, RUN), policy=TAINT, journal=journal)
    calls = list_calls(RUN, entries((*journal.events, *end.events)), {})
    assert [one.event.tool_name for one in calls] == ["look", "drop", "look"]
    seen = [one.event.progress.tools for one in calls if one.event.progress is not None]
    assert seen == [("look",), ("look",), ()]
    assert {(one.event.started_by, one.event.key) for one in calls} == {("demo", "demo")}


def test_tools_beyond_the_limit_are_unknown_from_then_on() -> None:
    names = [f"tool_{number}" for number in range(MOST_TOOLS)]
    full = Progress().with_tools(names)
    assert full.tools == tuple(names)
    beyond = full.with_tools(["one_more"])
    assert beyond.tools is None
    assert beyond.with_tools(["look"]).tools is None


def test_tokens_are_kept_apart_by_model() -> None:
    large, small = ModelUsage(model="large", input_tokens=7), ModelUsage(model="small", output_tokens=2)
    progress = Progress(usage=()).with_usage(large).with_usage(small)
    assert progress.usage == (large, small)
    twice = ModelUsage(model="large", input_tokens=14)
    assert progress.with_usage(large).usage == (small, twice)
    assert Progress(usage=()).with_all_usage((large, small, large)).usage == (small, twice)


def test_model_calls_are_unknown_after_those_of_an_earlier_version() -> None:
    used = ModelUsage(model="large", input_tokens=7, model_calls=1)
    assert Progress(usage=(used,)).with_usage(used).usage == (used.plus(used),)
    assert used.plus(used).model_calls == 2
    assert ModelUsage(model="large", input_tokens=7).plus(used).model_calls is None


def test_unknown_tokens_of_one_call_make_the_total_unknown() -> None:
    used = ModelUsage(model="large", input_tokens=7)
    assert Progress(usage=(used,)).with_usage(None).usage is None
    assert Progress(usage=(used,)).with_all_usage(None).usage is None
    assert Progress(usage=None).with_usage(used).usage is None
