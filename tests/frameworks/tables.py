"""Write the support table: a column for each framework, a row for each scenario, a note for what is left out."""

from collections.abc import Mapping, Sequence

from tests.frameworks.kinds import SCENARIOS, Kind

BEGIN, END = "<!-- support table: written by make frameworks -->", "<!-- end of the support table -->"


def write_table(kinds: Sequence[Kind], outcomes: Mapping[tuple[str, str], bool]) -> str:
    """Return the table as Markdown, with the reasons for what is left out below it."""
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
    """Return the page with this table in the place of its own."""
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
