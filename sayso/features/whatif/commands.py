"""`sayso policy replay`, `shadow`, `test` and `diff`: calls and cases judged by other rules without effect."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from pydantic import BaseModel
from rich.console import Console

from sayso.cli.channels import read_time
from sayso.cli.logins import connect, exchange
from sayso.cli.policies import YesOption, find_version, read_lists, read_raw, read_rules
from sayso.cli.screens import JsonOption, format_time, make_console, make_table, print_json, show, show_line
from sayso.client import Client, rulebook
from sayso.core.clock import iso_utc, now_ms
from sayso.core.policy.engine import Policy
from sayso.core.policy.files.packages import check_packages
from sayso.core.rendering.money import write_sum
from sayso.core.text.summaries import write_pretty
from sayso.errors import InvalidInput
from sayso.features.whatif.text import describe_past, describe_review_time
from sayso.wire.rulebook import CellView, Effect, ReplayView, ShadowView

if TYPE_CHECKING:
    from sayso.core.policy.files.cases import Case


_WAIT_S = 2
_LISTED_CHARS = 800
_FORBIDDEN = ("denied", "refused")

SinceOption = Annotated[str, typer.Option("--from", help="Since this date or time, such as 2026-11-01.")]
UntilOption = Annotated[str | None, typer.Option("--to", help="Before this date or time; by default now.")]
SumOption = Annotated[str | None, typer.Option("--sum", help="The argument to sum, such as args.amount.")]


def replay(
    file: Path, since: SinceOption, until: UntilOption = None, path: SumOption = None, json: JsonOption = False
) -> None:
    """Judge all recorded calls of a range again by the rules in a file, beside what people decided. For admins.

    Nothing is changed. The exit code is 0 also where calls would change.
    """
    end_with(run_replay(file, since, until, path=path), json=json)


def run_replay(
    file: Path, since: str, until: str | None, *, path: str | None = None, base: Path | None = None
) -> ReplayView:
    """Return the replay of the rules in a file when it has ended; `base` holds rules to compare with."""
    begin, end = read_time(since, "--from"), read_time(until, "--to") if until is not None else iso_utc(now_ms())
    lists = {**(read_lists(base) if base is not None else {}), **read_lists(file)}
    text, before = read_rules(file), read_rules(base) if base is not None else None
    with connect() as client:
        started = client.exchange(
            rulebook.start_replay(text, file.name, begin, end, path=path, base=before, lists=lists)
        )
        return wait_for(client, started)


def end_with(replay: ReplayView, *, json: bool) -> None:
    """Print a replay that has ended, as JSON or in words; the exit code is 1 if it failed."""
    if json:
        print_json(replay)
    else:
        show_replay(make_console(), replay)
    if replay.status != "done":
        raise typer.Exit(1)


def show_replay(console: Console, replay: ReplayView) -> None:
    """Print a replay: the matrix, the calls that would now be allowed against a denial, and what is missing."""
    if replay.error:
        console.print(show(replay.error, "red"))
    span = f"{format_time(replay.since)} to {format_time(replay.until)} UTC"
    console.print(show_line(f"{replay.file}, version {replay.version}: {replay.calls:,} recorded calls, {span}."))
    console.print(show_line(f"{replay.changed:,} {'would have gone otherwise' if replay.shadow else 'would change'}."))
    table = make_table("", *(f"{'candidate:' if replay.shadow else 'now'} {effect}" for effect in Effect))
    rows = dict.fromkeys((cell.past, cell.was) for cell in replay.cells)
    for past, was in rows:
        label = describe_past(past) + (f", {was} before" if replay.compares else "")
        cells = {cell.now: cell for cell in replay.cells if (cell.past, cell.was) == (past, was)}
        table.add_row(label, *(show_line(_write_cell(cells.get(now))) for now in Effect))
    if rows:
        console.print(table)
    if any(cell.sums for cell in replay.cells):
        console.print(show_line("In brackets is the sum of the calls.", "dim"))
    for cell in replay.cells:
        if cell.past in _FORBIDDEN and cell.now == "allowed" and cell.was != "allowed":
            _show_listed(console, cell, "by the candidate" if replay.shadow else "now")
    for change in replay.changes:
        rules = f"rule {change.before or 'default'} {change.was} → rule {change.after or 'default'} {change.now}"
        console.print(show_line(f"{change.count:>9,}  {rules}"))
    for missing in replay.missing:
        why = "not judged by the candidate" if replay.shadow else "cannot be judged again"
        console.print(show_line(f"{missing.count:>9,}  {why}: {missing.fact}", "yellow"))
    for gap in replay.gaps:
        console.print(show(gap, "yellow"))
    time = replay.review_time
    console.print(show(describe_review_time(time.measured, time.typical_ms, time.saved_ms, time.added_ms)))


def wait_for(client: Client, started: ReplayView) -> ReplayView:
    """Return a replay when it has ended, with its progress on the screen; Ctrl-C ends it."""
    console = make_console(error=True)
    replay = started
    try:
        with console.status("Waiting for the desk …") as status:
            while replay.status in ("waiting", "running"):
                replay = client.exchange(rulebook.read_replay(started.id, _WAIT_S))
                status.update(show_line(f"{replay.runs:,} of {replay.of_runs:,} runs, {replay.calls:,} calls"))
    except KeyboardInterrupt:
        client.exchange(rulebook.delete_replay(started.id))
        raise
    return replay


def _write_cell(cell: CellView | None) -> str:
    if cell is None:
        return "-"
    sums = ", ".join(write_sum(number, currency) for currency, number in sorted(cell.sums.items()))
    return f"{cell.count:,}" + (f" ({sums})" if sums else "")


def _show_listed(console: Console, cell: CellView, by: str) -> None:
    console.print(show_line(f"{describe_past(cell.past).capitalize()}, and {by} {cell.now}:", "bold red"))
    for call in cell.listed:
        args = " ".join(write_pretty(call.args).split()) if call.args else ""
        place = f"{call.suspension_id} {call.item_id}" if call.item_id else call.run_id
        rules = f"{call.before or 'default'} → {call.now or 'default'}"
        listed = f"  {format_time(call.at)}  {place}  {call.tool} {args}  ({rules})"
        console.print(show_line(listed, width=_LISTED_CHARS))
    if cell.count > len(cell.listed):
        console.print(show_line(f"The newest {len(cell.listed):,} of {cell.count:,}."))


app = typer.Typer(no_args_is_help=True, help="Judge every new call by other rules as well, without effect.")

VersionOption = Annotated[str | None, typer.Option("--version", help="A version; any unique begin is enough.")]


@app.command("start")
def start(
    file: Annotated[Path | None, typer.Argument()] = None, version: VersionOption = None, json: JsonOption = False
) -> None:
    """Put a file of rules, or a version that the desk keeps, in shadow. For admins."""
    if (file is None) == (version is None):
        raise InvalidInput("Give either a file or --version.")
    with connect() as client:
        if file is not None:
            request = rulebook.begin_file_shadow(read_rules(file), file.name, read_lists(file))
        else:
            listed = client.exchange(rulebook.LIST_VERSIONS).versions
            request = rulebook.begin_shadow(find_version(listed, version or "").version)
        shadow = client.exchange(request)
    if json:
        print_json(shadow)
        return
    console = make_console()
    console.print(show_line(f"Version {shadow.version} of {shadow.file} judges every new call in shadow.", width=1000))
    console.print(show_line("It changes nothing. `sayso policy shadow report` says what it would have done."))


@app.command("status")
def status(json: JsonOption = False) -> None:
    """Show the candidate in shadow, and those before it."""
    shadows = exchange(rulebook.READ_SHADOW)
    if json:
        print_json(shadows)
        return
    console = make_console()
    if shadows.current is None:
        console.print(show_line("No candidate is in shadow."))
    for view in [*([shadows.current] if shadows.current is not None else []), *shadows.ended]:
        ended = f"until {format_time(view.end)}, ended by {view.ended_by}" if view.end is not None else "until now"
        since = f"in shadow since {format_time(view.start)} by {view.by}, {ended}"
        console.print(show_line(f"Version {view.version} of {view.file}: {since}", width=1000))


@app.command("report")
def report(version: VersionOption = None, path: SumOption = None, json: JsonOption = False) -> None:
    """Compare what the candidate would have done with what was done and what people decided. For admins.

    By default it is the candidate in shadow, else the last one.
    """
    with connect() as client:
        name = None
        if version is not None:
            shadows = client.exchange(rulebook.READ_SHADOW)
            listed = [*([shadows.current] if shadows.current is not None else []), *shadows.ended]
            names = {shadow.version for shadow in listed if shadow.version.startswith(version)}
            if len(names) != 1:
                count = len(names) or "No"
                raise InvalidInput(f"{count} candidates begin with {version!r}. See `sayso policy shadow status`.")
            name = names.pop()
        replay = wait_for(client, client.exchange(rulebook.report_shadow(name, path)))
    end_with(replay, json=json)


@app.command("end")
def end() -> None:
    """End the candidate in shadow. For admins."""
    with connect() as client:
        current = _read_current(client)
        client.exchange(rulebook.end_shadow(current.version))
    make_console().print(show_line(f"Version {current.version} is no longer in shadow."))


@app.command("promote")
def promote(yes: YesOption = False) -> None:
    """Put the candidate in force, if enough people attest its bytes, and end its shadow. For admins."""
    with connect() as client:
        current = _read_current(client)
        listed = client.exchange(rulebook.LIST_VERSIONS).versions
        replaces = next((version.version for version in listed if version.in_force), "")
        question = f"Put version {current.version} of {current.file} in force instead of {replaces or 'none'}?"
        if not yes and not typer.confirm(question):
            raise typer.Abort
        client.exchange(rulebook.promote_shadow(current.version, replaces))
    make_console().print(show_line(f"Version {current.version} is in force. {replaces} is withdrawn."))


def _read_current(client: Client) -> ShadowView:
    current = client.exchange(rulebook.READ_SHADOW).current
    if current is None:
        raise InvalidInput("No candidate is in shadow. `sayso policy shadow start FILE` puts one there.")
    return current


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
    from sayso.features.whatif.cases import run_cases

    policy = load_policy(file)
    outcomes: list[CaseOutcome] = []
    for run in run_cases(policy, load_cases(file, cases)):
        about = {"name": run.case.name, "place": run.case.place, "expected": run.case.expect}
        outcomes.append(CaseOutcome(**about, action=run.action, rule=run.rule_id, fault=run.fault))
    if json:
        print_json(outcomes)
    else:
        console = make_console()
        wrong = [outcome for outcome in outcomes if outcome.fault]
        for outcome in wrong:
            console.print(show(f"{outcome.place}: {outcome.name}: {outcome.fault}", "red"))
        count = f"{len(outcomes)} {'case' if len(outcomes) == 1 else 'cases'}"
        end = f"{len(wrong)} not as expected" if wrong else "all as expected"
        console.print(show_line(f"{file}: {count}, {end}."))
    if any(outcome.fault for outcome in outcomes):
        raise typer.Exit(1)


def load_policy(file: Path) -> Policy:
    """Return the rules of a file; raises `InvalidInput` with all faults."""
    from sayso.core.policy.files.reading import parse_beside

    return parse_beside(read_raw(file), file)


def load_cases(file: Path, other: Path | None = None) -> "list[Case]":
    """Return the cases in a file, and in another or the one beside it; raises `InvalidInput`."""
    from sayso.core.policy.files.cases import find_cases_file, read_cases

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


CompareOption = Annotated[
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
    since: CompareOption = None,
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
    from sayso.features.whatif.diffs import compare_rulebooks, list_differences

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
