"""`sayso policy test` and `sayso policy diff` on this machine, without a desk."""

import json
from pathlib import Path

from tests.sayso.cli.test_policies import run

RULES = """\
version: 1
default: deny
rules:
  - {id: large, priority: 200, tool: refund, when: args.amount > 100, action: request_approval}
  - {id: small, tool: refund, action: allow}
tests:
  - {name: small ones run, call: {tool: refund, args: {amount: 5}}, expect: allow, rule: small}
"""
CASES = "tests:\n  - {name: large ones wait, call: {tool: refund, args: {amount: 500}}, expect: ask}\n"


def test_policy_test_runs_cases_in_the_file_and_beside_it(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    (tmp_path / "rules.cases.yaml").write_text(CASES)
    done = run(tmp_path, "policy", "test", "rules.yaml")
    assert (done.returncode, done.stdout.strip()) == (0, "rules.yaml: 2 cases, all as expected."), done


def test_policy_test_names_each_case_that_is_not_as_expected(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES.replace("> 100", "> 1000"))
    (tmp_path / "other.yaml").write_text(CASES)
    done = run(tmp_path, "policy", "test", "rules.yaml", "--cases", "other.yaml")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "other.yaml:2:5: large ones wait: expected ask, but rule small says allow",
        "rules.yaml: 2 cases, 1 not as expected.",
    ]
    found = json.loads(run(tmp_path, "policy", "test", "rules.yaml", "--cases", "other.yaml", "--json").stdout)
    assert [(one["name"], one["rule"], bool(one["fault"])) for one in found] == [
        ("small ones run", "small", False),
        ("large ones wait", "small", True),
    ]


def test_policy_test_refuses_a_file_without_cases_or_with_faults(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\ndefault: deny\nrules: []\n")
    done = run(tmp_path, "policy", "test", "rules.yaml")
    assert (done.returncode, "rules.yaml has no cases. Write them under `tests:`" in done.stderr) == (1, True), done
    (tmp_path / "rules.cases.yaml").write_text("tests:\n  - {call: {tol: x}, expect: deny}\n")
    done = run(tmp_path, "policy", "test", "rules.yaml")
    assert (done.returncode, "rules.cases.yaml:2:13: case 1: there is no key `tol`" in done.stderr) == (1, True), done


def test_policy_diff_tells_changes_and_changed_calls(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(RULES)
    (tmp_path / "new.yaml").write_text(RULES.replace("> 100", "> 1000"))
    (tmp_path / "calls.yaml").write_text(CASES)
    done = run(tmp_path, "policy", "diff", "old.yaml", "new.yaml", "--calls", "calls.yaml")
    assert (done.returncode, done.stdout.splitlines()) == (
        0,
        [
            "Rule large: covers “Calls of refund with amount over 1000”, no longer “Calls of refund with amount over "
            "100”.",
            "calls.yaml:2:5: large ones wait: request_approval by large → allow by small",
        ],
    ), done
    found = json.loads(run(tmp_path, "policy", "diff", "old.yaml", "new.yaml", "--json").stdout)
    assert (len(found["differences"]), found["calls"], found["recorded"]) == (1, None, None)


def test_policy_diff_of_equal_rules_says_so(tmp_path: Path) -> None:
    (tmp_path / "old.yaml").write_text(RULES)
    (tmp_path / "new.yaml").write_text(f"# moved\n{RULES}")
    (tmp_path / "calls.yaml").write_text(CASES)
    done = run(tmp_path, "policy", "diff", "old.yaml", "new.yaml", "--calls", "calls.yaml")
    first, second = done.stdout.splitlines()
    assert first.startswith("No rule differs: both are version ")
    assert second == "No call of the file changes."
    done = run(tmp_path, "policy", "diff", "old.yaml", "new.yaml", "--to", "2026-11-01")
    assert (done.returncode, "--to needs --from" in done.stderr) == (1, True)
