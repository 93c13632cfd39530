"""The text of each rule in its file, and the line on which it begins."""

from typing import NamedTuple

from sayso.policy.yaml_documents import read_document


class RuleSource(NamedTuple):
    """The lines of one rule; `line` counts from 1."""

    line: int
    text: str


def find_sources(raw: bytes) -> dict[str, RuleSource]:
    """Return the source of every rule with an id; none for a file that is not readable."""
    document = read_document(raw, "")
    if not isinstance(document.content, dict) or not isinstance(document.content.get("rules"), list):
        return {}
    lines = raw.decode("utf-8-sig").splitlines()
    rules = document.content["rules"]
    starts = [document.values["rules", index][0] for index in range(len(rules))]
    later = [line for loc, (line, _) in document.keys.items() if len(loc) == 1]
    sources = {}
    for rule, first, following in zip(rules, starts, [*starts[1:], None], strict=True):
        ends = [line for line in (following, *later) if line is not None and line > first]
        if isinstance(rule, dict) and isinstance(rule.get("id"), str):
            sources[rule["id"]] = RuleSource(first, _cut(lines[first - 1 : min(ends, default=len(lines) + 1) - 1]))
    return sources


def _cut(lines: list[str]) -> str:
    """Return the lines without blank lines and comments at their end, which belong to the next rule."""
    while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
        lines = lines[:-1]
    return "\n".join(lines)
