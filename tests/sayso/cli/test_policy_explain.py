"""`sayso policy explain` and `schema` on this machine."""

import json
from pathlib import Path

import pytest

from sayso.core.policy.files.schema import build_rule_schema
from tests.sayso.cli.test_policies import run

RULES = """
version: 1
default: allow
rules:
  - {id: limit, tool: pay, when: args.amount > 500, action: deny, absolute: true}
  - {id: large, tool: pay, when: args.amount > 100, action: request_approval, terms: {timeout_s: 60}}
  - {id: nights, tool: deploy, outside: {hours: "08:00-18:00", zone: Europe/Zurich}, action: deny}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "call.json").write_text('{"tool": "deploy", "at": "2026-12-01T19:00 Europe/Zurich"}')
    return tmp_path


def test_explain_says_which_rule_decides_and_what_others_saw(home: Path) -> None:
    done = run(home, "policy", "explain", '{"tool": "pay", "args": {"amount": 250}}', "--rules", "rules.yaml")
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    assert "It would wait 1 min for any reviewer; then it is denied. Rule large says request_approval." in words
    assert "limit: Its condition is false. Here amount is 250." in words
    assert "large: Decides. Here amount is 250." in words
    assert "nights: It is for deploy." in words


def test_explain_reads_a_file_and_prints_json(home: Path) -> None:
    done = run(home, "policy", "explain", "@call.json", "--rules", "rules.yaml", "--json")
    found = json.loads(done.stdout)
    assert (found["action"], found["rule_id"], found["absolute"]) == ("deny", "nights", False)
    nights = next(one for one in found["rules"] if one["rule_id"] == "nights")
    assert (nights["match"], nights["saw"]) == ("decides", {"now": "Tue 2026-12-01 19:00 Europe/Zurich"})


def test_explain_says_that_nobody_can_lift_a_denial(home: Path) -> None:
    done = run(home, "policy", "explain", '{"tool": "pay", "args": {"amount": 900}}', "--rules", "rules.yaml")
    assert "It would be denied. Nobody can lift this." in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('{"tool": "pay", "amount": 3}', "The call is not valid: amount: Extra inputs are not permitted."),
        ("{}", "The call is not valid: tool: Field required."),
        ("@none.json", "none.json cannot be read"),
        ("sus_1/i1", "Only a desk knows items"),
        ("{", "JSON"),
        ("refund", "'refund' is no call. Give it as JSON, as @FILE, or as an item such as sus_019a/i1."),
    ],
)
def test_explain_refuses_what_is_no_call(home: Path, call: str, words: str) -> None:
    done = run(home, "policy", "explain", call, "--rules", "rules.yaml")
    assert done.returncode != 0
    assert words in " ".join(done.stderr.split())


def test_schema_prints_the_json_schema(home: Path) -> None:
    done = run(home, "policy", "schema")
    assert json.loads(done.stdout) == build_rule_schema()
