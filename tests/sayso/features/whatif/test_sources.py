"""The lines of each rule in its file."""

from pathlib import Path

from sayso.core.policy.files.reading import parse_rulebook
from sayso.features.whatif.diffs import RuleSource, find_sources

RULES = """\
version: 1
rules:
  # The first.
  - id: a
    tool: x

    action: allow

  # The second.
  - {id: b, action: deny}
  - tool: nameless

  - id: c
    action: allow
# The end of the rules.
default: deny
"""


def test_sources_have_the_lines_of_each_rule_without_comments_around() -> None:
    assert find_sources(RULES.encode()) == {
        "a": RuleSource(4, "  - id: a\n    tool: x\n\n    action: allow"),
        "b": RuleSource(10, "  - {id: b, action: deny}"),
        "c": RuleSource(13, "  - id: c\n    action: allow"),
    }


def test_sources_of_a_faulty_file_are_empty() -> None:
    for raw in (b"", b"rules: [", b"rules: 7", b"\xff", b"- 1"):
        assert find_sources(raw) == {}


def test_sources_cover_the_rules_of_the_demo() -> None:
    raw = Path("demo/policy.yaml").read_bytes()
    found = find_sources(raw)
    assert found.keys() == {one.rule_id for one in parse_rulebook(raw, file="policy.yaml").rules}
    lines = raw.decode().splitlines()
    assert all(lines[one.line - 1] == one.text.splitlines()[0] for one in found.values())
