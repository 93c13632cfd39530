"""Commands for absences, preferences and addresses in channels, and the one that says who is asked when."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from sayso.cli.logins import connect, exchange
from sayso.cli.screens import JsonOption, format_time, make_console, print_json, print_list, show_line
from sayso.client import administration as requests
from sayso.core.calendar import Hours
from sayso.core.canonical_json import parse_json
from sayso.core.clock import now_ms
from sayso.errors import InvalidInput

contacts = typer.Typer(help="Link and unlink your addresses in channels.", no_args_is_help=True)

PersonOption = Annotated[
    str | None, typer.Option("--person", help="Another person's name. Requires an admin.", metavar="NAME")
]


@contacts.command("list")
def list_contacts(person: PersonOption = None, json: JsonOption = False) -> None:
    """List your linked addresses."""
    listed = exchange(requests.list_contacts(person)).contacts
    rows = ((view.id, view.channel, view.label or view.address, format_time(view.linked_at)) for view in listed)
    print_list(listed, json, ("id", "channel", "address", "linked"), rows, empty="No address is linked.")


@contacts.command("code")
def create_code(channel: Annotated[str, typer.Argument(help="The channel's name.")], json: JsonOption = False) -> None:
    """Create a code that links one of your addresses in a channel within 10 minutes."""
    made = exchange(requests.create_contact_code(channel))
    if json:
        print_json(made)
    else:
        make_console().print(show_line(f"{made.code}: send it to Sayso in {made.channel} within 10 minutes."))


@contacts.command("unlink")
def unlink(
    contact_id: Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso contacts list`.")],
    person: PersonOption = None,
) -> None:
    """Unlink an address."""
    exchange(requests.unlink_contact(person, contact_id))
    make_console().print(show_line(f"{contact_id} is unlinked."))


absence = typer.Typer(help="Say when you are absent, and who decides for you.", no_args_is_help=True)

_TIME = "such as 2026-12-21 or 2026-12-21T08:00, in the time zone of the person, or with an offset such as +01:00"


@absence.command("list")
def list_absences(
    everybody: Annotated[bool, typer.Option("--all", help="List everybody's absences.")] = False,
    json: JsonOption = False,
) -> None:
    """List your absences."""
    request = requests.LIST_ALL_ABSENCES if everybody else requests.list_absences()
    absences = exchange(request).absences
    rows = (
        (entry.id, entry.person, format_time(entry.starts_at), format_time(entry.ends_at), entry.delegate or "nobody")
        for entry in absences
    )
    print_list(absences, json, ("id", "person", "from", "to", "delegate"), rows, empty="No absence is known.")


@absence.command("add")
def add(
    start: Annotated[str, typer.Argument(metavar="FROM", help=f"The first moment, {_TIME}.")],
    end: Annotated[str, typer.Argument(metavar="TO", help="The last moment, in the same form.")],
    delegate: Annotated[str | None, typer.Option(help="Who decides meanwhile.")] = None,
    person: PersonOption = None,
) -> None:
    """Add an absence. A date begins at midnight where the person is."""
    with connect() as client:
        name = client.exchange(requests.find_preferences(person)).time_zone
        zone = ZoneInfo(name)
        made = client.exchange(requests.add_absence(person, _read_time(start, zone), _read_time(end, zone), delegate))
    begins, ends = (format_time(time.astimezone(zone)) for time in (made.starts_at, made.ends_at))
    who = f"{made.delegate} decides for {made.person}" if made.delegate else f"Nobody decides for {made.person}"
    make_console().print(show_line(f"{who} from {begins} to {ends} ({name})."))


@absence.command("delete")
def delete(
    absence_id: Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso absence list`.")],
    person: PersonOption = None,
) -> None:
    """Delete an absence."""
    exchange(requests.delete_absence(person, absence_id))
    make_console().print(show_line(f"{absence_id} is deleted."))


def preferences(
    time_zone: Annotated[str | None, typer.Option(help="Such as Europe/Berlin.")] = None,
    quiet: Annotated[str | None, typer.Option(help="Quiet hours such as 22:00-07:00, or off.")] = None,
    digest: Annotated[str | None, typer.Option(help="off, hourly or daily.")] = None,
    cap: Annotated[int | None, typer.Option(help="Most notifications an hour; 0 for no limit.")] = None,
    person: PersonOption = None,
    json: JsonOption = False,
) -> None:
    """Show how you are notified, and change what the options give."""
    update = {"time_zone": time_zone, "digest": digest, "cap_per_hour": cap}
    given: dict[str, object] = {name: value for name, value in update.items() if value is not None}
    if quiet is not None:
        begin, dash, end = quiet.partition("-")
        if not dash and quiet != "off":
            raise InvalidInput(f"Write quiet hours as 22:00-07:00, or off, not {quiet[:40]!r}.")
        # the desk says what is wrong with the hours
        given["quiet_hours"] = Hours.model_construct(start=begin.strip(), end=end.strip()) if dash else None
    if cap == 0:
        given["cap_per_hour"] = None
    with connect() as client:
        settings = client.exchange(requests.find_preferences(person))
        if given:
            settings = client.exchange(requests.save_preferences(person, settings.model_copy(update=given)))
    if json:
        print_json(settings)
        return
    hours = settings.quiet_hours
    span = f"{hours.start}-{hours.end} on {len(hours.weekdays)} days a week" if hours is not None else "off"
    shown = f"quiet hours {span}, digest {settings.digest}, at most {settings.cap_per_hour or 'any number'} an hour"
    make_console().print(show_line(f"Time zone {settings.time_zone}, {shown}."))


def _read_time(text: str, zone: ZoneInfo) -> datetime:
    try:
        time = datetime.fromisoformat(text)
        return time if time.tzinfo is not None else time.replace(tzinfo=zone)
    except ValueError as error:
        raise InvalidInput(f"{text[:40]!r} is not a time. Write one {_TIME}.") from error


def who(
    rule: Annotated[str, typer.Option(help="The rule's id.")],
    at: Annotated[str | None, typer.Option(help="A time such as 2026-12-24T18:00; now by default.")] = None,
    call: Annotated[Path | None, typer.Option(help="A JSON file with the call, such as its owner.")] = None,
    json: JsonOption = False,
) -> None:
    """Say who would be asked when under a rule, and what happens at the deadline."""
    try:
        moment = datetime.fromisoformat(at).astimezone() if at else datetime.fromtimestamp(now_ms() / 1000, UTC)
    except ValueError as error:
        raise InvalidInput(f"{(at or '')[:40]!r} is not a time. Write one such as 2026-12-24T18:00.") from error
    try:
        sample = parse_json(call.read_bytes()) if call is not None else None
    except OSError as error:
        raise InvalidInput(f"{call} cannot be read: {error.strerror}.") from error
    forecast = exchange(requests.show_who(rule, moment, sample))
    if json:
        print_json(forecast)
        return
    rows = (
        (
            *(str(notice.step), notice.reviewer or "everybody", notice.person, notice.channel),
            *(format_time(notice.sent_at) if notice.sent_at else "-", notice.reason),
        )
        for notice in forecast.asked
    )
    print_list(forecast.asked, False, ("step", "reviewer", "person", "channel", "sent", "note"), rows, empty="Nobody.")
    make_console().print(show_line(f"At {format_time(forecast.deadline_at)}: {forecast.end}"))
