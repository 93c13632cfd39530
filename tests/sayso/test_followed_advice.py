"""Advice of the SDK's errors: each is followed, and the advice leads to success.

The tables of this module and of `testing/test_followed_plans.py` count for the test that lists all advice.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import pytest
import typer
from typer.testing import CliRunner

from sayso import gate
from sayso.client import Client
from sayso.client.requests import number_events
from sayso.core.canonical_json import JsonObject
from sayso.core.records.run_state import MAX_STATE_BYTES, read_state, seal_state
from sayso.core.signing import SignedMessage, new_signing_secret, sign_message, verify_message
from sayso.errors import ChangesRequested, SaysoError, Suspended, Withdrawn
from sayso.runner.agents import Agent, load_agents
from sayso.runner.models import ScriptedModel
from sayso.runner.protocol import FrameworkState, build_agent
from sayso.runner.runs import FrameworkRun
from sayso.runner.schema_tools import tool_from_schema
from sayso.runner.tools import tool
from sayso.testing import InProcessDesk
from sayso.timeline.trpc_states import (
    GoSuspension,
    decode_all,
    find_suspensions,
    write_graph_resume,
    write_tool_results,
    write_user_reply,
)
from tests.builders import run_ref
from tests.sayso.timeline.stories import CALL, encode, go
from tests.workers.resume.resumers.scripted_framework import ScriptedFramework


class Case(NamedTuple):
    """An advice, what is refused with it, and what follows it."""

    module: str
    advice: str
    refused: Callable[[], object]
    followed: Callable[[], object]


def follow(case: Case) -> None:
    with pytest.raises(SaysoError) as refused:
        case.refused()
    assert case.advice in refused.value.message
    case.followed()


NUMBER: JsonObject = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def pay(n: int) -> int:
    """Pay."""
    return n


async def pay_soon(n: int) -> int:
    """Pay, later."""
    return n


def pay_unfinished(n: int) -> Any:
    """Pay, without waiting for it."""
    return pay_soon(n)


def pay_any(**given: int) -> int:
    """Pay what is given by any name."""
    return sum(given.values())


class Payer:
    """A callable that is no function."""

    def __call__(self, n: int) -> int:
        return n


def pay_each(n: int) -> Any:
    """Pay in parts."""
    yield n


def pay_all(n: int) -> list[int]:
    """Pay in parts, and return them."""
    return [n]


def pay_untyped(n):  # type: ignore[no-untyped-def]
    """Pay what has no type."""
    return n


def pay_greater(n: int) -> int:
    """Pay the greater of two."""
    return max(n, 1)


class Bank:
    """A bank whose method is a tool."""

    def pay(self, n: int) -> int:
        """Pay."""
        return n


def approving() -> InProcessDesk:
    desk = InProcessDesk()
    desk.reviewer.approves()
    return desk


def run(**options: Any) -> None:
    """Gate a function with these options, and call it."""
    assert gate(**{"client": approving().client(), "quiet": True, **options})(pay)(1) == 1


def pay_new_version() -> None:
    desk = InProcessDesk()
    desk.reviewer.requests_changes("pay", "Less.")
    with pytest.raises(ChangesRequested) as returned:
        gate(client=desk.client(), quiet=True)(pay)(2)
    desk.reviewer.approves("pay")
    assert gate(client=desk.client(), quiet=True, revises=returned.value.item)(pay)(1) == 1


def run_gated(function: Any, result: Any = 1) -> None:
    assert gate(client=approving().client(), quiet=True)(function)(1) == result


def run_async() -> None:
    assert asyncio.run(gate(client=approving().async_client(), quiet=True)(pay_soon)(1)) == 1


def run_block() -> None:
    with gate("pay", {"n": 1}, schema=NUMBER, client=approving().client(), quiet=True) as call:
        call.result = 1


def gate_registered() -> None:
    """Gate a function above the decorator of a framework, which holds the one without a gate."""
    app = typer.Typer()

    @app.command()
    def pay_someone(n: int) -> int:
        return n

    gate(client=approving().client(), quiet=True)(pay_someone)


def register_gated() -> None:
    """Gate it below, and call it as the framework does."""
    app = typer.Typer()
    app.command()(gate(client=approving().client(), quiet=True)(pay))
    assert CliRunner().invoke(app, ["1"]).exit_code == 0


def load(*names: str) -> None:
    assert len(load_agents([f"{__name__}:{name}" for name in names])) == len(names)


def make_agent(name: str) -> Agent:
    return Agent(name=name, instructions="", tools=(), model=ScriptedModel([]))


one, twin, two, word = make_agent("one"), make_agent("one"), make_agent("two"), "agent"

SECRET, NOW_S, BODY = new_signing_secret(), 1_700_000_000, b"{}"


def verify(**headers: str | None) -> None:
    signature = sign_message(SECRET, "m1", NOW_S, BODY)
    given: dict[str, Any] = {"id": "m1", "timestamp": str(NOW_S), "signatures": signature, "body": BODY, **headers}
    assert verify_message([SECRET], SignedMessage(**given), NOW_S * 1000) == "m1"


def wait_for_long_calls() -> list[GoSuspension]:
    message = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    event = go("chat.completion", "e1", message, longRunningToolIDs={"c1": {}})
    (found,) = find_suspensions(decode_all(event))
    return [found]


def reply_by_mechanism() -> None:
    (found,) = wait_for_long_calls()
    assert found.mechanism == "long_running_tool"
    assert "c1" in str(write_user_reply(found, "paid"))


def interrupt(id_: str, checkpoint: str) -> Any:
    meta = {"nodeID": "review", "interruptKey": id_, "interruptValue": 1, "lineageId": "l1", "checkpointId": checkpoint}
    return go("graph.pregel.step", id_, stateDelta={"_pregel_metadata": encode(meta)})


def resume(*events: Any) -> JsonObject:
    found = find_suspensions(decode_all([*events]))
    return write_graph_resume(found, {one.key: True for one in found})


def pay_keyed(desk: InProcessDesk, n: int, result: int | None = None, **options: Any) -> None:
    given: dict[str, Any] = {"key": "pay", "wait_s": 0, "client": desk.client(), "quiet": True, **options}
    if result is None:
        with pytest.raises(Suspended):
            gate(**given)(pay)(n)
    else:
        assert gate(**given)(pay)(n) == result


def paid() -> InProcessDesk:
    desk = waiting()
    desk.reviewer.decide()
    pay_keyed(desk, 1, 1)
    return desk


def waiting() -> InProcessDesk:
    desk = InProcessDesk()
    pay_keyed(desk, 1)
    return desk


def late() -> InProcessDesk:
    desk = waiting()
    desk.reviewer.decide()
    desk.clock.advance(7_200)
    return desk


def suspend(key: str | None = None, **options: Any) -> None:
    body: JsonObject = {"mode": "poll", "calls": [{"tool": "pay", "definition": {}}]}
    assert InProcessDesk().client().suspend(body, key, **options).pending


class Redeployed(InProcessDesk):
    """A desk where a process of another version asks about the call while the first waits."""

    def review(self) -> None:
        if len(self.records) == 1:
            pay_keyed(self, 1, description="Pay now.")
        super().review()


def overtaken() -> InProcessDesk:
    desk = Redeployed()
    with pytest.raises(Withdrawn):
        pay_keyed(desk, 1, 1, wait_s=60)
    return desk


def ask_with_this_one() -> None:
    desk = overtaken()
    pay_keyed(desk, 1)
    desk.reviewer.decide()
    pay_keyed(desk, 1, 1)


GO, OPTIONS, PARAMETERS = "sayso/timeline/trpc_states.py", "sayso/gating/execution.py", "sayso/gating/parameters.py"
AGENTS, TOOLS, SIGNING = "sayso/runner/agents.py", "sayso/runner/tools.py", "sayso/core/signing.py"
PERMITS, REQUESTS = "sayso/client/permits.py", "sayso/client/requests.py"
MOMENT, WRONG = datetime(2026, 11, 20, tzinfo=UTC), cast(Any, "open")
STATE, ONCE = "sayso/core/records/run_state.py", "Send it once: v1,<base64>"
NAMING = "Give one of at most 128 letters, digits, dots, dashes and underscores that begins with a letter, as name=…."
ABOVE = "Put @gate directly above the def, below the decorators of frameworks"

PAYER = build_agent(ScriptedFramework([]), "payer", {"pay": tool(pay).definition})
STATE_OF_A_RUN = FrameworkState(agent="payer", framework="pydantic_ai", state_schema="plain/1")

LONG = b"x" * (MAX_STATE_BYTES + 1)

CASES = [
    Case(
        GO,
        "Send the response of its server",
        lambda: decode_all(["step 1"]),
        lambda: decode_all({"events": [go("runner.completion", "e1")]}),
    ),
    Case(
        GO,
        "Check the mechanism of each one",
        lambda: write_tool_results(wait_for_long_calls(), {"c1": "paid"}),
        reply_by_mechanism,
    ),
    Case(
        GO,
        "Resume one checkpoint at a time",
        lambda: resume(interrupt("e1", "k1"), interrupt("e2", "k2")),
        lambda: [resume(interrupt("e1", "k1")), resume(interrupt("e2", "k2"))],
    ),
    Case(
        PERMITS,
        "Make the key of all arguments that tell calls apart",
        lambda: pay_keyed(waiting(), 2, 2),
        lambda: pay_keyed(waiting(), 2, key="pay-{n}"),
    ),
    Case(
        PERMITS,
        "Call it with its own arguments for its result",
        lambda: pay_keyed(paid(), 2, 2),
        lambda: pay_keyed(paid(), 1, 1),
    ),
    Case(
        PERMITS,
        "Call it with again=True to ask once more",
        lambda: pay_keyed(late(), 1, 1),
        lambda: pay_keyed(late(), 1, again=True),
    ),
    Case(
        PERMITS,
        "Call it again to ask with this one",
        lambda: pay_keyed(Redeployed(), 1, 1, wait_s=60),
        ask_with_this_one,
    ),
    Case("sayso/client/clients.py", "Write it as", lambda: Client("ftp://desk"), lambda: Client("http://desk")),
    Case(
        "sayso/client/operations.py",
        "Give one of",
        lambda: waiting().client().waiting(WRONG),
        lambda: waiting().client().waiting("pending"),
    ),
    Case(REQUESTS, "Choose another", lambda: suspend("a key"), lambda: suspend("a-key")),
    Case(
        REQUESTS,
        "Give the token as its issuer made it",
        lambda: suspend(on_behalf_of="ada"),
        lambda: suspend(on_behalf_of="a.b.c"),
    ),
    Case(
        REQUESTS,
        "Give it one, such as UTC",
        lambda: number_events([{}], 1, [MOMENT.replace(tzinfo=None)]),
        lambda: number_events([{}], 1, [MOMENT]),
    ),
    Case(
        REQUESTS,
        "Give one for each, or none",
        lambda: number_events([{}], 1, [MOMENT, MOMENT]),
        lambda: number_events([{}], 1),
    ),
    Case("sayso/gating/decorator.py", "Give schema only with a block", lambda: run(schema=NUMBER), run_block),
    Case(
        "sayso/gating/registrations.py",
        "Put @gate directly above the def, below the decorators of frameworks",
        gate_registered,
        register_gated,
    ),
    Case(
        "sayso/gating/execution.py",
        "Make it an async def that awaits it",
        lambda: run_gated(pay_unfinished),
        run_async,
    ),
    Case(OPTIONS, "Give 'raise' or 'return'", lambda: run(on_denied="no"), lambda: run(on_denied="return")),
    Case(OPTIONS, "Give 'raise' or 'ask'", lambda: run(on_doubt="fail"), lambda: run(on_doubt="ask")),
    Case(OPTIONS, "Give ChangesRequested", lambda: run(revises="sus_0"), pay_new_version),
    Case(OPTIONS, "Give 1 to ", lambda: run(step=0), lambda: run(step=1)),
    Case(OPTIONS, "Give seconds, 0 or more, or None", lambda: run(wait_s=-1), lambda: run(wait_s=None)),
    Case(OPTIONS, "Give seconds, 0 or more, or None", lambda: run(wait_s="5"), lambda: run(wait_s=5)),
    Case(PARAMETERS, ABOVE, lambda: run_gated(Payer()), lambda: run_gated(pay)),
    Case(PARAMETERS, "Remove one @gate", lambda: run_gated(gate(pay)), lambda: run_gated(pay)),
    Case(PARAMETERS, "Gate a def that calls it", lambda: run_gated(max), lambda: run_gated(pay_greater)),
    Case(PARAMETERS, "Return a list instead", lambda: gate(pay_each), lambda: run_gated(pay_all, [1])),
    Case(STATE, "Trim its messages", lambda: seal_state(LONG), lambda: seal_state(LONG[:-1])),
    Case(STATE, "Send an object", lambda: read_state(b"[1]"), lambda: read_state(b'{"a": 1}')),
    Case(STATE, "Send an object", lambda: read_state(b"{"), lambda: read_state(b"{}")),
    Case(
        STATE,
        "Send an object as UTF-8 JSON",
        lambda: read_state(b'{"\xe9": 1}'),
        lambda: read_state(b'{"\xc3\xa9": 1}'),
    ),
    Case(AGENTS, "Correct the path", lambda: load("three"), lambda: load("two")),
    Case(AGENTS, "Name the agent itself", lambda: load("word"), lambda: load("one")),
    Case(AGENTS, "Rename one of them", lambda: load("one", "twin"), lambda: load("one", "two")),
    Case(AGENTS, "Write it as package", lambda: load_agents(["one"]), lambda: load("one")),
    Case(
        "sayso/runner/protocol.py",
        "Add at least one tool",
        lambda: build_agent(ScriptedFramework([]), "payer", {}),
        PAYER.manifest,
    ),
    Case(
        "sayso/runner/runs.py",
        "Run the version that wrote it",
        lambda: FrameworkRun(PAYER, run_ref(), STATE_OF_A_RUN.model_copy(update={"state_schema": "plain/2"})),
        lambda: FrameworkRun(PAYER, run_ref(), STATE_OF_A_RUN),
    ),
    Case(
        "sayso/runner/schema_tools.py",
        "Change one of them",
        lambda: tool_from_schema(pay, {"type": "object", "properties": {"m": {}}}),
        lambda: tool_from_schema(pay, NUMBER),
    ),
    Case(TOOLS, "Give it more than 0", lambda: tool(timeout_s=0)(pay), lambda: tool(timeout_s=0.5)(pay)),
    Case(TOOLS, NAMING.removesuffix("."), lambda: tool(name="p y")(pay), lambda: tool(name="p_y")(pay)),
    Case(TOOLS, "Write out each parameter", lambda: tool(pay_any), lambda: tool(pay)),
    Case(TOOLS, "Decorate a def or an async def that returns", lambda: tool(pay_each), lambda: tool(pay_all)),
    Case(TOOLS, "Decorate the method of one object, tool(thing", lambda: tool(Bank.pay), lambda: tool(Bank().pay)),
    Case(TOOLS, "Annotate it", lambda: tool(pay_untyped), lambda: tool(pay)),
    Case(SIGNING, "Send it once:", lambda: verify(id=None), verify),
    Case(SIGNING, ONCE, lambda: verify(signatures=None), verify),
    Case(SIGNING, "Correct it and sign again", lambda: verify(timestamp="soon"), verify),
    Case(SIGNING, "Set the clock and sign it again", lambda: verify(timestamp="1"), verify),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.module}: {case.advice}")
def test_followed_advice_leads_to_success(case: Case) -> None:
    follow(case)
