"""`sayso policy diff`: what changes between two rulebooks, and for which calls."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import BaseModel

from sayso.cli.screens import JsonOption, make_console, print_json, show
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.packages import check_packages
from sayso.errors import InvalidInput
from sayso.features.whatif.commands import SumOption, UntilOption, load_cases, load_policy, run_replay, show_replay
from sayso.wire.rulebook import ReplayView

SinceOption = Annotated[
    str | None, typer.Option("--from", help="Also compare on the desk's recorded calls since this date; for admins.")
]
CallsOption = Annotated[
    Path | None, typer.Option("--calls", help="Also compare on the calls under `tests:` in this file.")
]


class ChangedCall(BaseModel):
    """A call of a file on which the rulebooks decide otherwise; None is the default."""

    name: str
    place: str
    was: str
    was_rule: str | None
    now: str
    now_rule: str | None


class Differences(BaseModel):
    """The differences of two rulebooks in words, and on calls; `calls` and `recorded` are null without any."""

    old: str
    new: str
    differences: list[str]
    calls: list[ChangedCall] | None = None
    recorded: ReplayView | None = None


def diff(
    old: Path,
    new: Path,
    calls: CallsOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    path: SumOption = None,
    json: JsonOption = False,
) -> None:
    """Say which rules came, went and changed between two files, and for which calls the outcome changes.

    No desk is required, but for --from.
    """
    check_packages("cli,policies")
    if until is not None and since is None:
        raise InvalidInput("--to needs --from. Add the begin of the range.")
    from sayso.features.whatif.diff_text import list_differences
    from sayso.features.whatif.diffs import compare_rulebooks

    before, after = load_policy(old), load_policy(new)
    comparison = Differences(
        old=before.version,
        new=after.version,
        differences=list_differences(compare_rulebooks(before, after)),
        calls=_compare_calls(before, after, calls) if calls is not None else None,
        recorded=run_replay(new, since, until, path=path, base=old) if since is not None else None,
    )
    if json:
        print_json(comparison)
    else:
        console = make_console()
        for sentence in comparison.differences:
            console.print(show(sentence))
        if not comparison.differences:
            console.print(show(f"No rule differs: both are version {comparison.new}."))
        for call in comparison.calls or ():
            was, now = f"{call.was} by {call.was_rule or 'default'}", f"{call.now} by {call.now_rule or 'default'}"
            console.print(show(f"{call.place}: {call.name}: {was} → {now}", "yellow"))
        if comparison.calls == []:
            console.print(show("No call of the file changes.", "dim"))
        if comparison.recorded is not None:
            show_replay(console, comparison.recorded)


def _compare_calls(before: Policy, after: Policy, file: Path) -> list[ChangedCall]:
    from sayso.features.whatif.cases import place_case

    changed: list[ChangedCall] = []
    for case in load_cases(file):
        was, now = (policy.judge(place_case(policy, case)[0]) for policy in (before, after))
        if (was.action, was.policy_id, was.error) != (now.action, now.policy_id, now.error):
            rules = {"was_rule": was.policy_id, "now_rule": now.policy_id}
            changed.append(ChangedCall(name=case.name, place=case.place, was=was.action, now=now.action, **rules))
    return changed
