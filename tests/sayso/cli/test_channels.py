"""Commands for channels and reports."""

import csv
import json
from pathlib import Path

import pytest

from sayso.cli.channels import print_ready
from sayso.wire.channels import HistoryItem, RuleCostView
from tests.sayso.cli.test_commands import Run, ask, desk, sayso  # noqa: F401
from tests.sayso.views import view

Desk = tuple[str, str, str, str]


def test_channels_are_listed_and_tested_by_admins(desk: Desk, sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    assert "push  push  web push" in sayso("channels", "list", key=root).stdout
    refused = sayso("channels", "test", "ops", "--to", "anna", key=root)
    assert (refused.returncode, refused.stderr.strip()) == (
        1,
        "There is no channel 'ops'. Configured channels: push.",
    )


def test_preview_needs_no_desk(sayso: Run, tmp_path: Path) -> None:  # noqa: F811
    rules, call = tmp_path / "rules.yaml", tmp_path / "call.json"
    rules.write_text("version: 1\ndefault: deny\nrules:\n  - {id: pay, tool: pay, action: request_approval}\n")
    call.write_text(json.dumps({"tool": "pay"}))
    shown = sayso("channels", "preview", str(rules), "--rule", "pay", "--call", str(call))
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip()
    refused = sayso("channels", "preview", str(rules), "--rule", "none", "--call", str(call))
    assert (refused.returncode, "Rules that ask: pay" in refused.stderr) == (1, True)


def test_report_headless_reads_dates(desk: Desk, sayso: Run) -> None:  # noqa: F811
    none = "No item was decided without notifying anybody."
    assert none in sayso("report", "headless", "--from", "2026-11-01", "--to", "2026-11-02").stdout
    assert "--from is not a time" in sayso("report", "headless", "--from", "soon").stderr


def test_activity_is_listed_with_what_it_changed(desk: Desk, sayso: Run) -> None:  # noqa: F811
    root = desk[3]
    assert sayso("groups", "create", "payments", "anna", key=root).returncode == 0
    shown = sayso("activity", "--limit", "1", "--json", key=root)
    (entry,) = json.loads(shown.stdout)
    assert (entry["act"], entry["target"], entry["data"]["changed"]) == ("group_created", "payments", "members: +anna")
    assert "members: +anna" in sayso("activity", "--limit", "1", key=root).stdout
    assert "needs the role" in sayso("activity").stderr


def test_overrides_are_json_lines(desk: Desk, sayso: Run) -> None:  # noqa: F811
    assert sayso("deny", ask(desk), "-m", "No.", "-y").returncode == 0
    (line,) = sayso("overrides", key=desk[1]).stdout.splitlines()
    assert (json.loads(line)["kind"], json.loads(line)["reason"]) == ("denial", "No.")
    assert sayso("overrides", "2020-02-29", key=desk[3]).stdout == ""
    assert "'soon' is not a day" in sayso("overrides", "soon", key=desk[3]).stderr


def test_history_is_listed_and_exported(desk: Desk, sayso: Run) -> None:  # noqa: F811
    assert "No decided item matches." in sayso("history", "tool:none").stdout
    assert json.loads(sayso("history", "tool:none", "--json").stdout) == []
    (header,) = csv.reader(sayso("history", "tool:none", "--csv").stdout.splitlines())
    assert header == [*HistoryItem.model_fields]
    assert "Give one of approved" in sayso("history", "--verdict", "perhaps").stderr


def test_report_insights_prints_tables_or_json(desk: Desk, sayso: Run) -> None:  # noqa: F811
    shown = sayso("report", "insights", "--range", "24h")
    assert "Nothing was asked in this time." in shown.stdout
    assert json.loads(sayso("report", "insights", "--json").stdout)["tools"] == []
    assert sayso("report", "insights", "--range", "1y").returncode == 1


def test_report_rules_prints_a_table_or_json(desk: Desk, sayso: Run) -> None:  # noqa: F811
    assert "No rule cost anything in this time." in sayso("report", "rules").stdout
    assert json.loads(sayso("report", "rules", "--json").stdout) == []


def test_report_rules_names_grants_that_are_ready(capsys: pytest.CaptureFixture[str]) -> None:
    costs = [
        view(RuleCostView, rule=rule, proposals=ready, sentence=f"{rule}: 412 asks")
        for rule, ready in (("refunds-under-50", 1), ("payouts", 0))
    ]
    print_ready(costs)
    said = capsys.readouterr().out
    assert "refunds-under-50: 412 asks" in said
    assert "sayso grants confirm ID" in said
    assert "payouts" not in said
    print_ready(costs[1:])
    assert capsys.readouterr().out == ""
