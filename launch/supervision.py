"""Keeps programs running under supervisord: writes its configuration and calls its XML-RPC interface.

The server has the lowest priority in a group of its own, so it stops last. All others stop together. A work horse has
its own process group and outlives a SIGKILL of its worker; `launch.homes` ends it.
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
from shutil import which
from typing import Any, cast

from supervisor.xmlrpc import SupervisorTransport

from launch import NotReady
from launch.homes import logs_folder, prepare_socket_folder
from launch.programs import SERVER, Program
from service.core.settings import CHECKOUT, socket_path, variable_of

GROUP = "sayso"
STOP_GRACE_S = 2
"""Seconds between SIGTERM and SIGKILL, which limits how long a stop takes."""

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
environment = {environment}
"""

_GROUP = """
[group:{group}]
programs = {names}
priority = 20
"""


@dataclass(frozen=True)
class ProgramState:
    """The supervisor's state of one process. Its pid is 0 while it is down."""

    name: str
    pid: int
    state: str
    started_at_s: int
    logfile: Path

    @property
    def is_down(self) -> bool:
        """Whether the process has been started and is not running."""
        return self.state in DOWN


def render_config(programs: Iterable[Program], home: Path) -> str:
    """Return the supervisor's configuration. Secrets are passed in the environment.

    Paths are relative to the home, where supervisord runs: it expands percent signs in logfile names repeatedly.
    """
    programs = tuple(programs)
    head = _HEAD.format(control=_escape(control_socket(home)))
    blocks = [_render_program(program) for program in programs]
    others = ",".join(program.name for program in programs if program.name != SERVER.name)
    return head + "".join(blocks) + (_GROUP.format(group=GROUP, names=others) if others else "")


def control_socket(home: Path) -> Path:
    """Return the supervisor's control socket. There is no network port."""
    return socket_path(home, "supervisor.sock")


def startup_log(home: Path) -> Path:
    """Return the file for supervisord's output before its log exists. It must outlive our own output."""
    return logs_folder(home) / "supervisor.out"


@dataclass(frozen=True)
class Supervisor:
    """A running supervisord."""

    home: Path
    child: subprocess.Popen[bytes]

    @classmethod
    def start(cls, programs: Iterable[Program], home: Path, environ: Mapping[str, str]) -> "Supervisor":
        """Start supervisord in its own session, out of reach of Ctrl-C, with all programs stopped."""
        config = home / "supervisor.conf"
        config.write_text(render_config(programs, home), encoding="utf-8")
        prepare_socket_folder(home, control_socket(home))
        with startup_log(home).open("wb") as out:
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
        """Return whether supervisord is running."""
        return self.child.poll() is None

    def is_listening(self) -> bool:
        """Return whether supervisord accepts commands."""
        with contextlib.suppress(NotReady):
            return int(self._ask("getPID")) == self.child.pid
        return False

    def start_server(self) -> None:
        """Start the embedded server, which all others need."""
        self._ask("startProcess", SERVER.name, False)

    def start_others(self) -> None:
        """Start every program except the server."""
        self._ask("startProcessGroup", GROUP, False)

    def kill(self, name: str) -> None:
        """Kill a program of the group. The supervisor restarts it."""
        self._ask("signalProcess", f"{GROUP}:{name}", "KILL")

    def states(self) -> tuple[ProgramState, ...]:
        return tuple(
            ProgramState(row["name"], row["pid"], row["statename"], row["start"], self.home / row["stdout_logfile"])
            for row in cast("list[dict[str, Any]]", self._ask("getAllProcessInfo"))
        )

    def stop(self) -> None:
        """Make supervisord stop all programs and then itself."""
        self.child.terminate()

    def _ask(self, method: str, *args: object) -> Any:
        transport = SupervisorTransport(None, None, f"unix://{control_socket(self.home)}")
        try:
            with xmlrpc.client.ServerProxy("http://supervisor", transport=transport) as proxy:
                return getattr(proxy.supervisor, method)(*args)
        except (OSError, http.client.HTTPException, xmlrpc.client.Error) as error:
            raise NotReady(f"The supervisor failed to run '{method}': {error}. See supervisor.log.") from None


def _render_program(program: Program) -> str:
    return _PROGRAM.format(
        name=program.name,
        command=_escape(shlex.join([*_nice(program), sys.executable, "-m", program.module])),
        checkout=_escape(CHECKOUT),
        count=program.count,
        process=program.name if program.count == 1 else "%(program_name)s-%(process_num)d",
        priority=10 if program.name == SERVER.name else 20,
        grace=STOP_GRACE_S,
        environment=",".join(f'{name}="{value}"' for name, value in _environment_of(program).items()),
    )


def _environment_of(program: Program) -> dict[str, str]:
    """Return what the program gets in place of the launcher's own variables; empty means unset."""
    return dict.fromkeys(program.hidden, "") | ({variable_of("tenant"): program.tenant} if program.tenant else {})


def _nice(program: Program) -> tuple[str, ...]:
    """Return the command that lowers the priority, where there is one; it keeps the process for signals."""
    return ("nice", "-n", str(program.niceness)) if program.niceness and which("nice") else ()


def _escape(value: str | Path) -> str:
    """Double percent signs, which start an expansion in the configuration file."""
    return os.fspath(value).replace("%", "%%")
