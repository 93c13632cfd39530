"""The support table: a column per framework, a row per scenario, and notes."""

from collections.abc import Mapping, Sequence
from textwrap import wrap

from tests.frameworks.denials import AGAIN, BY_PEOPLE, BY_RULES
from tests.frameworks.kinds import SCENARIOS, Kind

BEGIN, END = "<!-- support table: written by make frameworks -->", "<!-- end of the support table -->"


def write_table(kinds: Sequence[Kind], outcomes: Mapping[tuple[str, str], bool]) -> str:
    """Return the table as Markdown, with notes on unsupported scenarios and the ways of denying a call."""
    notes: list[str] = []
    lines = [
        f"| | {' | '.join(one.title for one in kinds)} |",
        f"| --- |{' --- |' * len(kinds)}",
        *(
            f"| {words} | {' | '.join(_cell(one, name, outcomes, notes) for one in kinds)} |"
            for name, words in SCENARIOS.items()
        ),
    ]
    below = [f"{number}. {note}" for number, note in enumerate(notes, start=1)]
    return "\n".join([*lines, *(["", *below] if below else []), "", *_list_denials()])


def _list_denials() -> list[str]:
    """Return a list of the ways of denying a call."""
    rows = {"By people": BY_PEOPLE, "By rules, deadlines and stops": BY_RULES, "Repeated": AGAIN}
    parts = [f"- {title}: {'; '.join(ways.values())}." for title, ways in rows.items()]
    lines = [line for part in parts for line in wrap(part, 120, subsequent_indent="  ", break_on_hyphens=False)]
    return ["Calls are denied in twenty-one ways, and none of them runs:", "", *lines]


def replace_table(page: str, table: str) -> str:
    """Return the page with its table replaced."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}"


def _cell(kind: Kind, scenario: str, outcomes: Mapping[tuple[str, str], bool], notes: list[str]) -> str:
    outcome = "no"
    if scenario not in kind.skips:
        outcome = {True: "yes", False: "**failed**", None: "**not run**"}[outcomes.get((kind.name, scenario))]
    reason = kind.skips.get(scenario) or kind.limits.get(scenario)
    if reason is None:
        return outcome
    note = f"{reason[:1].upper()}{reason[1:]}."
    if note not in notes:
        notes.append(note)
    return f"{outcome} ({notes.index(note) + 1})"
