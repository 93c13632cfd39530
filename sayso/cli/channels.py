"""Commands for channels, and reports: test cards and previews, decisions that no person made, and how people decide."""

import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from sayso.cli.logins import connect, exchange
from sayso.cli.screens import JsonOption, format_time, make_console, print_json, print_list, show_line
from sayso.client import channels as requests
from sayso.core.sentences.deadlines import describe_brief
from sayso.core.text.csv_rows import write_row
from sayso.errors import InvalidInput, Unavailable
from sayso.wire.channels import HeadlessView, HistoryItem, PersonFiguresView, RuleCostView

_PREVIEWS = "service.channels.previews"

channels = typer.Typer(help="Check the channels over which people are notified.", no_args_is_help=True)


@channels.command("list")
def list_channels(json: JsonOption = False) -> None:
    """List the configured channels, without their secrets. Requires an admin."""
    listed = exchange(requests.LIST_CHANNELS).channels
    rows = (
        (view.name, view.kind, view.destination, ", ".join(f"{row.name}: {row.text}" for row in view.settings))
        for view in listed
    )
    columns = ("name", "kind", "provider", "settings")
    print_list(listed, json, columns, rows, empty="No channel is configured. Set SAYSO_CHANNELS on the service.")


@channels.command("test")
def send_test(
    name: Annotated[str, typer.Argument(help="The channel's name.")],
    to: Annotated[str, typer.Option("--to", help="A reviewer; without it, the channel's own destination.")] = "",
    json: JsonOption = False,
) -> None:
    """Send a test card, and print the provider's answer. Requires an admin."""
    answers = exchange(requests.send_test(name, to)).answers
    if json:
        print_json(answers)
    for answer in () if json else answers:
        accepted = f"accepted: {answer.text}" if answer.text else "accepted."
        text = accepted if answer.accepted else f"not accepted: {answer.text}"
        make_console().print(show_line(f"{name}: {text}", "" if answer.accepted else "red", width=600))
    if not all(answer.accepted for answer in answers):
        raise typer.Exit(1)


@channels.command("preview")
def preview(
    rules: Annotated[Path, typer.Argument(help="The rules file.")],
    rule: Annotated[str, typer.Option("--rule", help="The id of the rule.")],
    call: Annotated[Path, typer.Option("--call", help="A JSON file with tool, args and parameters.")],
    channels_file: Annotated[
        Path | None, typer.Option("--channels", help="The channels file; without it, every kind is shown.")
    ] = None,
) -> None:
    """Show what a rule and a call would look like on each channel. Nothing is sent; no desk is required."""
    if find_spec("service") is None and not Path("service").is_dir():
        raise Unavailable("Previews need the service's code. Run this where the service is installed.")
    given = [str(rules), "--rule", rule, "--call", str(call)]
    given += ["--channels", str(channels_file)] if channels_file is not None else []
    ended = subprocess.run([sys.executable, "-m", _PREVIEWS, *given], check=False)
    if ended.returncode:
        raise typer.Exit(ended.returncode)


_PAGE = 200
_HISTORY_COLUMNS = ("at (UTC)", "state", "decided by", "tool", "agent", "rule", "message", "suspension")
_TOOL_COLUMNS = ("tool", "asked", "approved", "edited", "median", "95 % within", "fallback")
_RULE_COLUMNS = ("rule", "asked", "time of people", "measured", "denied", "edited", "fallback", "wrong", "near")
_PERSON_COLUMNS = ("reviewer", "decided", "approved", "median look", "under 3 s", "instant", "drills approved", "flag")

RangeOption = Annotated[str, typer.Option("--range", help="24h, 7d, 30d or 90d.")]


def history(
    search: Annotated[list[str] | None, typer.Argument(help="A search as on the page, such as `tool:refund`.")] = None,
    verdict: Annotated[str, typer.Option(help="approved, answered, denied, failed, and others of the page.")] = "",
    by: Annotated[str, typer.Option(help="Who decided.")] = "",
    tool: Annotated[str, typer.Option(help="A part of the tool's name.")] = "",
    agent: Annotated[str, typer.Option(help="A part of the agent's name.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="The largest number of items; without it, all.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV that no spreadsheet evaluates.")] = False,
    json: JsonOption = False,
) -> None:
    """List decided items, or export them as CSV or JSON."""
    given = {"q": " ".join(search or []), "verdict": verdict, "by": by, "tool": tool, "agent": agent}
    filters = {name: value for name, value in given.items() if value}
    items: list[HistoryItem] = []
    cursor: str | None = ""
    with connect() as client:
        while cursor is not None and (limit is None or len(items) < limit):
            page = client.exchange(requests.list_history(filters, cursor, _PAGE))
            items += page.items
            cursor = page.next_cursor
            for note in page.notes:
                make_console(error=True).print(show_line(note, "yellow", width=500))
    items = items[:limit]
    if csv:
        rows = (item.model_dump(mode="json").values() for item in items)
        sys.stdout.write("".join(map(write_row, [[*HistoryItem.model_fields], *rows])))
        return
    lines = (
        (
            *(format_time(item.decided_at), item.state, item.decided_by, item.tool, item.agent),
            *(item.rule or "default", item.message or "", item.suspension_id),
        )
        for item in items
    )
    print_list(items, json, _HISTORY_COLUMNS, lines, empty="No decided item matches.")


reports = typer.Typer(help="Report decisions.", no_args_is_help=True)


@reports.command("headless")
def headless(
    since: Annotated[str | None, typer.Option("--from", help="Since this date or time, such as 2026-11-01.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Before this date or time.")] = None,
    json: JsonOption = False,
) -> None:
    """List the items that a fallback decided at once, without notifying anybody."""
    begin = read_time(since, "--from") if since is not None else None
    end = read_time(until, "--to") if until is not None else None
    items: list[HeadlessView] = []
    skip: int | None = 0
    with connect() as client:
        while skip is not None:
            page = client.exchange(requests.report_headless(begin, end, skip, _PAGE))
            items += page.items
            skip = page.next_skip
    rows = (
        (
            *(format_time(item.at), item.verdict, item.tool, item.rule_id or "default"),
            *(item.agent, item.owner, item.suspension_id),
        )
        for item in items
    )
    columns = ("at (UTC)", "verdict", "tool", "rule", "agent", "requested by", "suspension")
    print_list(items, json, columns, rows, empty="No item was decided without notifying anybody.")


@reports.command("insights")
def insights(span: RangeOption = "7d", json: JsonOption = False) -> None:
    """List what was asked and decided, by tool, then by reviewer."""
    report = exchange(requests.report_insights(span))
    if json:
        print_json(report)
        return
    tools = (
        (
            *(figures.tool, str(figures.asked), _share(figures.approve_rate), str(figures.edited)),
            *(_took(figures.p50_ms), _took(figures.p95_ms), str(figures.fallback)),
        )
        for figures in report.tools
    )
    print_list(report.tools, False, _TOOL_COLUMNS, tools, empty="Nothing was asked in this time.")
    people = map(_describe_person, report.people)
    print_list(report.people, False, _PERSON_COLUMNS, people, empty="Nobody decided in this time.")


@reports.command("rules")
def rules(span: RangeOption = "30d", json: JsonOption = False) -> None:
    """List what each rule cost: what it asked, the time of people, how they decided, and grants that are ready."""
    costs = exchange(requests.report_insights(span)).rules
    rows = map(_describe_rule, costs)
    print_list(costs, json, _RULE_COLUMNS, rows, empty="No rule cost anything in this time.")
    if not json:
        print_ready(costs)


def print_ready(costs: Iterable[RuleCostView]) -> None:
    """Print which rules have proposed grants that people may put in force; nothing for none."""
    ready = [cost.sentence for cost in costs if cost.proposals]
    console = make_console()
    for sentence in ready:
        console.print(show_line(sentence, width=1000))
    if ready:
        console.print(show_line("See `sayso grants list`, and put a proposal in force with `sayso grants confirm ID`."))


def _describe_rule(cost: RuleCostView) -> tuple[str, ...]:
    measured = f"{cost.measured} of {cost.decisions}"
    time = _took(cost.people_ms) if cost.measured else "unknown"
    counts = map(str, (cost.denied, cost.edited, cost.fallback, cost.disagreed, cost.near_misses))
    return ("default" if cost.rule == "-" else cost.rule, str(cost.asked), time, measured, *counts)


def _describe_person(person: PersonFiguresView) -> tuple[str, ...]:
    fast = person.fast / person.measured if person.measured else None
    approved = person.approved / (person.approved + person.denied) if person.approved + person.denied else None
    instant = person.instant / person.approvals_measured if person.approvals_measured else None
    drills = f"{person.drills_approved} of {person.drills}" if person.drills else ""
    flags = {"approves too fast": person.flagged, "approves false calls": person.drills_flagged}
    figures = (_share(approved), _took(person.p50_look_ms), _share(fast), _share(instant), drills)
    return person.name, str(person.decided), *figures, ", ".join(name for name, raised in flags.items() if raised)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _took(span_ms: int | None) -> str:
    return "" if span_ms is None else describe_brief(span_ms)


def read_time(text: str, option: str) -> str:
    """Return a date or time as RFC 3339 in UTC; one without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(f"{option} is not a time: {text!r}. Write it as 2026-11-01 or 2026-11-01T12:00Z.") from error
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
