"""The `sayso` command: a table of its commands, each imported when it is called."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Annotated, Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from sayso import __version__
from sayso.core.packages import describe_difference
from sayso.errors import SaysoError

Commands = Mapping[str, tuple[str, str]]
"""The place of each command or group, below `sayso`, and the first sentence of its help."""


COMMANDS: Commands = {
    "up": (
        "cli.server:up",
        "Run everything on this machine until Ctrl-C: store, service, workers, clock and the demo agent's model.",
    ),
    "serve": ("cli.server:serve", "Run the service: API and pages."),
    "worker": ("cli.server:worker", "Run a worker, which resumes runs."),
    "clock": ("cli.server:clock", "Run the clock, which keeps deadlines."),
    "setup": ("cli.server:setup", "Create the first admin and the demo agent's key where they are missing, then end."),
    "macs": ("cli.server:macs", "Add MACs to stored records that have none, or new ones after a rotation."),
    "backup": ("cli.server:backup", "Back up the live store to a new file, with the settings of the service."),
    "restore": ("cli.server:restore", "Restore a backup into an empty store, with the settings of the service."),
    "move-tenant": ("cli.server:move_tenant", "Move a tenant to another store, with the settings of the service."),
    "recover": ("cli.server:recover", "Remove the authenticator app and passkeys of a person who lost them."),
    "demo": ("cli.server:demo", "Show the whole job once, unattended, on free ports."),
    "inbox": ("cli.reviews:inbox", "Show the items that wait for reviewers, live."),
    "show": ("cli.reviews:print_suspension", "Show a suspension and its items, with secret values masked."),
    "approve": (
        "cli.reviews:approve",
        "Approve a call, with its own or with other arguments, and like calls too with --grant-for.",
    ),
    "deny": ("cli.reviews:deny", "Deny a call."),
    "answer": ("cli.reviews:answer", "Give the value that an item requests."),
    "retract": ("cli.reviews:retract", "Take back your decision on an item while its quorum is short."),
    "confirm": ("cli.reviews:confirm", "Confirm a call that an agent makes for you, or decline it."),
    "claim": ("cli.reviews:claim", "Tell the other reviewers for 15 minutes that you handle an item."),
    "release": ("cli.reviews:release", "Release your claim of an item."),
    "comment": ("cli.reviews:comment", "Comment on an item, for the other reviewers."),
    "comments": ("cli.reviews:list_comments", "Show the comments on all items of a suspension's run."),
    "note": ("cli.reviews:note", "Write to the agent of a running run without deciding."),
    "preview": ("cli.reviews:preview", "Ask a worker what a call would do; its answer appears on the item."),
    "undo": ("features.reversals:undo", "List the calls that can still be undone, or undo one."),
    "forward": ("cli.asking:forward", "Ask another reviewer or a group to decide an item."),
    "invite": ("features.outsiders:invite", "Invite somebody outside to decide an item, or end an invitation."),
    "ask": ("cli.asking:ask", "Put a question about an item to its requester."),
    "reply": ("cli.asking:reply", "Answer the oldest open question about a suspension, as the owner of its run."),
    "preferences": ("cli.duty:preferences", "Show how you are notified, and change what the options give."),
    "who": ("cli.duty:who", "Say who would be asked when under a rule, and what happens at the deadline."),
    "when": ("cli.reviews:when", "Say when the items of a suspension will probably be decided, and by whom."),
    "password": ("cli.people:change_password", "Change your password."),
    "runs": ("cli.runs:list_runs", "List runs, newest first."),
    "events": ("cli.runs:events", "Print the events of a run, and verify that its trail is complete and unaltered."),
    "archive": ("features.archive.commands:archive", "List the archived runs that began on a day."),
    "erase": ("cli.runs:erase", "Erase the contents of an ended run for good; its decisions remain."),
    "mcp": ("cli.proxies:mcp", "Run a proxy for an MCP server: its tools require permits."),
    "agui": ("cli.proxies:agui", "Run a proxy for an AG-UI agent: its interrupts wait at the desk."),
    "hook": ("cli.hooks:hook", "Answer and install hooks of coding agents."),
    "freeze": ("cli.operations:freeze", "Stop new calls of a tool, of an agent, or all."),
    "freezes": ("cli.operations:list_freezes", "List the freezes in force."),
    "unfreeze": ("cli.operations:unfreeze", "End a freeze."),
    "login": ("cli.people:login", "Sign in on this machine."),
    "logout": ("cli.people:logout", "Delete the login on this machine."),
    "size": (
        "features.archive.commands:size",
        "Print the memory and disk that a desk needs, from what runs of several shapes needed.",
    ),
    "doctor": ("cli.operations:doctor", "Check every part of Sayso, and suggest fixes."),
    "run": ("cli.runs:run_app", "Start, show and cancel runs."),
    "policy": ("cli.commands:policies", "Check, explain, test, replay and compare rules."),
    "grants": ("features.permissions.commands:app", "List, confirm, revoke and reinstate standing grants."),
    "mandates": ("features.permissions.commands:mandates_app", "List and revoke mandates: approved plans of agents."),
    "keys": ("cli.people:keys", "Manage keys."),
    "webhooks": ("cli.webhooks:webhooks", "Manage webhooks out and in."),
    "people": ("cli.people:people", "Manage reviewers and their sessions."),
    "roles": ("cli.roles:roles", "Manage roles: lists of permissions."),
    "emergency": ("cli.roles:emergencies", "Take emergency rights for an hour, list and end them."),
    "sessions": ("cli.people:sessions", "List and end your own sessions."),
    "groups": ("cli.people:groups", "Manage groups, which rules name as group:NAME."),
    "contacts": ("cli.duty:contacts", "Link and unlink your addresses in channels."),
    "channels": ("cli.channels:channels", "Check the channels over which people are notified."),
    "activity": ("cli.operations:list_activity", "List what people did and what was refused, with what it changed."),
    "history": ("cli.channels:history", "List decided items, or export them as CSV or JSON."),
    "report": ("cli.channels:reports", "Report decisions."),
    "keyfile": ("features.evidence.commands:key_file", "Make the file of keys that lies outside of the store."),
    "checkpoints": (
        "features.evidence.commands:app",
        "List signed checkpoints, and compare a sink's file with the desk.",
    ),
    "evidence": (
        "features.evidence.commands:evidence",
        "Write what was asked, shown and decided in a run to a signed file, or verify one.",
    ),
    "overrides": (
        "features.overrides:overrides",
        "Print what people edited and denied on a day, as JSON lines for evaluations.",
    ),
    "drills": ("features.control:drills", "Plant false calls that test whether reviewers look."),
    "second-looks": ("features.control:app", "Judge calls that were drawn by chance after they were decided."),
    "absence": ("cli.duty:absence", "Say when you are absent, and who decides for you."),
}
POLICY_COMMANDS: Commands = {
    "check": ("cli.policies:check", "Check the rules in a file."),
    "explain": ("cli.policies:explain", "Say which rule decides a call, why, and why the others do not."),
    "schema": ("cli.policies:schema", "Print the JSON Schema of a rules file, for editors."),
    "test": (
        "features.whatif.commands:run_tests",
        "Run the cases in a file of rules, and in the file beside it: policy.cases.yaml for policy.yaml.",
    ),
    "diff": (
        "features.whatif.commands:diff",
        "Say which rules came, went and changed between two files, and for which calls the outcome changes.",
    ),
    "replay": (
        "features.whatif.commands:replay",
        "Judge all recorded calls of a range again by the rules in a file, beside what people decided.",
    ),
    "attest": ("cli.policies:attest", "Attest exactly the bytes of a file of rules."),
    "versions": (
        "cli.policies:list_versions",
        "List the versions of the rules, when each was in force, and who attests it.",
    ),
    "version": ("cli.policies:show_version", "Print the text of a version; any unique begin of its name is enough."),
    "rollback": (
        "cli.policies:rollback",
        "Put an earlier version of the rules back in force: by default the one before.",
    ),
    "shadow": ("features.whatif.commands:app", "Judge every new call by other rules as well, without effect."),
}


def load(name: str, place: str) -> Any:
    """Import a command or a group of commands, and return it as it is called."""
    module, _, attribute = place.partition(":")
    made = getattr(import_module(f"sayso.{module}"), attribute)
    holder = typer.Typer(rich_markup_mode=None)
    if isinstance(made, typer.Typer):
        holder.add_typer(made, name=name)
    else:
        settings = {"ignore_unknown_options": True} if name == "answer" else None  # a negative number is not an option
        holder.command(name, context_settings=settings)(made)
    return get_group(holder).commands[name]


class _Lazy(TyperGroup):
    """A group that lists its commands from a table, and imports the one that is called."""

    table: ClassVar[Commands] = {}

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self.commands = {name: TyperCommand(name, help=text) for name, (_, text) in self.table.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, _, rest = super().resolve_command(ctx, args)
        return name, load(name, self.table[name][0]) if name is not None else None, rest


class _PolicyGroup(_Lazy):
    table = POLICY_COMMANDS


class _RootGroup(_Lazy):
    table = COMMANDS


policies = typer.Typer(cls=_PolicyGroup, help="Check, explain, test, replay and compare rules.", no_args_is_help=True)
app = typer.Typer(
    cls=_RootGroup,
    help="Review calls and manage a Sayso desk.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def run() -> int:
    """Run the command line and return its exit status. An error prints one sentence."""
    try:
        code = app(prog_name="sayso", standalone_mode=False)
    except SaysoError as error:
        return _complain(error.message, 1)
    except (typer.Abort, KeyboardInterrupt):
        return 130
    except Exception as error:
        describe_usage: Callable[[], str] | None = getattr(error, "format_message", None)
        if describe_usage is None:
            raise
        if type(error).__name__ == "NoArgsIsHelpError":  # without a command, the error is the whole help
            typer.echo(describe_usage(), err=True)
            return 2
        return _complain(f"{describe_usage().rstrip('.')}. See --help.", 2)
    return code if isinstance(code, int) else 0


def _complain(text: str, status: int) -> int:
    from sayso.cli.screens import make_console, show

    make_console(error=True).print(show(text, "red"))
    return status


def _print_version(requested: bool) -> None:
    if requested:
        from sayso.cli.logins import find_desk

        typer.echo(f"sayso {__version__}")
        if desk := find_desk():
            typer.echo(f"desk {desk.version} at {desk.url}")
            typer.echo(describe_difference(desk.url, desk.version) or "", nl=False)
        raise typer.Exit


@app.callback()
def _read_options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the versions of SDK and desk.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Accept options before the command. Their callbacks act."""
