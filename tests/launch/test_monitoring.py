"""Alerts, dashboard, metrics and runbook name each other; Prometheus' own checker accepts and tests the alerts."""

import json
import re
import subprocess

import pytest
import yaml

from docs.build import ROOT
from docs.references import write_alerts, write_metrics
from tests.launch.promtool import find_promtool

FOLDER = ROOT / "distribution" / "monitoring"
RULES = yaml.safe_load((FOLDER / "alerts.yaml").read_text())["groups"][0]["rules"]
PANELS = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
QUERIES = [rule["expr"] for rule in RULES] + [query["expr"] for panel in PANELS for query in panel["targets"]]


def list_series() -> set[str]:
    """Return the names of the series of `/metrics`."""
    rows = re.findall(r"^\| `(sayso_\w+)[^|]*\| (\w+) ", write_metrics(), re.MULTILINE)
    parts = {"histogram": ("_bucket", "_sum", "_count")}
    return {name + part for name, kind in rows for part in parts.get(kind, ("",))}


@pytest.mark.parametrize("query", QUERIES)
def test_every_query_names_series_that_exist(query: str) -> None:
    named = set(re.findall(r"sayso_\w+", query))
    assert named
    assert named <= list_series()


def test_each_alert_leads_to_its_section_of_the_runbook() -> None:
    sections = {f"docs/runbook.md#{name.lower()}" for name in re.findall("^## (.+)", write_alerts(), re.MULTILINE)}
    assert sections == {rule["annotations"]["runbook"] for rule in RULES}
    assert "<!-- generated: alerts -->" in (ROOT / "docs" / "runbook.md").read_text()


def test_each_alert_is_tested_firing_and_silent() -> None:
    groups = yaml.safe_load((FOLDER / "alerts.test.yaml").read_text())["tests"]
    checks = [check for group in groups for check in group["alert_rule_test"]]
    fired = {check["alertname"] for check in checks if check["exp_alerts"]}
    silent = {check["alertname"] for check in checks if not check["exp_alerts"]}
    assert fired == silent == {rule["alert"] for rule in RULES}


def test_promtool_accepts_the_alerts_and_their_tests() -> None:
    promtool = find_promtool()
    for command in (["check", "rules", "alerts.yaml"], ["test", "rules", "alerts.test.yaml"]):
        done = subprocess.run([promtool, *command], cwd=FOLDER, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
