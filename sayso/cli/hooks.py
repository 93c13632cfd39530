"""Commands of hooks: one answers each coding agent's hook, and one installs it."""

import os
import select
import sys
import traceback
from enum import StrEnum
from pathlib import Path
from threading import Thread
from typing import Annotated

import typer
from pydantic_core import to_json

from sayso.adapters.hooks import rules_text
from sayso.adapters.hooks.formats import FORMATS, MAX_INPUT_BYTES, read_call, write_answer
from sayso.adapters.hooks.installing import PLACES, Scope, remove, settings_path
from sayso.adapters.hooks.installing import install as write_hook
from sayso.adapters.hooks.judging import HookOptions, judge
from sayso.client import Client
from sayso.errors import InvalidInput, SaysoError

hook = typer.Typer(help="Answer and install hooks of coding agents.", no_args_is_help=True)

BLOCKED = 2
"""The exit status with which every agent here blocks the call and reads the reason from stderr."""

_PATIENCE_S = 5.0
_ENDS = "claude-code"
"""The agent whose runs can end with a call that waits."""


class Failure(StrEnum):
    """What happens to calls while the desk cannot be reached."""

    closed = "closed"
    ask = "ask"
    open = "open"


_WAIT = typer.Option(min=0, help="Seconds to wait for a person. Stay below the agent's limit for hooks.")
_FAIL = typer.Option(help="Without a desk: deny calls, let the agent ask its user, or let its permissions decide.")
_DEFER = typer.Option("--defer", help="End the run with a call that waits, to be resumed after the decision.")


def _add(agent: str) -> None:
    def answer(wait: Annotated[float, _WAIT] = 50.0, fail: Annotated[Failure, _FAIL] = Failure.closed) -> None:
        raise typer.Exit(_answer(agent, HookOptions(wait, fail.value)))

    def answer_or_end(
        wait: Annotated[float, _WAIT] = 50.0,
        fail: Annotated[Failure, _FAIL] = Failure.closed,
        defer: Annotated[bool, _DEFER] = False,
    ) -> None:
        raise typer.Exit(_answer(agent, HookOptions(wait, fail.value, defers=defer)))

    help_text = f"Answer a hook of {FORMATS[agent].title}. Reads SAYSO_URL and SAYSO_KEY."
    hook.command(agent, help=help_text)(answer_or_end if agent == _ENDS else answer)


for _name in FORMATS:
    _add(_name)


@hook.command()
def install(
    agent: Annotated[str, typer.Argument(help=f"The agent: {', '.join(PLACES)}.")],
    scope: Annotated[Scope, typer.Option(help="Whose settings hold the hook.")] = Scope.project,
    wait: Annotated[float, typer.Option(min=0, max=3600, help="Seconds that a call waits for a person.")] = 540.0,
    fail: Annotated[Failure, _FAIL] = Failure.closed,
    defer: Annotated[bool, _DEFER] = False,
    remove_it: Annotated[bool, typer.Option("--remove", help="Remove the hook instead.")] = False,
) -> None:
    """Write the hook into the agent's settings file, beside what stands there, or remove it."""
    if agent not in PLACES:
        raise InvalidInput(f"Sayso writes no settings of {agent!r}. Name one of: {', '.join(PLACES)}.")
    if defer and agent != _ENDS:
        raise InvalidInput(f"Runs of {agent} cannot end with a call that waits. Install the hook without --defer.")
    file = settings_path(agent, scope, Path.cwd())
    options = ("" if fail is Failure.closed else f" --fail {fail.value}") + (" --defer" if defer else "")
    changed = remove(agent, file) if remove_it else write_hook(agent, file, options, wait)
    print(f"{file}: {'changed' if changed else 'nothing to change'}.")
    if not remove_it:
        print("Start the agent with SAYSO_URL and SAYSO_KEY, an agent's key, in its environment.")


@hook.command("rules")
def print_rules() -> None:
    """Print rules for coding agents, to begin with."""
    print(rules_text(), end="")


def _answer(agent: str, options: HookOptions) -> int:
    """Answer the hook on stdin, and return the exit status. All that goes wrong blocks the call."""
    try:
        call = read_call(agent, sys.stdin.buffer.read(MAX_INPUT_BYTES + 1))
        _end_without_reader(sys.stdout.fileno())
        with Client(patience_s=_PATIENCE_S) as client:
            verdict = client.run(judge(call, options, client.retry_policy))
        sys.stdout.buffer.write(to_json(write_answer(call, verdict)) + b"\n")
        sys.stdout.buffer.flush()
    except SaysoError as error:
        print(f"Sayso blocked the call: {error.message}", file=sys.stderr)
        return BLOCKED
    except BaseException:  # noqa: BLE001 - any other exit status lets the call run
        print(f"Sayso blocked the call after a fault of its own: {traceback.format_exc()}", file=sys.stderr)
        return BLOCKED
    if verdict.decision != "allow":
        print(verdict.reason, file=sys.stderr)
    return 0


def _end_without_reader(descriptor: int) -> None:
    """End this process once nobody reads its answer, so that an agent that was killed uses up no approval."""
    if not hasattr(select, "poll"):  # Windows
        return
    poll = select.poll()
    poll.register(descriptor, 0)  # the loss of the reader is reported without a request

    def watch() -> None:
        if any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll()):
            os._exit(BLOCKED)

    Thread(target=watch, daemon=True).start()
