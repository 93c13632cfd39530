"""The changelog keeps to Keep a Changelog and names the version that a release would build."""

import re
import tomllib

from tests.architecture.sources import ROOT

GROUPS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
TEXT = (ROOT / "CHANGELOG.md").read_text()


def test_unreleased_comes_before_the_project_version() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    sections = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(version)} - \d{{4}}-\d{{2}}-\d{{2}}", sections[1])


def test_groups_are_known_and_in_order() -> None:
    for section in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:]:
        groups = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert groups == [group for group in GROUPS if group in groups]


def test_entry_is_one_line() -> None:
    entries = [line for line in TEXT.splitlines() if line.startswith(("- ", "  "))]
    assert [line for line in entries if not re.fullmatch(r"- [A-Z`@].{0,117}\.", line)] == []
