"""A rules file is read when it changes, and an invalid file changes nothing."""

import os
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from sayso.core.policy.engine import ASK_EVERYTHING
from sayso.core.policy.events import PolicyEvent
from sayso.core.policy.files.reading import RulebookError, load_rulebook
from sayso.core.policy.rules import Action, RequestPayload
from sayso.core.records.terms import FallbackAction, RuleTerms
from service.core.policy.publishing import Rulebook
from tests.pages import find_blocks, read_policies
from tests.sayso.core.policy.rule_files import parse

EXAMPLES = find_blocks(read_policies(), "yaml")


def write(path: Path, text: str) -> None:
    """Replace the file in one move, as the guide says."""
    draft = path.with_suffix(".draft")
    draft.write_text(text, encoding="utf-8")
    os.replace(draft, path)


def judged(rulebook: Rulebook) -> Action:
    return rulebook.refresh().judge(PolicyEvent(run_id="run_1", agent="a", tool_name="t")).action


def test_without_a_file_everything_is_asked() -> None:
    assert load_rulebook(None) == ASK_EVERYTHING
    assert load_rulebook(None, terms=RuleTerms(timeout_s=5)).terms.timeout_s == 5
    assert judged(Rulebook(None)) is Action.REQUEST_APPROVAL


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(RulebookError, match="cannot be read"):
            load_rulebook(path)


def test_a_huge_file_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    with path.open("wb") as file:
        file.truncate(10**10)
    with pytest.raises(RulebookError, match="larger than"):
        load_rulebook(path)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    write(path, "version: 1\ndefault: allow\nrules: []")
    rulebook = Rulebook(path)
    assert judged(rulebook) is Action.ALLOW
    assert rulebook.refresh() is rulebook.refresh()
    write(path, "version: 1\ndefault: deny\nrules: []\n")
    assert judged(rulebook) is Action.DENY


def test_invalid_file_keeps_the_last_valid_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    write(path, "version: 1\ndefault: deny\nrules: []")
    rulebook = Rulebook(path)
    write(path, "version: 1\ndefault: alow\nrules: []")
    assert judged(rulebook) is Action.DENY
    assert rulebook.error is not None
    assert "policy.yaml:2:10: default: must be" in str(rulebook.error)
    path.unlink()
    assert judged(rulebook) is Action.DENY
    assert "cannot be read" in str(rulebook.error)
    write(path, "version: 1\ndefault: allow\nrules: []")
    assert judged(rulebook) is Action.ALLOW
    assert rulebook.error is None


def test_fault_and_repair_of_the_file_are_logged_once_each(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    write(path, "version: 1\ndefault: deny\nrules: []")
    rulebook = Rulebook(path)
    with capture_logs() as logs:
        for default in ("alow", "aloww", "allow"):
            write(path, f"version: 1\ndefault: {default}\nrules: []")
            for _ in range(3):
                rulebook.refresh()
    assert [one["event"] for one in logs] == ["rules_held", "rules_held_no_longer"]
    assert "policy.yaml:2:10: default: must be" in logs[0]["error"]
    assert logs[0]["held"] != logs[1]["version"] == rulebook.policy.version


def test_a_file_that_is_broken_from_the_start_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    write(path, "version: 1")
    with pytest.raises(RulebookError):
        Rulebook(path)


# The guide


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_guide_loads(example: str) -> None:
    assert parse(example).rules


def test_the_guide_has_its_examples_and_names_every_key() -> None:
    text = read_policies()
    keys = {*RuleTerms.model_fields, *RequestPayload.model_fields, "event", "subagent", "has_keys", "equals"}
    assert len(EXAMPLES) >= 5
    assert [key for key in sorted(keys) if f"`{key}" not in text] == []
    assert [word for word in (*Action, *FallbackAction) if f"`{word}`" not in text] == []


@pytest.mark.parametrize(
    ("rule_id", "tool", "args", "action"),
    [
        ("look-things-up", "search_web", {}, Action.ALLOW),
        ("look-things-up", "refund_order", {"amount": 101}, Action.REQUEST_APPROVAL),
        ("amounts", "pay_bill", {"amount": 50, "currency": "EUR"}, Action.ALLOW),
        ("amounts", "pay_bill", {"amount": 50, "currency": "CHF"}, Action.REQUEST_APPROVAL),
        ("amounts", "ship", {"country": "FR"}, Action.REQUEST_APPROVAL),
        ("amounts", "ship", {"country": "CH"}, Action.ALLOW),
        ("amounts", "send_mail", {"to": ["a@example.com"]}, Action.ALLOW),
        ("amounts", "send_mail", {"to": ["a@example.com", "b@example.org"]}, Action.REQUEST_APPROVAL),
        ("amounts", "run_shell", {"command": "sudo RM -r ."}, Action.DENY),
        ("amounts", "run_shell", {"command": "firm words"}, Action.ALLOW),
        ("amounts", "refund", {"amount": 60, "paid": 100.0}, Action.REQUEST_APPROVAL),
        ("amounts", "refund", {"amount": 40.5, "paid": 100}, Action.ALLOW),
        ("amounts", "refund", {"amount": 40.5}, Action.REQUEST_APPROVAL),
    ],
)
def test_the_examples_of_the_guide_do_what_it_says(
    rule_id: str, tool: str, args: dict[str, Any], action: Action
) -> None:
    event = PolicyEvent(run_id="run_1", agent="support", tool_name=tool, tool_args=args)
    (example,) = (one for one in EXAMPLES if f"- id: {rule_id}\n" in one)
    assert parse(example).judge(event).action is action


def test_a_changed_file_of_a_list_is_read_again(tmp_path: Path) -> None:
    path, listed = tmp_path / "policy.yaml", tmp_path / "blocked.txt"
    rule = "{id: a, tool: {in: all}, action: deny}"
    write(path, f"version: 1\ndefault: allow\nlists: {{all: {{file: blocked.txt}}}}\nrules: [{rule}]")
    write(listed, "other")
    rulebook = Rulebook(path)
    first = rulebook.refresh()
    assert (judged(rulebook), rulebook.refresh() is first) == (Action.ALLOW, True)
    assert rulebook.read_lists() == {"blocked.txt": "other"}
    write(listed, "other\nt\n")
    assert judged(rulebook) is Action.DENY
    assert rulebook.policy.version != first.version
    write(listed, "")
    assert judged(rulebook) is Action.DENY
    assert "the file has no entry" in str(rulebook.error)
    assert rulebook.read_source() is None
    write(listed, "fixed")
    assert (judged(rulebook), rulebook.error) == (Action.ALLOW, None)
    assert rulebook.read_source() is not None
