"""`sayso policy test`: the cases beside the rules, run on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel

from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.policies import read_raw
from sayso.cli.screens import make_console, show, show_line
from sayso.errors import InvalidInput
from sayso.policy.engine import Policy
from sayso.policy.packages import check_packages

if TYPE_CHECKING:
    from sayso.policy.analysis.cases import Case

CasesOption = Annotated[
    Path | None, typer.Option("--cases", help="Another file with cases than the one beside the rules.")
]


class CaseOutcome(BaseModel):
    """How one case ended; an empty `fault` is as expected."""

    name: str
    place: str
    expected: str
    action: str
    rule: str | None
    fault: str


def run_tests(file: Path, cases: CasesOption = None, json: JsonOption = False) -> None:
    """Run the cases in a file of rules, and in the file beside it: policy.cases.yaml for policy.yaml.

    No desk is required. The exit code is 1 if a case does not end as expected.
    """
    check_packages("cli,policies")
    from sayso.policy.analysis.cases import run_cases

    policy = load_policy(file)
    outcomes = [
        CaseOutcome(
            name=run.case.name,
            place=run.case.place,
            expected=run.case.expect,
            action=run.action,
            rule=run.rule_id,
            fault=run.fault,
        )
        for run in run_cases(policy, load_cases(file, cases))
    ]
    if json:
        print_json(outcomes)
    else:
        _show(file, outcomes)
    if any(outcome.fault for outcome in outcomes):
        raise typer.Exit(1)


def load_policy(file: Path) -> Policy:
    """Return the rules of a file; raises `InvalidInput` with all faults."""
    from sayso.policy.files import parse_beside

    return parse_beside(read_raw(file), file)


def load_cases(file: Path, other: Path | None = None) -> "list[Case]":
    """Return the cases in a file, and in another or the one beside it; raises `InvalidInput`."""
    from sayso.policy.analysis.cases import find_cases_file, read_cases

    beside = other or find_cases_file(file)
    paths = [file, *([beside] if other is not None or beside.exists() else [])]
    cases: list[Case] = []
    for path in paths:
        parsed, faults = read_cases(read_raw(path), str(path))
        if faults:
            raise InvalidInput("\n".join(faults))
        cases += parsed
    if not cases:
        raise InvalidInput(f"{file} has no cases. Write them under `tests:`, there or in {find_cases_file(file).name}.")
    return cases


def _show(file: Path, outcomes: list[CaseOutcome]) -> None:
    console = make_console()
    wrong = [outcome for outcome in outcomes if outcome.fault]
    for outcome in wrong:
        console.print(show(f"{outcome.place}: {outcome.name}: {outcome.fault}", "red"))
    count = f"{len(outcomes)} {'case' if len(outcomes) == 1 else 'cases'}"
    end = f"{len(wrong)} not as expected" if wrong else "all as expected"
    console.print(show_line(f"{file}: {count}, {end}."))
