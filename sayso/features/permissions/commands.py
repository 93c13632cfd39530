"""Commands on grants and mandates, and the options that make a grant. A plan is approved or denied as any item."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

import typer
from rich.text import Text

from sayso.cli.logins import exchange
from sayso.cli.screens import JsonOption, format_time, make_console, print_list, show_line
from sayso.client import rulebook
from sayso.client.clients import Client
from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.policy.rule_keys import read_period
from sayso.errors import InvalidInput, InvalidJson
from sayso.wire.rulebook import GrantView
from sayso.wire.suspensions import DecidedItem

app = typer.Typer(help="List, confirm, revoke and reinstate standing grants.", no_args_is_help=True)

_WHOLE = 2_000
_WAITING = "waiting"

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
FreeOption = Annotated[
    list[str] | None,
    typer.Option("--free", help="An argument that may change or be missing; args for any arguments at all."),
]
OnlyOption = Annotated[
    list[str] | None, typer.Option("--only", help="The value that an argument must have: args.to=a@example.org.")
]

GrantArgument = Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso grants list`.")]


def read_grant(
    for_: str | None,
    count: int | None,
    most: str | None,
    same: list[str] | None,
    at_most: list[str] | None,
    free: list[str] | None = None,
) -> JsonObject | None:
    """Return the grant of the options, None without `--grant-for`; raises `InvalidInput`."""
    if for_ is None:
        if any(option is not None for option in (count, most)) or same or at_most or free:
            raise InvalidInput("A grant needs an end. Add --grant-for, such as --grant-for 1h.")
        return None
    try:
        for_s = read_period(for_)
    except ValueError as error:
        raise InvalidInput(f"--grant-for: {error}.") from error
    given: JsonObject = {"for_s": for_s, "same": [*(same or ())], "at_most": _read_pairs(at_most)}
    given |= {"free": [*free]} if free else {}
    return given | {name: value for name, value in (("count", count), ("sum", most)) if value is not None}


def read_offer(at_most: list[str] | None, only: list[str] | None) -> JsonObject | None:
    """Return the counter-offer of the options, None without any; raises `InvalidInput`."""
    if not at_most and not only:
        return None
    equal = _read_pairs(only)
    for path, value in equal.items():
        with suppress(InvalidJson):
            equal[path] = parse_json(str(value).encode())
    return {"at_most": _read_pairs(at_most), "equal": equal}


def list_grants(json: JsonOption = False) -> None:
    """List the grants of the last month with their use."""
    grants = exchange(rulebook.LIST_GRANTS).grants
    rows = (
        (
            *(grant.id, _write_state(grant), grant.sentence, ", ".join(grant.granted_by) or "nobody yet"),
            *(describe_use(grant), format_time(grant.last_used_at) if grant.last_used_at else "never"),
        )
        for grant in grants
    )
    columns = ("id", "state", "lets run", "by", "calls", "last")
    print_list(grants, json, columns, rows, empty="Nothing is granted.", width=_WHOLE)


def show_granted(client: Client, decided: DecidedItem) -> Iterator[Text]:
    """Yield what a decision granted or offered, and how to go on; nothing without a grant."""
    grant_id = decided.decision.grant_id if decided.decision is not None else ""
    for grant in client.exchange(rulebook.LIST_GRANTS).grants if grant_id else ():
        if grant.id == grant_id:
            yield show_line(f"{'Offers' if grant.offered else 'Grants'}: {grant.sentence}.", width=_WHOLE)
            if grant.state == _WAITING:
                yield show_line(f"It waits for another person, who runs: sayso grants confirm {grant.id}")
            else:
                yield show_line(f"To revoke it, run: sayso grants revoke {grant.id}")


def confirm(grant_id: GrantArgument) -> None:
    """Grant together with the people who did, or put a grant in force that Sayso proposed."""
    grant = exchange(rulebook.confirm_grant(grant_id))
    make_console().print(show_line(f"{grant.id} is {_write_state(grant)}: {grant.sentence}.", width=_WHOLE))


def revoke(grant_id: GrantArgument) -> None:
    """End a grant or a proposal at once, also for calls that it allowed and that have not started."""
    grant = exchange(rulebook.revoke_grant(grant_id))
    make_console().print(show_line(f"{grant.id} is {_write_state(grant)}."))


def reinstate(grant_id: GrantArgument) -> None:
    """Overrule the denial that suspends a learned grant. Read the denied call before."""
    grant = exchange(rulebook.reinstate_grant(grant_id))
    make_console().print(show_line(f"{grant.id} is {_write_state(grant)}: {grant.sentence}.", width=_WHOLE))


def _write_state(grant: GrantView) -> str:
    return "void" if grant.void else grant.state.replace("_", " ")


def describe_use(grant: GrantView) -> str:
    """Return the calls that a grant let run, or on probation how people decided those that it would have."""
    if grant.learned is None or grant.granted_by:
        return str(grant.calls)
    tried = grant.learned
    counts = f"{tried.approved} approved, {tried.edited} edited, {tried.denied} denied, {tried.unanswered} unanswered"
    missing = max(0, tried.probation - tried.approved)
    return f"would have allowed {tried.would_allow}: {counts}; {f'{missing} to go' if missing else 'ready'}"


def _read_pairs(given: list[str] | None) -> JsonObject:
    pairs: JsonObject = {}
    for pair in given or ():
        path, sign, value = pair.partition("=")
        if not sign:
            raise InvalidInput(f"{pair!r} has no value. Write it as {pair}=VALUE.")
        pairs[path] = value
    return pairs


app.command("list")(list_grants)
app.command()(confirm)
app.command()(revoke)
app.command()(reinstate)


mandates_app = typer.Typer(help="List and revoke mandates: approved plans of agents.", no_args_is_help=True)

MandateArgument = Annotated[str, typer.Argument(metavar="ID", help="An id from `sayso mandates list`.")]


def list_mandates(json: JsonOption = False) -> None:
    """List the approved mandates of the last month with their use."""
    mandates = exchange(rulebook.LIST_MANDATES).mandates
    rows = (
        (
            *(mandate.id, mandate.state, mandate.agent, " ".join(mandate.sentences), ", ".join(mandate.approved_by)),
            f"{mandate.calls} of {mandate.count}",
            format_time(mandate.last_used_at) if mandate.last_used_at else "never",
        )
        for mandate in mandates
    )
    columns = ("id", "state", "agent", "lets run", "by", "calls", "last")
    print_list(mandates, json, columns, rows, empty="No plan was approved.")


def end_mandate(mandate_id: MandateArgument) -> None:
    """End a mandate at once, also for calls that it allowed and that have not started."""
    mandate = exchange(rulebook.revoke_mandate(mandate_id))
    make_console().print(show_line(f"{mandate.id} is {mandate.state}."))


mandates_app.command("list")(list_mandates)
mandates_app.command("revoke")(end_mandate)
