"""The commands that are typed: each parses what it is given, asks the desk, and shows what comes back."""

import os
import sys
from collections.abc import Callable, Iterator
from time import sleep
from typing import Annotated, Any

import typer
from pydantic import JsonValue
from rich.live import Live

from sayso import __version__
from sayso.canonical_json import parse_json
from sayso.cli.accounts import change_password, people, sessions
from sayso.cli.diagnostics import diagnose, show_findings
from sayso.cli.freezes import freeze, list_freezes, unfreeze
from sayso.cli.keys import keys
from sayso.cli.logins import Login, connect, forget_login, save_login
from sayso.cli.outputs import JsonOption, print_json
from sayso.cli.policies import policies
from sayso.cli.proxies import mcp
from sayso.cli.runs import LOOK_EVERY_S, events, list_runs, run_app
from sayso.cli.screens import (
    check_readable,
    make_console,
    show,
    show_inbox,
    show_json,
    show_line,
    show_suspension,
)
from sayso.client import requests
from sayso.client.clients import URL, Client, write_word
from sayso.client.responses import ItemSeen, Suspension, SuspensionPage
from sayso.errors import AlreadyDecided, InvalidInput, InvalidJson, NotFound, SaysoError

app = typer.Typer(
    help="Work a Sayso desk from the terminal.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(run_app, name="run")
app.add_typer(policies, name="policy")
app.add_typer(keys, name="keys")
app.add_typer(people, name="people")
app.add_typer(sessions, name="sessions")
app.command("password")(change_password)
app.command("runs")(list_runs)
app.command()(events)
app.command()(mcp)
app.command()(freeze)
app.command("freezes")(list_freezes)
app.command()(unfreeze)

_PAGE = 200

ItemOption = Annotated[str | None, typer.Option("--item", help="Which item, where several wait.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask once more.")]


def run() -> int:
    """Run the command that was typed; an error is a sentence, and 1."""
    try:
        code = app(prog_name="sayso", standalone_mode=False)
    except SaysoError as error:
        make_console(error=True).print(show(error.message, "red"))
        return 1
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        describe_usage: Callable[[], str] | None = getattr(error, "format_message", None)
        if describe_usage is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # the whole help, where no command was typed
            typer.echo(describe_usage(), err=True)
            return 2
        make_console(error=True).print(show(f"{describe_usage().rstrip('.')}. See --help.", "red"))
        return 2
    return code if isinstance(code, int) else 0


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sayso {__version__}")
        raise typer.Exit


@app.callback()
def _take_options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Take the options that come before a command; each acts by itself."""


@app.command()
def login(
    url: Annotated[str, typer.Option(help="Where the desk is.")] = os.environ.get("SAYSO_URL") or URL,
    name: Annotated[str | None, typer.Option(help="Your name there.")] = None,
    key: Annotated[bool, typer.Option("--key", help="Keep a reviewer's key instead of signing in.")] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input; takes --name.")
    ] = False,
) -> None:
    """Sign in, and stay signed in on this machine."""
    console = make_console()
    password = _read_password(name, key) if password_stdin else None
    if key:
        secret = typer.prompt("Key", hide_input=True)
        with Client(url, secret, patience_s=5) as client:
            client.waiting(limit=1)
        kept = Login(url=client.url, key=secret, name=name or "")
    else:
        who = name or typer.prompt("Name")
        with Client(url, "-", patience_s=5) as client:
            opened = client.sign_in(who, password or typer.prompt("Password", hide_input=True))
        kept = Login(url=client.url, key=opened.token, name=opened.name)
    save_login(kept)
    console.print(show_line(f"Signed in at {kept.url}{f' as {kept.name}' if kept.name else ''}."))


@app.command()
def logout() -> None:
    """Forget who is signed in on this machine."""
    forget_login()
    make_console().print("Signed out here.")


@app.command()
def inbox(
    once: Annotated[bool, typer.Option("--once", help="Show what waits now, and end.")] = False,
    json: JsonOption = False,
) -> None:
    """Show what waits for people, live."""
    console = make_console()
    with connect() as client:
        if json:
            print_json(list(_list_waiting(client)))
            return
        if once or not console.is_terminal:
            pages = list(_list_pages(client))
            unreadable = [one for page in pages for one in page.unreadable]
            console.print(show_inbox([one for page in pages for one in page.suspensions], unreadable))
            return
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while True:
                page = client.waiting(limit=50)
                live.update(show_inbox([*page.suspensions], [*page.unreadable]), refresh=True)
                sleep(LOOK_EVERY_S)


@app.command("show")
def show_one(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A suspension, or an unmistakable part of its id.")],
    json: JsonOption = False,
) -> None:
    """Show a suspension with all that is asked in it."""
    with connect() as client:
        found = _find(client, id_)
    if json:
        print_json(found)
    else:
        make_console().print(show_suspension(found))


@app.command()
def approve(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    item: ItemOption = None,
    args: Annotated[str | None, typer.Option(help="Other arguments, as one JSON object: all of them.")] = None,
    message: Annotated[str | None, typer.Option(help="Words for the record.")] = None,
    yes: YesOption = False,
) -> None:
    """Let a call run: as it is asked, or with other arguments."""
    given: dict[str, JsonValue] = {"message": message}
    if args is not None:
        given["args"] = _read_json(args, "--args")
    _decide(id_, item, "approve", given, yes)


@app.command()
def deny(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    message: Annotated[str | None, typer.Option("--message", "-m", help="Why; the agent is told.")] = None,
    item: ItemOption = None,
    yes: YesOption = False,
) -> None:
    """Keep a call from running."""
    _decide(id_, item, "deny", {"message": message}, yes)


@app.command(context_settings={"ignore_unknown_options": True})  # a number below zero is no option
def answer(
    id_: Annotated[str, typer.Argument(metavar="ID")],
    value: Annotated[
        str, typer.Argument(help="The value, as JSON; anything that is no JSON, or is to be text, is text.")
    ],
    item: ItemOption = None,
    message: Annotated[str | None, typer.Option(help="Words for the record.")] = None,
    yes: YesOption = False,
) -> None:
    """Give the value that is asked for."""
    if value.startswith("--"):
        raise InvalidInput(f"There is no option {value}. A text that begins like one is given in quotes: '\"--text\"'.")
    _decide(id_, item, "value", {"value": value, "message": message}, yes)


@app.command()
def doctor(json: JsonOption = False) -> None:
    """Look at every part of Sayso, and say what to do about what does not work."""
    found = diagnose()
    if json:
        print_json(found)
    else:
        show_findings(make_console(), found)
    if not all(one.ok for one in found):
        raise typer.Exit(1)


def _read_password(name: str | None, key: bool) -> str:
    """Return the password on standard input, without the end of its line."""
    if key or not name:
        raise InvalidInput("--password-stdin takes --name and no --key. Say who signs in: --name NAME.")
    password = sys.stdin.read().removesuffix("\n").removesuffix("\r")
    if not password:
        raise InvalidInput("Standard input holds no password. Pipe one in, or leave --password-stdin out.")
    return password


def _decide(id_: str, item_id: str | None, action: str, given: dict[str, JsonValue], yes: bool) -> None:
    """Show what is decided on, ask once more, and send exactly its digest."""
    console = make_console()
    with connect() as client:
        found = _find(client, id_)
        item = _pick(found, item_id)
        alone = found.model_copy(update={"items": (item,)})
        if not yes and action != "deny":
            check_readable(console, alone, f"{client.url}/items/{found.id}/{item.item_id}")
        console.print(show_suspension(alone))
        if not yes:
            _ask_once_more(action, given)
        kept: dict[str, JsonValue] = {name: value for name, value in given.items() if value is not None}
        if "value" in kept:
            kept["value"] = _read_value(item, str(kept["value"]))
        told = client.exchange(requests.decide(found.id, item.item_id, write_word(item, action, kept), None))
    verdict = told.outcome.verdict if told.outcome is not None else "recorded; it waits for others"
    console.print(show_line(f"{item.tool.name}: {verdict}.", "bold"))


def _ask_once_more(action: str, given: dict[str, Any]) -> None:
    if not sys.stdin.isatty():
        raise InvalidInput("Nobody can be asked once more here; say --yes to decide without.")
    console = make_console()
    if given.get("args") is not None:
        console.print("with these arguments instead:", show_json(given["args"]))
    typer.confirm({"approve": "Approve?", "deny": "Deny?", "value": "Answer?"}[action], abort=True)


def _list_pages(client: Client) -> Iterator[SuspensionPage]:
    skip: int | None = 0
    while skip is not None:
        page = client.waiting(skip=skip, limit=_PAGE)
        yield page
        skip = page.next_skip


def _list_waiting(client: Client) -> Iterator[Suspension]:
    for page in _list_pages(client):
        yield from page.suspensions


def _find(client: Client, id_: str) -> Suspension:
    """Return a suspension by its id, or by a part of the id that only one of those that wait has."""
    if id_.startswith("sus_") and len(id_) >= 36:
        return client.find(id_)
    fits = [one for one in _list_waiting(client) if id_ and id_ in one.id]
    if len(fits) != 1:
        what = "Nothing that waits has" if not fits else f"{len(fits)} that wait have"
        raise NotFound(f"{what} {id_!r} in its id. `sayso inbox --once` lists them; give more of the id.")
    return client.find(fits[0].id)  # its detail: what is opened counts as seen


def _pick(found: Suspension, item_id: str | None) -> ItemSeen:
    waiting = [one for one in found.items if one.outcome is None]
    if item_id is not None:
        waiting = [one for one in found.items if one.item_id == item_id]
    if len(waiting) == 1:
        return waiting[0]
    if not waiting:
        raise AlreadyDecided(f"Nothing of {found.id} waits{f' as {item_id}' if item_id else ''}. See `sayso show`.")
    raise InvalidInput(f"{len(waiting)} items wait: {', '.join(one.item_id for one in waiting)}. Say which: --item.")


def _read_value(item: ItemSeen, text: str) -> JsonValue:
    """Return what was typed as JSON; as it stands where it is none, or where only a text is taken and it is another."""
    try:
        value = parse_json(text.encode())
    except InvalidJson:
        return text
    schema = item.response_schema or {}
    offered = item.choices or schema.get("enum")
    if isinstance(offered, list | tuple):
        return text if text in offered and value not in offered else value
    is_text = schema.get("type") == "string"
    return text if is_text and not isinstance(value, str) else value


def _read_json(text: str, what: str) -> JsonValue:
    try:
        return parse_json(text.encode())
    except InvalidJson as error:
        raise InvalidInput(f"{what} is not strict JSON: {error.message}") from error
