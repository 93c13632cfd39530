"""Keep programs running under supervisord: a generated configuration, and the few words said to it while it runs.

The server is a group of its own with the lowest priority, so it is stopped last; all others stop at the same time.
A work horse lives in a process group of its own and outlives its worker's SIGKILL: `launch.leftovers` ends it.
"""

import contextlib
import http.client
import os
import shlex
import subprocess
import sys
import xmlrpc.client
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from supervisor.xmlrpc import SupervisorTransport

from launch.errors import NotReady
from launch.homes import logs_folder, prepare_socket_folder
from launch.programs import SERVER, Program
from service.settings import CHECKOUT
from service.settings.places import socket_path

GROUP = "sayso"
STOP_GRACE_S = 2
"""Seconds a program has after SIGTERM; then it is killed, so that Ctrl-C never takes much longer than this."""

DOWN = ("BACKOFF", "EXITED", "FATAL", "STOPPED", "UNKNOWN")

_HEAD = """\
[supervisord]
nodaemon = true
silent = true
umask = 077
identifier = sayso
logfile = logs/supervisor.log
logfile_maxbytes = 1MB
logfile_backups = 1
pidfile = supervisor.pid
childlogdir = logs

[unix_http_server]
file = {control}
chmod = 0700

[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
"""

_PROGRAM = """
[program:{name}]
command = {command}
directory = {checkout}
numprocs = {count}
process_name = {process}
priority = {priority}
autostart = false
autorestart = true
startsecs = 1
startretries = 1000000
stopsignal = TERM
stopwaitsecs = {grace}
killasgroup = true
redirect_stderr = true
stdout_logfile = logs/{process}.log
stdout_logfile_maxbytes = 10MB
stdout_logfile_backups = 3
environment = {hidden}
"""

_GROUP = """
[group:{group}]
programs = {names}
priority = 20
"""


@dataclass(frozen=True)
class ProgramState:
    """What the supervisor knows of one running copy of a program; its pid is 0 while it is down."""

    name: str
    pid: int
    state: str
    started_at_s: int
    logfile: Path

    @property
    def is_down(self) -> bool:
        """Whether it is not running just now, and not because we did not start it yet."""
        return self.state in DOWN


def render_config(programs: Iterable[Program], home: Path) -> str:
    """Return the supervisor's configuration for these programs; it holds no secret, they travel in the environment.

    Its files are named from the home, where supervisord runs: it expands a logfile's percent signs more than once.
    """
    programs = tuple(programs)
    head = _HEAD.format(control=_escape(control_socket(home)))
    blocks = [_render_program(program) for program in programs]
    others = ",".join(program.name for program in programs if program.name != SERVER.name)
    return head + "".join(blocks) + (_GROUP.format(group=GROUP, names=others) if others else "")


def control_socket(home: Path) -> Path:
    """Return where the supervisor of this home listens for us; there is no network port."""
    return socket_path(home, "supervisor.sock")


def first_words(home: Path) -> Path:
    """Return where supervisord says what is wrong before it has a log; it outlives us, so our output is not its."""
    return logs_folder(home) / "supervisor.out"


@dataclass(frozen=True)
class Supervisor:
    """A supervisord of ours and the programs under it."""

    home: Path
    child: subprocess.Popen[bytes]

    @classmethod
    def start(cls, programs: Iterable[Program], home: Path, environ: Mapping[str, str]) -> "Supervisor":
        """Start supervisord with these programs, none of them running yet, out of reach of the terminal's Ctrl-C."""
        config = home / "supervisor.conf"
        config.write_text(render_config(programs, home), encoding="utf-8")
        prepare_socket_folder(home, control_socket(home))
        with first_words(home).open("wb") as out:
            child = subprocess.Popen(
                [sys.executable, "-m", "supervisor.supervisord", "--nodaemon", "--configuration", str(config)],
                cwd=home,
                env={**environ, "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        return cls(home, child)

    def is_alive(self) -> bool:
        """Tell whether supervisord itself runs."""
        return self.child.poll() is None

    def is_listening(self) -> bool:
        """Tell whether supervisord takes our words yet."""
        with contextlib.suppress(NotReady):
            return int(self._ask("getPID")) == self.child.pid
        return False

    def start_server(self) -> None:
        """Start the embedded server alone; everything else needs it."""
        self._ask("startProcess", SERVER.name, False)

    def start_others(self) -> None:
        """Start every program but the server."""
        self._ask("startProcessGroup", GROUP, False)

    def kill(self, name: str) -> None:
        """Kill a program of the group, stopped or not; the supervisor starts it again."""
        self._ask("signalProcess", f"{GROUP}:{name}", "KILL")

    def states(self) -> tuple[ProgramState, ...]:
        """Return the state of every program."""
        return tuple(
            ProgramState(row["name"], row["pid"], row["statename"], row["start"], self.home / row["stdout_logfile"])
            for row in cast("list[dict[str, Any]]", self._ask("getAllProcessInfo"))
        )

    def ask_to_stop(self) -> None:
        """Have supervisord stop every program and then itself."""
        self.child.terminate()

    def _ask(self, word: str, *args: object) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{control_socket(self.home)}")
        try:
            with xmlrpc.client.ServerProxy("http://supervisor", transport=transport) as proxy:
                return getattr(proxy.supervisor, word)(*args)
        except (OSError, http.client.HTTPException, xmlrpc.client.Error) as error:
            raise NotReady(f"The supervisor did not take '{word}': {error}. Its log is supervisor.log.") from None


def _render_program(program: Program) -> str:
    return _PROGRAM.format(
        name=program.name,
        command=_escape(shlex.join([sys.executable, "-m", program.module])),
        checkout=_escape(CHECKOUT),
        count=program.count,
        process=program.name if program.count == 1 else "%(program_name)s-%(process_num)d",
        priority=10 if program.name == SERVER.name else 20,
        grace=STOP_GRACE_S,
        hidden=",".join(f'{name}=""' for name in program.hidden),  # empty counts as not set
    )


def _escape(value: str | Path) -> str:
    """Return the value as the configuration file writes it, where a percent sign would begin an expansion."""
    return os.fspath(value).replace("%", "%%")
