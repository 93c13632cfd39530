"""Claude Code in a folder of its own, in front of a scripted model."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from launch.stops import wait_until
from service.core.settings import CHECKOUT
from tests.frameworks.claude_agent_sdk.models import ScriptedModel
from tests.frameworks.kinds import CLAUDE, find_python
from tests.frameworks.mcp.desks import PATIENCE_S, Desk

PYTHON = find_python(CLAUDE)
PROGRAM = f'#!/bin/sh\nexec "{sys.executable}" -m sayso "$@"\n'


@dataclass
class Agent:
    """An agent with a hook: by its settings (`command`), or by the options of its SDK (`sdk`).

    With `defers`, both have it by their settings, and a run ends with a call that waits. Such a run is resumed without
    a prompt: before a new one, Claude Code would forget a call that is deferred again.
    """

    desk: Desk
    kind: str
    wait_s: int = PATIENCE_S
    defers: bool = False
    session: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def project(self) -> Path:
        """The folder in which it works."""
        return self.desk.home / "shop"

    def write(self, name: str) -> str:
        """Return a command that writes a file outside of the project, which the rules ask about."""
        return f"echo {name} >> {self.desk.home / name}"

    def written(self, name: str) -> int:
        """Return how many times a command has run."""
        file = self.desk.home / name
        return len(file.read_text().splitlines()) if file.exists() else 0

    @contextmanager
    def running(self, model: ScriptedModel, *resume: str) -> Iterator[subprocess.Popen[bytes]]:
        """Run the agent in a session of processes of its own."""
        environ = self.environ(model)
        wait_s = "" if self.defers else str(self.wait_s)
        command = [str(PYTHON), "-m", "tests.frameworks.claude_agent_sdk.run_agent", wait_s, self.session]
        if (self.kind == "command" or self.defers) and not resume:
            ending = ["--wait", "0", "--defer"] if self.defers else ["--wait", wait_s]
            install = ["sayso", "hook", "install", "claude-code", *ending]
            subprocess.run(install, cwd=self.project, env=environ, check=True, stdout=subprocess.DEVNULL)
        if self.kind == "command":
            begun = ["--resume" if resume else "--session-id", self.session]
            prompt = [] if resume and self.defers else ["go"]
            command = [str(find_claude()), "-p", *prompt, *begun]
        else:
            command += resume
        with (self.desk.home / "output").open("ab") as output:
            child = subprocess.Popen(
                command,
                cwd=self.project,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield child
        finally:
            if child.poll() is None:
                kill(child)

    def run(self, model: ScriptedModel, *resume: str) -> None:
        """Run the agent to its end."""
        with self.running(model, *resume) as child:
            assert wait_until(lambda: child.poll() is not None, PATIENCE_S), self.desk.waiting()
            assert child.returncode == 0, (self.desk.home / "output").read_text()

    def await_record(self, text: str = '"type":"user"') -> None:
        """Wait until Claude Code has recorded the prompt, some time after it: a session without one cannot resume."""
        record = f"projects/*/{self.session}.jsonl"
        assert wait_until(
            lambda: any(text in file.read_text() for file in (self.desk.home / "home" / ".claude").glob(record)),
            PATIENCE_S,
        )

    def environ(self, model: ScriptedModel) -> dict[str, str]:
        """Return the environment of Claude Code, and make its folders."""
        folder = self.desk.home / "bin"
        folder.mkdir(exist_ok=True)
        self.project.mkdir(exist_ok=True)
        (folder / "sayso").write_text(PROGRAM)
        (folder / "sayso").chmod(0o755)
        return self.desk.environ(
            PATH=f"{folder}:{os.environ['PATH']}",
            HOME=str(self.desk.home / "home"),
            PYTHONPATH=str(CHECKOUT),
            ANTHROPIC_BASE_URL=model.url,
            ANTHROPIC_API_KEY="none",
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
            HTTPS_PROXY="http://127.0.0.1:9",  # nothing leaves this machine
            NO_PROXY="127.0.0.1",
        )


def find_claude() -> Path:
    """Return the program that the SDK brings."""
    (program,) = PYTHON.parent.parent.glob("lib/*/site-packages/claude_agent_sdk/_bundled/claude")
    return program


def kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the agent with its hooks and commands."""
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
