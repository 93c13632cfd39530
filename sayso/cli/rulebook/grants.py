"""Commands that list, confirm and revoke standing grants, and the options that make one."""

from typing import Annotated

import typer
from pydantic import JsonValue

from sayso.canonical_json import JsonObject, parse_json
from sayso.cli.logins import connect
from sayso.cli.outputs import JsonOption, print_list
from sayso.cli.screens import format_time, make_console, show_line
from sayso.client.rulebook import LIST_GRANTS, GrantView, confirm_grant, revoke_grant
from sayso.errors import InvalidInput, InvalidJson

app = typer.Typer(help="List, confirm and revoke standing grants.", no_args_is_help=True)

_UNITS = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}

GrantForOption = Annotated[
    str | None, typer.Option(help="Also let like calls run without asking, for so long: 30m, 1h, 7d.")
]
GrantCountOption = Annotated[int | None, typer.Option(help="The most calls of the grant.")]
GrantSumOption = Annotated[str | None, typer.Option(help="The most in sum over all calls of the grant.")]
SameOption = Annotated[
    list[str] | None, typer.Option("--same", help="An argument that must stay as it is, such as args.customer.")
]
AtMostOption = Annotated[
    list[str] | None, typer.Option("--at-most", help="The most that an argument may be: args.amount=200.")
]
OnlyOption = Annotated[
    list[str] | None, typer.Option("--only", help="The value that an argument must have: args.to=a@example.org.")
]

GrantArgument = Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso grants list`.")]


def read_grant(
    for_: str | None, count: int | None, most: str | None, same: list[str] | None, at_most: list[str] | None
) -> JsonObject | None:
    """Return the grant of the options, None without `--grant-for`; raises `InvalidInput`."""
    if for_ is None:
        if any(one is not None for one in (count, most)) or same or at_most:
            raise InvalidInput("A grant needs an end. Add --grant-for, such as --grant-for 1h.")
        return None
    unit = _UNITS.get(for_[-1:])
    if unit is None or not (for_[:-1].isascii() and for_[:-1].isdigit()):
        raise InvalidInput(f"{for_!r} is not a time. Write a number and m, h, d or w, such as 1h.")
    given: JsonObject = {"for_s": int(for_[:-1]) * unit, "same": [*(same or ())], "at_most": _read_pairs(at_most)}
    return given | {name: value for name, value in (("count", count), ("sum", most)) if value is not None}


def read_offer(at_most: list[str] | None, only: list[str] | None) -> JsonObject | None:
    """Return the counter-offer of the options, None without any; raises `InvalidInput`."""
    if not at_most and not only:
        return None
    equal: JsonObject = {path: _read_json(value) for path, value in _read_pairs(only).items()}
    return {"at_most": _read_pairs(at_most), "equal": equal}


def list_grants(json: JsonOption = False) -> None:
    """List the grants of the last month with their use."""
    with connect() as client:
        found = client.exchange(LIST_GRANTS).grants
    rows = (
        (
            one.id,
            "void" if one.void else one.state,
            one.sentence,
            ", ".join(one.granted_by) or "nobody yet",
            describe_use(one),
            format_time(one.last_used_at) if one.last_used_at else "never",
        )
        for one in found
    )
    print_list(found, json, ("id", "state", "lets run", "by", "calls", "last"), rows, empty="Nothing is granted.")


def confirm(grant_id: GrantArgument) -> None:
    """Grant together with the people who did, or put a grant in force that Sayso proposed."""
    with connect() as client:
        one = client.exchange(confirm_grant(grant_id))
    make_console().print(show_line(f"{one.id} is {one.state}: {one.sentence}."))


def revoke(grant_id: GrantArgument) -> None:
    """End a grant or a proposal at once, also for calls that it allowed and that have not started."""
    with connect() as client:
        one = client.exchange(revoke_grant(grant_id))
    make_console().print(show_line(f"{one.id} is {one.state}."))


def describe_use(one: GrantView) -> str:
    """Return the calls that a grant let run, or on probation how people decided those that it would have."""
    if one.learned is None or one.granted_by:
        return str(one.calls)
    tried = one.learned
    counts = f"{tried.approved} approved, {tried.edited} edited, {tried.denied} denied, {tried.unanswered} unanswered"
    left = max(0, tried.probation - tried.approved)
    return f"would have allowed {tried.would_allow}: {counts}; {f'{left} to go' if left else 'ready'}"


def _read_pairs(given: list[str] | None) -> JsonObject:
    pairs: JsonObject = {}
    for one in given or ():
        path, sign, value = one.partition("=")
        if not sign:
            raise InvalidInput(f"{one!r} has no value. Write it as args.amount=200.")
        pairs[path] = value
    return pairs


def _read_json(text: JsonValue) -> JsonValue:
    try:
        return parse_json(str(text).encode())
    except InvalidJson:
        return text


app.command("list")(list_grants)
app.command()(confirm)
app.command()(revoke)
