"""The support table: a column per framework, a row per scenario, and notes."""

from collections.abc import Mapping, Sequence

from tests.frameworks.kinds import SCENARIOS, Kind

BEGIN, END = "<!-- support table: written by make frameworks -->", "<!-- end of the support table -->"


def write_table(kinds: Sequence[Kind], outcomes: Mapping[tuple[str, str], bool]) -> str:
    """Return the table as Markdown, with notes on unsupported scenarios."""
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
    return "\n".join([*lines, *(["", *below] if below else [])])


def replace_table(page: str, table: str) -> str:
    """Return the page with its table replaced."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}"


def _cell(kind: Kind, scenario: str, outcomes: Mapping[tuple[str, str], bool], notes: list[str]) -> str:
    reason = kind.skips.get(scenario)
    if reason is None:
        return {True: "yes", False: "**failed**", None: "**not run**"}[outcomes.get((kind.name, scenario))]
    note = f"{reason[:1].upper()}{reason[1:]}."
    if note not in notes:
        notes.append(note)
    return f"no ({notes.index(note) + 1})"
