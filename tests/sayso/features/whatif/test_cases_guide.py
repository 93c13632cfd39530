"""The guide names every key of a case, and its example of cases ends as it says."""

import re

from sayso.core.policy.files.cases import CALL_KEYS, CASE_KEYS, GRANTED_KEYS, read_cases
from sayso.core.policy.files.yaml_documents import read_document
from sayso.core.records.suspensions import ModelUsage, Progress, Who
from sayso.features.whatif.cases import run_cases
from tests.pages import find_blocks, read_page
from tests.sayso.core.policy.rule_files import parse

GUIDE = read_page("policies/life-cycle")
(EXAMPLE,) = (block for block in find_blocks(GUIDE, "yaml") if "granted:" in block)


def list_named(heading: str) -> set[str]:
    """Return the keys in the first column of the table below this heading."""
    _, _, rest = GUIDE.partition(f"| {heading} |")
    table, _, _ = rest.partition("\n\n")
    return {key for row in table.splitlines()[2:] for key in re.findall(r"`(.*?)`", row.split("|")[1])}


def test_guide_names_every_key() -> None:
    assert list_named("Key of a case") == {*CASE_KEYS}
    assert list_named("Key of `call`") == {*CALL_KEYS}
    assert list_named("Key of `granted`") == {*GRANTED_KEYS}


def test_guide_names_every_part_of_who_and_progress() -> None:
    (who,) = (line for line in GUIDE.splitlines() if line.startswith("| `who` |"))
    (progress,) = (line for line in GUIDE.splitlines() if line.startswith("| `progress` |"))
    assert [one for one in Who.model_fields if f"`{one}`" not in who] == []
    assert [one for one in (*Progress.model_fields, *ModelUsage.model_fields) if f"`{one}`" not in progress] == []


def test_example_uses_every_key_of_call() -> None:
    tests = read_document(EXAMPLE.encode(), "").content["tests"]
    assert {key for one in tests for key in one["call"]} == {*CALL_KEYS}
    assert {key for one in tests for key in one} == {*CASE_KEYS}


def test_example_of_cases_ends_as_stated() -> None:
    cases, faults = read_cases(EXAMPLE.encode(), "life-cycle.md")
    assert faults == []
    assert [one.fault for one in run_cases(parse(EXAMPLE), cases)] == [""] * len(cases)
