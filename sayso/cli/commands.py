"""The commands that are typed: each parses what it is given, asks the desk, and shows what comes back."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import sleep
from typing import Annotated, Any

import typer
from pydantic import JsonValue
from rich.live import Live

from sayso import exchanges
from sayso.canonical import parse_json
from sayso.cli.doctors import examine
from sayso.cli.keys import keys
from sayso.cli.logins import Login, connect, forget_login, save_login
from sayso.cli.proxies import mcp
from sayso.cli.screens import (
    make_console,
    show,
    show_event,
    show_inbox,
    show_json,
    show_line,
    show_runs,
    show_suspension,
)
from sayso.client import URL, Client, write_word
from sayso.errors import AlreadyDecided, InvalidInput, InvalidJson, NotFound, SaysoError
from sayso.events import TrailEntry, TrailHead, find_break
from sayso.replies import ItemSeen, Run, RunEvent, Suspension

app = typer.Typer(
    help="Work a Sayso desk from the terminal.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
run_app = typer.Typer(help="Start, show and cancel runs.", no_args_is_help=True)
policy_app = typer.Typer(help="See to the rules.", no_args_is_help=True)
app.add_typer(run_app, name="run")
app.add_typer(policy_app, name="policy")
app.add_typer(keys, name="keys")
app.command()(mcp)

_LOOK_EVERY_S = 1.0
_PAGE = 200

ItemOption = Annotated[str | None, typer.Option("--item", help="Which item, where several wait.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask once more.")]


def run() -> int:
    """Run the command that was typed; an error is a sentence, and 1."""
    try:
        code = app(standalone_mode=False)
    except SaysoError as error:
        make_console(error=True).print(show(error.message, "red"))
        return 1
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        tell_usage: Callable[[], str] | None = getattr(error, "format_message", None)
        if tell_usage is None:
            raise
        make_console(error=True).print(show(f"{tell_usage().rstrip('.')}. See --help.", "red"))
        return 2
    return code if isinstance(code, int) else 0


@app.command()
def login(
    url: Annotated[str, typer.Option(help="Where the desk is.")] = os.environ.get("SAYSO_URL") or URL,
    name: Annotated[str | None, typer.Option(help="Your name there.")] = None,
    key: Annotated[bool, typer.Option("--key", help="Keep a reviewer's key instead of signing in.")] = False,
) -> None:
    """Sign in, and stay signed in on this machine."""
    console = make_console()
    if key:
        secret = typer.prompt("Key", hide_input=True)
        with Client(url, secret, patience_s=5) as client:
            client.waiting(limit=1)
        kept = Login(url=client.url, key=secret, name=name or "")
    else:
        who = name or typer.prompt("Name")
        with Client(url, "-", patience_s=5) as client:
            opened = client.sign_in(who, typer.prompt("Password", hide_input=True))
        kept = Login(url=client.url, key=opened.token, name=opened.name)
    save_login(kept)
    console.print(show_line(f"Signed in at {kept.url}{f' as {kept.name}' if kept.name else ''}."))


@app.command()
def logout() -> None:
    """Forget who is signed in on this machine."""
    forget_login()
    make_console().print("Signed out here.")


@app.command()
def inbox(once: Annotated[bool, typer.Option("--once", help="Show what waits now, and end.")] = False) -> None:
    """Show what waits for people, live."""
    console = make_console()
    with connect() as client:
        if once or not console.is_terminal:
            console.print(show_inbox(list(_list_waiting(client))))
            return
        with Live(console=console, auto_refresh=False, screen=False) as live:
            while True:
                live.update(show_inbox(list(client.waiting(limit=50).suspensions)), refresh=True)
                sleep(_LOOK_EVERY_S)


@app.command("show")
def show_one(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A suspension, or an unmistakable part of its id.")],
) -> None:
    """Show a suspension with all that is asked in it."""
    with connect() as client:
        make_console().print(show_suspension(_find(client, id_)))


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
def runs(
    status: Annotated[str | None, typer.Option(help="Only those in this status.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 20,
) -> None:
    """List runs, the newest first."""
    with connect() as client:
        make_console().print(show_runs(list(client.runs(status, limit=limit).runs)))


@run_app.command("start")
def start(
    agent: str,
    text: Annotated[str, typer.Argument(help="What the agent is asked.")],
    title: Annotated[str | None, typer.Option(help="What people see.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end.")] = False,
) -> None:
    """Start a run of a registered agent."""
    with connect() as client:
        started = client.start_run(agent, text, title=title)
        _show_run(client.await_run(started.id) if wait else started)


@run_app.command("show")
def show_run(run_id: str) -> None:
    """Show a run as it stands."""
    with connect() as client:
        _show_run(client.find_run(run_id))


@run_app.command("cancel")
def cancel(run_id: str, reason: Annotated[str | None, typer.Option(help="Why.")] = None) -> None:
    """End a run for good."""
    with connect() as client:
        _show_run(client.cancel(run_id, reason))


@app.command()
def events(
    run_id: str,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")] = False,
) -> None:
    """Show what happened to a run, and say where its trail was altered or cut, if it was."""
    console, head = make_console(), TrailHead()
    with connect() as client:
        while True:
            ended = not follow or client.find_run(run_id).ended
            for event in client.events(run_id, head.seq):
                console.print(show_event(event))
                head = _follow(head, event)
            if ended:
                return
            sleep(_LOOK_EVERY_S)


def _follow(head: TrailHead, event: RunEvent) -> TrailHead:
    at_ms = round(event.at.timestamp() * 1000)
    entry = TrailEntry(seq=event.seq, at_ms=at_ms, type=event.type, data=event.data, hash=event.hash)
    if find_break([entry], head) is not None:
        raise SaysoError(
            f"Event {head.seq + 1} does not follow from those before it: the trail was altered there, or part of it is "
            "missing. Believe nothing from there on."
        )
    return TrailHead(event.seq, event.hash)


@policy_app.command("check")
def check(file: Path) -> None:
    """Say whether the rules in a file could be put in force."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.") from error
    console = make_console()
    with connect() as client:
        found = client.exchange(exchanges.check_rules(text, file.name))
    if found.ok:
        console.print(show_line(f"{file}: {found.rules} rules, version {found.version}."))
        return
    for fault in found.faults:
        console.print(show(fault, "red"))
    raise typer.Exit(1)


@app.command()
def doctor() -> None:
    """Look at every part of Sayso, and say what to do about what does not work."""
    if not examine(make_console()):
        raise typer.Exit(1)


def _decide(id_: str, item_id: str | None, action: str, given: dict[str, JsonValue], yes: bool) -> None:
    """Show what is decided on, ask once more, and send exactly its digest."""
    console = make_console()
    with connect() as client:
        found = _find(client, id_)
        item = _pick(found, item_id)
        console.print(show_suspension(found.model_copy(update={"items": (item,)})))
        if not yes:
            _ask_once_more(action, given)
        kept: dict[str, JsonValue] = {name: value for name, value in given.items() if value is not None}
        if "value" in kept:
            kept["value"] = _read_value(item, str(kept["value"]))
        told = client.exchange(exchanges.decide(found.id, item.item_id, write_word(item, action, kept), None))
    verdict = told.outcome.verdict if told.outcome is not None else "recorded; it waits for others"
    console.print(show_line(f"{item.tool.name}: {verdict}.", "bold"))


def _ask_once_more(action: str, given: dict[str, Any]) -> None:
    if not sys.stdin.isatty():
        raise InvalidInput("Nobody can be asked once more here; say --yes to decide without.")
    console = make_console()
    if given.get("args") is not None:
        console.print("with these arguments instead:", show_json(given["args"]))
    typer.confirm({"approve": "Approve?", "deny": "Deny?", "value": "Answer?"}[action], abort=True)


def _list_waiting(client: Client) -> Iterator[Suspension]:
    skip: int | None = 0
    while skip is not None:
        page = client.waiting(skip=skip, limit=_PAGE)
        yield from page.suspensions
        skip = page.next_skip


def _find(client: Client, id_: str) -> Suspension:
    """Return a suspension by its id, or by a part of the id that only one of those that wait has."""
    if id_.startswith("sus_") and len(id_) >= 36:
        return client.find(id_)
    fits = [one for one in _list_waiting(client) if id_ and id_ in one.id]
    if len(fits) != 1:
        what = "Nothing that waits has" if not fits else f"{len(fits)} that wait have"
        raise NotFound(f"{what} {id_!r} in its id. `sayso inbox --once` lists them; give more of the id.")
    return fits[0]


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


def _show_run(found: Run) -> None:
    console = make_console()
    console.print(show_runs([found]))
    if found.error:
        console.print(show(found.error, "red"))
    if found.result is not None:
        console.print(show_json(found.result))
