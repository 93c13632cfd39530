"""Commands that show waiting items, without the secrets in them, claim and decide them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import sleep
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel, JsonValue
from rich.live import Live

from sayso.cli.logins import connect
from sayso.cli.runs import REFRESH_S
from sayso.cli.screens import JsonOption, format_time, make_console, print_json, print_list, print_paged, show_line
from sayso.cli.suspensions import check_readable, show_args, show_barred, show_inbox, show_suspension
from sayso.client import Client
from sayso.client.operations import Action
from sayso.core.canonical_json import JsonObject, parse_json
from sayso.core.text.redaction import Redacted, redact
from sayso.errors import AlreadyDecided, InvalidInput, InvalidJson, NotFound
from sayso.features.permissions import commands as grants
from sayso.wire.items import CommentView, DecisionView, ItemView, OutcomeView
from sayso.wire.suspensions import SuspensionPage, SuspensionView

Decided = TypeVar("Decided", DecisionView, OutcomeView)
Model = TypeVar("Model", bound=BaseModel | None)


def mask_suspension(suspension: SuspensionView) -> SuspensionView:
    """Return the suspension with its items' secrets masked, also where other texts quote them."""
    secrets = Redacted({}, frozenset().union(*(_find_secrets(item) for item in suspension.items)))
    if not secrets.masked:
        return suspension
    update = {
        "run": _scrub(suspension.run, secrets, "claimed_title", "claimed_context"),
        "end": _scrub(suspension.end, secrets, "result", "error"),
        "items": tuple(_mask_item(item, secrets) for item in suspension.items),
    }
    return suspension.model_copy(update=update)


def _find_secrets(item: ItemView) -> frozenset[str]:
    decided = (part for given in (*item.decisions, item.outcome) for part in _list_decided(item, given))
    known = (item.tool.args, item.original or {}, *decided)
    return frozenset().union(*(redact(args, None, item.terms.secrets).secrets for args in known))


def _list_decided(item: ItemView, given: DecisionView | OutcomeView | None) -> list[JsonObject]:
    """Return the arguments that a decision or the outcome has, and its value as an argument."""
    if given is None:
        return []
    value: JsonObject = {item.target_arg: given.value} if item.target_arg is not None else {}
    return [given.args or {}, value]


def _mask_item(item: ItemView, secrets: Redacted) -> ItemView:
    report = _scrub(item.permit.report, secrets, "output", "error") if item.permit is not None else None
    args = secrets.scrub_object(redact(item.tool.args, None, item.terms.secrets).args)
    update = {
        "tool": item.tool.model_copy(update={"args": args}),
        "original": redact(item.original, None, item.terms.secrets).args if item.original is not None else None,
        "prompt": _scrub(item.prompt, secrets, "title", "body", "reason", "metadata"),
        "computed": secrets.scrub_json(item.computed),
        "previews": tuple(_scrub(preview, secrets, "content", "before", "error", "args") for preview in item.previews),
        "denied_before": _scrub(item.denied_before, secrets, "message"),
        "decisions": tuple(_mask_decided(item, decision, secrets) for decision in item.decisions),
        "outcome": _mask_decided(item, item.outcome, secrets) if item.outcome is not None else None,
        "permit": item.permit.model_copy(update={"report": report}) if item.permit is not None else None,
        "inquiries": tuple(_scrub(inquiry, secrets, "text", "answer") for inquiry in item.inquiries),
        "forwarded": _scrub(item.forwarded, secrets, "note"),
    }
    return item.model_copy(update=update)


def _mask_decided(item: ItemView, decided: Decided, secrets: Redacted) -> Decided:
    args, values = (redact(given, None, item.terms.secrets).args for given in _list_decided(item, decided))
    value = values[item.target_arg] if item.target_arg is not None else decided.value
    masked = decided.model_copy(update={"args": args if decided.args is not None else None, "value": value})
    return _scrub(masked, secrets, "args", "value", "message")


def _scrub(model: Model, secrets: Redacted, *names: str) -> Model:
    """Return a model with these fields scrubbed; None stays."""
    if model is None:
        return model
    return model.model_copy(update={name: secrets.scrub_json(getattr(model, name)) for name in names})


_PAGE = 200

ItemOption = Annotated[str | None, typer.Option("--item", help="The item, if several wait.")]
NumberOption = Annotated[
    str | None, typer.Option(help="The two digits that the requester sees, if the item needs them.")
]
CodeOption = Annotated[
    str | None, typer.Option(help="The six digits of your authenticator app, if the item needs them.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def inbox(
    once: Annotated[bool, typer.Option("--once", help="Print the inbox once.")] = False, json: JsonOption = False
) -> None:
    """Show the items that wait for reviewers, live."""
    console = make_console()
    with connect() as client:
        if json or once or not console.is_terminal:
            pages = list(_list_pages(client))
            waiting = [suspension for page in pages for suspension in page.suspensions]
            if json:
                print_json([mask_suspension(suspension) for suspension in waiting])
            else:
                unreadable = [record for page in pages for record in page.unreadable]
                console.print(show_inbox(waiting, unreadable, console.width))
            return
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while True:
                page = client.waiting(limit=50)
                live.update(show_inbox(page.suspensions, page.unreadable, console.width), refresh=True)
                sleep(REFRESH_S)


def print_suspension(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A suspension's id, or a unique part of it.")],
    secrets: Annotated[bool, typer.Option("--secrets", help="Show secret values, too.")] = False,
    json: JsonOption = False,
) -> None:
    """Show a suspension and its items, with secret values masked."""
    with connect() as client:
        suspension = find_suspension(client, id_)
    shown = suspension if secrets else mask_suspension(suspension)
    if json:
        print_json(shown)
        return
    masked = [show_line("Secret values are masked. --secrets shows them.", "yellow")] if shown is not suspension else []
    print_paged(make_console(), show_suspension(shown), *masked)


def when(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A suspension's id, or a unique part of it.")],
    json: JsonOption = False,
) -> None:
    """Say when the items of a suspension will probably be decided, and by whom."""
    with connect() as client:
        forecasts = client.forecast(find_suspension(client, id_).id).items
    rows = (
        (
            *(item.item_id, item.tool, *(format_time(at) if at else "-" for at in (item.half_by, item.most_by))),
            *(", ".join(f"{person.name} {person.share:.0%}" for person in item.people or ()), str(item.measured)),
        )
        for item in forecasts
    )
    columns = ("item", "tool", "1 of 2 by", "9 of 10 by", "people", "measured")
    print_list(forecasts, json, columns, rows, empty="Nothing waits.")


def approve(  # noqa: PLR0913, PLR0917  one parameter for each option
    id_: Annotated[str, typer.Argument(metavar="ID")],
    item: ItemOption = None,
    args: Annotated[str | None, typer.Option(help="All arguments, as one JSON object, if you change them.")] = None,
    message: Annotated[str | None, typer.Option(help="A message for the record.")] = None,
    number: NumberOption = None,
    code: CodeOption = None,
    grant_for: grants.GrantForOption = None,
    grant_count: grants.GrantCountOption = None,
    grant_sum: grants.GrantSumOption = None,
    same: grants.SameOption = None,
    at_most: grants.AtMostOption = None,
    free: grants.FreeOption = None,
    yes: YesOption = False,
) -> None:
    """Approve a call, with its own or with other arguments, and like calls too with --grant-for."""
    grant = grants.read_grant(grant_for, grant_count, grant_sum, same, at_most, free)
    given: dict[str, JsonValue] = {"message": message, "number": number, "code": code, "grant": grant}
    if args is not None:
        try:
            given["args"] = parse_json(args.encode())
        except InvalidJson as error:
            raise InvalidInput(f"--args is not strict JSON: {error.message}") from error
    _decide(id_, item, "approve", given, yes)


def deny(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    message: Annotated[str | None, typer.Option("--message", "-m", help="The reason; the agent receives it.")] = None,
    item: ItemOption = None,
    at_most: grants.AtMostOption = None,
    only: grants.OnlyOption = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="Ask for another version; -m says what to change.")
    ] = False,
    change: Annotated[list[str] | None, typer.Option(help="The same for one argument, such as args.amount.")] = None,
    yes: YesOption = False,
) -> None:
    """Deny a call. With --changes ask for another version; with --at-most or --only, such a call then runs once."""
    given: dict[str, JsonValue] = {"message": message, "offer": grants.read_offer(at_most, only)}
    if changes or change:
        given["changes"] = {"paths": [*(change or ())]}
    _decide(id_, item, "deny", given, yes)


def answer(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    value: Annotated[str, typer.Argument(help="The value, as JSON or text.")],
    item: ItemOption = None,
    message: Annotated[str | None, typer.Option(help="A message for the record.")] = None,
    number: NumberOption = None,
    code: CodeOption = None,
    yes: YesOption = False,
) -> None:
    """Give the value that an item requests."""
    if value.startswith("--"):
        raise InvalidInput(f"There is no option {value}. Quote a text that begins with dashes: '\"--text\"'.")
    _decide(id_, item, "value", {"value": value, "message": message, "number": number, "code": code}, yes)


def _decide(id_: str, item_id: str | None, action: Action, given: dict[str, Any], yes: bool) -> None:
    console = make_console()
    with pick(id_, item_id) as (client, suspension, item):
        shown = suspension.model_copy(update={"items": (item,)})
        if not yes and action != "deny":
            check_readable(console, shown, f"{client.url}/items/{suspension.id}/{item.item_id}")
        console.print(show_suspension(mask_suspension(shown) if action == "deny" else shown))
        if not yes:
            if not sys.stdin.isatty():
                raise InvalidInput("Standard input is not a terminal. Give --yes to decide without confirmation.")
            if given.get("args") is not None:
                console.print("with these arguments:", *show_args(given["args"]), sep="\n")
            typer.confirm({"approve": "Approve?", "deny": "Deny?", "value": "Answer?"}[action], abort=True)
            if item.terms.step_up == "code" and action != "deny" and given["code"] is None:
                given["code"] = typer.prompt("Code of your authenticator app").replace(" ", "")
        fields: dict[str, JsonValue] = {name: value for name, value in given.items() if value is not None}
        if "value" in fields:
            fields["value"] = _read_value(item, str(fields["value"]))
        decided = client.decide(suspension.id, item, action, key=None, **fields)
        granted = list(grants.show_granted(client, decided))
    verdict = decided.outcome.verdict if decided.outcome is not None else "recorded; it waits for other reviewers"
    if decided.outcome is not None and decided.outcome.changes is not None:
        verdict = "changes requested"
    if decided.undo_until is not None:
        verdict = f"recorded; nothing has run. `sayso retract {id_}` undoes it until {format_time(decided.undo_until)}"
    console.print(show_line(f"{item.tool.name}: {verdict}.", "bold"), *granted, sep="\n")


def _list_pages(client: Client) -> Iterator[SuspensionPage]:
    skip: int | None = 0
    while skip is not None:
        page = client.waiting(skip=skip, limit=_PAGE)
        yield page
        skip = page.next_skip


def find_suspension(client: Client, id_: str) -> SuspensionView:
    """Return the suspension with this id, or the pending one with this end or part of an id; raises `NotFound`."""
    if id_.startswith("sus_") and len(id_) >= 36:
        return client.find(id_)
    having = [row.id for page in _list_pages(client) for row in page.suspensions if id_ and id_ in row.id]
    matches = [row_id for row_id in having if row_id.endswith(id_)] or having
    if len(matches) != 1:
        count = len(matches) or "No"
        raise NotFound(f"{count} pending suspensions match {id_!r}. Give more of an id from `sayso inbox --once`.")
    return client.find(matches[0])  # reading it alone marks it as seen


def pick_item(suspension: SuspensionView, item_id: str | None) -> ItemView:
    """Return the item, or the only open one; raises `AlreadyDecided` or `InvalidInput`."""
    waiting = [item for item in suspension.items if item.outcome is None]
    if item_id is not None:
        waiting = [item for item in suspension.items if item.item_id == item_id]
    if len(waiting) == 1:
        return waiting[0]
    if not waiting:
        raise AlreadyDecided(f"{suspension.id} has no open item{f' {item_id}' if item_id else ''}. See `sayso show`.")
    ids = ", ".join(item.item_id for item in waiting)
    raise InvalidInput(f"{len(waiting)} items wait: {ids}. Choose one with --item.")


def _read_value(item: ItemView, text: str) -> JsonValue:
    """Return the text parsed as JSON, or the text itself if it is not JSON or the item requests text."""
    try:
        value = parse_json(text.encode())
    except InvalidJson:
        return text
    schema = item.response_schema or {}
    choices = item.choices or schema.get("enum")
    if isinstance(choices, list | tuple):
        return text if text in choices and value not in choices else value
    return text if schema.get("type") == "string" and not isinstance(value, str) else value


IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="An id from `sayso inbox`, or a unique part of a longer one.")
]


@contextmanager
def pick(id_: str, item_id: str | None) -> Iterator[tuple[Client, SuspensionView, ItemView]]:
    """Connect, and yield the client with the suspension of an id and its item."""
    with connect() as client:
        suspension = find_suspension(client, id_)
        yield client, suspension, pick_item(suspension, item_id)


def claim(id_: IdArgument, item: ItemOption = None) -> None:
    """Tell the other reviewers for 15 minutes that you handle an item."""
    with pick(id_, item) as (client, suspension, picked):
        client.claim(suspension.id, picked.item_id)
    make_console().print(show_line(f"You claimed {picked.tool.name}. Others may still decide it."))


def retract(id_: IdArgument, item: ItemOption = None) -> None:
    """Take back your decision on an item while its quorum is short."""
    with pick(id_, item) as (client, suspension, picked):
        client.retract(suspension.id, picked.item_id)
    make_console().print(show_line(f"Your decision on {picked.tool.name} no longer counts. You may decide anew."))


def confirm(
    id_: IdArgument,
    item: ItemOption = None,
    decline: Annotated[str | None, typer.Option(help="Decline it instead, with this reason for the agent.")] = None,
    yes: YesOption = False,
) -> None:
    """Confirm a call that an agent makes for you, or decline it."""
    with pick(id_, item) as (client, suspension, picked):
        console = make_console()
        called = picked.to_confirm
        if called is not None and not yes:
            shown = picked.model_copy(update={"tool": picked.tool.model_copy(update={"args": called.args})})
            console.print(show_suspension(suspension.model_copy(update={"items": (shown,)})))
            act = "Decline" if decline is not None else "Confirm"
            typer.confirm(f"{act} that {suspension.run.agent} makes this call for you?", abort=True)
        client.confirm(suspension.id, picked, message=decline, decline=decline is not None)
    said = "declined" if decline is not None else "confirmed"
    console.print(show_line(f"You {said} {picked.tool.name}."))


def release(id_: IdArgument, item: ItemOption = None) -> None:
    """Release your claim of an item."""
    with pick(id_, item) as (client, suspension, picked):
        client.release_claim(suspension.id, picked.item_id)
    make_console().print(show_line(f"{picked.tool.name} is released."))


def comment(
    id_: IdArgument,
    text: Annotated[str, typer.Argument(help="The comment. The agent cannot read it.")],
    item: ItemOption = None,
) -> None:
    """Comment on an item, for the other reviewers. A decided suspension needs its whole id and --item."""
    with pick(id_, item) as (client, suspension, picked):
        _show_comments(client.comment(suspension.id, picked.item_id, text).comments)


def note(
    run_id: Annotated[str, typer.Argument(help="The run's id.")],
    text: Annotated[str, typer.Argument(help="What the agent reads before its next turn.")],
) -> None:
    """Write to the agent of a running run without deciding."""
    with connect() as client:
        client.write_note(run_id, text)
    make_console().print("The note is saved.")


def list_comments(id_: IdArgument) -> None:
    """Show the comments on all items of a suspension's run."""
    with connect() as client:
        _show_comments(client.comments(find_suspension(client, id_).run.id).comments)


def _show_comments(comments: Sequence[CommentView]) -> None:
    console = make_console()
    for comment in comments:
        console.print(show_line(f"{comment.author} on {comment.item_id}, {format_time(comment.at)}:"))
        console.print(show_barred(comment.text))
    if not comments:
        console.print("No comments.")


def preview(id_: IdArgument, item: ItemOption = None) -> None:
    """Ask a worker what a call would do; its answer appears on the item."""
    with pick(id_, item) as (client, suspension, picked):
        client.preview(suspension.id, picked.item_id)
    make_console().print(show_line(f"A worker is asked. `sayso show {suspension.id}` has its answer."))
