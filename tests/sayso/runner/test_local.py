"""A script runs an agent in its own process and names who decides."""

from collections.abc import Mapping, Sequence

from sayso.core.records.items import ItemDraft
from sayso.core.records.suspensions import RunStatus
from sayso.core.records.terms import Fallback, FallbackAction
from sayso.runner.batches import Resumption
from sayso.runner.local import HeadlessProvider, run_agent
from tests.sayso.rule_builders import policy, rule
from tests.sayso.runners import POLICY, Ran, approve, deny, fields_of, give, kinds, make_agent, turn

LOOK, REFUND, PAY = ("look", {"order": "A"}), ("refund", {"order": "A", "amount": 5}), ("pay", {"order": "A"})


class Ada:
    """Approves the first refund with less, gives the code, and denies the second refund."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def answer(self, drafts: Sequence[ItemDraft]) -> Mapping[int, Resumption]:
        self.asked.append([ask.tool.name for ask in drafts])
        if len(self.asked) > 1:
            return {ask.index: deny(ask) for ask in drafts}
        return {ask.index: give(ask, "1234") if ask.target_arg else approve(ask, amount=2) for ask in drafts}


async def test_run_agent_asks_the_provider_and_returns_all_events() -> None:
    ran: Ran = []
    ada = Ada()
    agent = make_agent(ran, turn(LOOK, REFUND, PAY), turn(REFUND))
    end = await run_agent(agent, "Refund A-1", policy=POLICY, provider=ada)
    assert ada.asked == [["refund", "pay"], ["refund"]]
    assert sorted(name for name, _, _ in ran) == ["look", "pay", "refund"]
    assert (end.status, end.result) == (RunStatus.COMPLETED, {"text": "done"})
    asked = ["llm_completed", "tool_batch_started"]
    told_ = ["tool_batch_completed"]
    assert kinds(end.events) == [
        *asked, *["policy_decision"] * 3, "run_paused", "run_resumed", *["tool_completed"] * 3, *told_,
        *asked, "policy_decision", "run_paused", "run_resumed", "tool_completed", *told_,
        "llm_completed",
    ]  # fmt: skip
    assert fields_of(end.events, "run_resumed", "approved") == [True, False]
    assert fields_of(end.events, "run_paused", "tool_name", "reason")[0] == ("refund", "money leaves")


async def test_keys_differ_between_batches_and_calls() -> None:
    ran: Ran = []
    agent = make_agent(ran, turn(LOOK, LOOK), turn(LOOK, LOOK))
    await run_agent(agent, "Look", policy=POLICY, provider=HeadlessProvider())
    assert len({call.idempotency_key for _, _, call in ran}) == 4


async def test_headless_provider_resolves_by_fallbacks() -> None:
    unattended = policy(
        rule("refunds", "request_approval", tool_name="refund", terms={"unattended_approval": True}),
        rule(
            "codes", "request_user_input", tool_name="pay", request_payload={"target_arg": "code", "choices": ["1111"]}
        ),
    )
    yes = Fallback(action=FallbackAction.APPROVE)
    for rules, approval, code, runs in (
        (POLICY, Fallback(), None, []),
        (POLICY, yes, None, []),
        (unattended, yes, None, ["refund"]),
        (unattended, Fallback(), "1111", ["pay"]),
        (unattended, Fallback(), "2222", []),
    ):
        ran: Ran = []
        given = Fallback(action=FallbackAction.VALUE, value=code) if code else Fallback()
        provider = HeadlessProvider(approval_fallback=approval, input_fallback=given)
        end = await run_agent(make_agent(ran, turn(REFUND, PAY)), "Refund", policy=rules, provider=provider)
        assert [name for name, _, _ in ran] == runs
        assert end.status is RunStatus.COMPLETED
        errors = set(fields_of(end.events, "tool_completed", "error")) - {None}
        assert errors == {"Denied: this agent runs where nobody can be asked."}


async def test_missing_outcome_denies_the_call() -> None:
    class Nobody:
        async def answer(self, drafts: Sequence[ItemDraft]) -> Mapping[int, Resumption]:
            return {}

    ran: Ran = []
    end = await run_agent(make_agent(ran, turn(REFUND)), "Refund", policy=POLICY, provider=Nobody())
    assert (ran, fields_of(end.events, "run_resumed", "approved")) == ([], [False])


async def test_call_that_the_caller_denied_is_not_asked_again() -> None:
    held = policy(rule("refunds", "request_approval", tool_name="refund", after_denial="deny"))
    ran: Ran = []
    ada = Ada()
    ada.asked.append([])
    end = await run_agent(make_agent(ran, turn(REFUND), turn(REFUND)), "Refund", policy=held, provider=ada)
    assert ada.asked == [[], ["refund"]]
    assert "has denied this very call before" in fields_of(end.events, "tool_completed", "error")[1]


async def test_run_in_one_process_asks_no_more_than_its_rule_lets_it() -> None:
    capped = policy(rule("refunds", "request_approval", tool_name="refund", asks={"per_run": 1}))
    ran: Ran = []
    ada = Ada()
    await run_agent(make_agent(ran, turn(REFUND), turn(REFUND)), "Refund", policy=capped, provider=ada)
    assert ada.asked == [["refund"]]
