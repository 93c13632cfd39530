"""The command line in a real terminal: live inbox, decisions, and hostile text."""

import asyncio
import re
import sys
from pathlib import Path

import pytest

from sayso.client import Client
from sayso.core.text.invisible import UNCHECKED
from service.assembly import assemble
from service.core.settings import CHECKOUT, Settings
from tests.builders import make_agent, make_person
from tests.service.servers import served
from tests.terminals import Terminal, terminal

HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x1b[31mred\x9b8m\u202edlog\u2066\x08\x08\r\x1b[8mhidden[bold]not bold[/bold] :bomb:"
HARMLESS = re.compile(rb"\x1b\[[0-9;]*m|\x1b\[[0-9]*[AGK]|\x1b\[2?K|\x1b\[\?25[lh]|\x1b\[1A|[\r\n\t]")
"""Sequences that the command line itself writes: colours and cursor movement."""


async def prepare(settings: Settings) -> tuple[str, str]:
    """Return an agent's key and a person's token."""
    async with assemble(settings) as wiring:
        return await make_agent(wiring, "bot"), await make_person(wiring, "anna")


def ask(url: str, key: str, name: str, **args: str) -> str:
    """Submit a call as an agent, and return the suspension's id."""
    definition = {"description": HOSTILE, "parameters": {"type": "object"}}
    calls = [{"tool": name, "args": args, "definition": definition}]
    with Client(url, key) as agent:
        return agent.suspend({"mode": "poll", "title": f"Title {HOSTILE}", "calls": calls}).id  # type: ignore[dict-item]


def check_bytes(written: bytes) -> None:
    """Check that the terminal received no control bytes but the command line's own."""
    text = HARMLESS.sub(b"", written).decode()
    assert [sign for sign in text if ord(sign) < 0x20 or 0x7F <= ord(sign) < 0xA0 or sign in "\u202e\u202d\u2066"] == []


@pytest.fixture
def command(tmp_path: Path) -> str:
    """The shell command that runs the command line."""
    return f"cd {CHECKOUT} && {sys.executable} -m sayso"


def test_inbox_and_approve_in_a_terminal(clean_store_url: str, tmp_path: Path, command: str) -> None:
    settings = Settings(redis_url=clean_store_url)
    with served(settings) as url:
        key, token = asyncio.run(prepare(settings))
        environ = {"SAYSO_URL": url, "SAYSO_KEY": token, "HOME": str(tmp_path)}
        with terminal(tmp_path, environ) as shell:
            shell.press(f"{command} inbox", "Enter")
            shell.await_text("Nothing waits.")
            waiting = ask(url, key, "refund", order="A-1")
            shell.await_text(f"{waiting[-6:]}  ")
            shell.press("C-c")
            shell.press(f"{command} approve {waiting[-6:]}", "Enter")
            shell.await_text("Approve?")
            shell.press("y", "Enter")
            shell.await_text("refund: approved.")
        with Client(url, key) as agent:
            assert agent.wait(waiting, 10).items[0].outcome is not None


def test_hostile_text_writes_no_control_bytes(clean_store_url: str, tmp_path: Path, command: str) -> None:
    settings = Settings(redis_url=clean_store_url)
    with served(settings) as url:
        key, token = asyncio.run(prepare(settings))
        waiting = ask(url, key, "pay", order=HOSTILE)
        environ = {"SAYSO_URL": url, "SAYSO_KEY": token, "HOME": str(tmp_path), "PAGER": "cat"}
        with terminal(tmp_path, environ) as shell:
            title = shell.title()
            run_id = find_run(url, key)
            commands = ("inbox --once", f"show {waiting}", f"deny {waiting} -y -m no", "runs", f"events {run_id}")
            for number, words in enumerate(commands):
                shell.press(f"{command} {words}; echo done-{number}-$?", "Enter")
                shell.await_text(f"done-{number}-0")
            assert shell.title() == title
            assert "⟨U+001B⟩" in shell.screen()
            assert "[bold]notbold[/bold]:bomb:" in read_through(shell), "no markup is read"
            check_bytes(shell.written())


def test_show_opens_a_pager_for_what_is_longer_than_the_screen(
    clean_store_url: str, tmp_path: Path, command: str
) -> None:
    settings = Settings(redis_url=clean_store_url)
    with served(settings) as url:
        key, token = asyncio.run(prepare(settings))
        short, long = ask(url, key, "pay", order="A-1"), ask(url, key, "pay", order="line\n" * 90)
        environ = {"SAYSO_URL": url, "SAYSO_KEY": token, "HOME": str(tmp_path), "PAGER": "sed s/^/paged:/"}
        with terminal(tmp_path, environ) as shell:
            shell.press(f"{command} show {short} > {tmp_path}/short; {command} show {long[-6:]}; echo done-$?", "Enter")
            shell.await_text("done-0")
            assert "paged:" in shell.screen()
            shell.press(f"{command} show {long} | grep paged; echo ended-$?", "Enter")
            shell.await_text("ended-1")


def test_approve_shows_a_long_text_to_its_end(clean_store_url: str, tmp_path: Path, command: str) -> None:
    """The text was cut at 20,000 characters before the confirmation."""
    settings = Settings(redis_url=clean_store_url)
    with served(settings) as url:
        key, token = asyncio.run(prepare(settings))
        text = f"{'harmless ' * 3_000}{' ' * 9_000}rm -rf / #the-end"
        waiting = ask(url, key, "shell", command=text)
        with terminal(tmp_path, {"SAYSO_URL": url, "SAYSO_KEY": token, "HOME": str(tmp_path)}) as shell:
            shell.press(f"{command} approve {waiting}", "Enter")
            shell.await_text("Approve?")
            assert "rm-rf/#the-end" in read_through(shell)
            assert "⟨9001spaces⟩" in read_through(shell)
            assert b"characters more" not in shell.written()


def test_approve_refuses_what_no_terminal_can_keep(clean_store_url: str, tmp_path: Path, command: str) -> None:
    settings = Settings(redis_url=clean_store_url)
    with served(settings) as url:
        key, token = asyncio.run(prepare(settings))
        waiting = ask(url, key, "shell", command="\n".join(f"echo {place}" for place in range(60_000)))
        with terminal(tmp_path, {"SAYSO_URL": url, "SAYSO_KEY": token, "HOME": str(tmp_path)}) as shell:
            shell.press(f"{command} approve {waiting}; echo done-$?", "Enter")
            shell.await_text("done-1")
            shown = "".join(shell.screen().split())
            assert "the1,000thataterminalmaykeep.Nothingwasdecided." in shown
            assert f"{url}/items/{waiting}/i1" in shown
            shell.press(f"clear; {command} deny {waiting}; echo done-$?", "Enter")
            shell.await_text("Deny?")
            shell.press("y", "Enter")
            shell.await_text("done-0")


def test_inbox_says_until_when_and_marks_the_title(clean_store_url: str, tmp_path: Path, command: str) -> None:
    settings = Settings(redis_url=clean_store_url)
    with served(settings) as url:
        key, token = asyncio.run(prepare(settings))
        waiting = ask(url, key, "refund", order="A-1", note="short")
        with terminal(tmp_path, {"SAYSO_URL": url, "SAYSO_KEY": token, "HOME": str(tmp_path), "TZ": "UTC"}) as shell:
            shell.press(f"clear; {command} inbox --once; echo done-$?", "Enter")
            shell.await_text("done-0")
            with Client(url, token) as anna:
                due = anna.find(waiting).items[0].terms.deadline_at
            first, second, third = shell.screen().split("\n")[:3]
            clock = rf"(\w{{3}} \d\d \w{{3}} )?{due:%H:%M}, (\d+ \w+ ){{1,2}}left"
            assert re.match(rf"{waiting[-6:]}  {clock}  refund {{", first), first
            assert second.startswith("        bot · No rule matched")
            assert third.startswith(f"        {UNCHECKED}: Title ")
            assert third.endswith("…"), "a title that is cut says so"
            assert max(map(len, (first, second, third))) <= 100


MAIL = "Dear Sir,\n\n  your order\tis late.\nallowed: approve\n"


def test_show_and_approve_print_real_line_breaks(clean_store_url: str, tmp_path: Path, command: str) -> None:
    settings = Settings(redis_url=clean_store_url)
    with served(settings) as url:
        key, token = asyncio.run(prepare(settings))
        waiting = ask(url, key, "mail", body=MAIL, to="x@y.example", long="word " * 40, **{"a\nkey": "1"})
        with terminal(tmp_path, {"SAYSO_URL": url, "SAYSO_KEY": token, "HOME": str(tmp_path)}) as shell:
            for words, end in (("show", "done-0"), ("approve", "Approve?")):
                shell.press(f"clear; {command} {words} {waiting[-6:]}; echo done-$?", "Enter")
                shell.await_text(end)
                lines = shell.screen().split("\n")
                place = lines.index(next(line for line in lines if line.startswith("body ")))
                assert [line.rstrip() for line in lines[place : place + 5]] == [
                    "body       │ Dear Sir,",
                    "           │",
                    "           │   your order    is late.",
                    "           │ allowed: approve",
                    "           │",
                ]
                assert "to         │ x@y.example" in lines
                assert '["a\\nkey"] │ "1"' in lines
                assert sum(line.startswith("           ┆ word") for line in lines) == 2, (
                    "wrapped lines have another bar"
                )
                assert not any(line.startswith("word") for line in lines)
            shell.press("n", "Enter")


def read_through(shell: Terminal) -> str:
    """Return the screen without blanks and bars."""
    return re.sub(r"[\s│┆]", "", shell.screen())


def find_run(url: str, key: str) -> str:
    with Client(url, key) as agent:
        return agent.runs().runs[0].id
