"""A real terminal for tests: tmux, with a program in it, keys to press, its screen, and every byte that went there."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from launch.browser import install_commands
from launch.stops import wait_until

PATIENCE_S = 30


def ensure_tmux() -> str:
    """Return the machine's tmux, installed now if need be."""
    if shutil.which("tmux") is None:
        for command in install_commands(is_root=os.geteuid() == 0, package="tmux"):
            subprocess.run(command, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    found = shutil.which("tmux")
    assert found is not None, "install tmux by hand"
    return found


class Terminal:
    """One terminal, 100 columns by 30 lines, in which a program runs."""

    def __init__(self, socket: Path, log: Path) -> None:
        self._socket = socket
        self._log = log

    def press(self, *keys: str) -> None:
        """Press keys, as tmux names them; text is typed as it is."""
        self.tell("send-keys", *keys)

    def screen(self) -> str:
        """Return the text on the screen and above it."""
        return self.tell("capture-pane", "-p", "-S", "-500", "-J")

    def written(self) -> bytes:
        """Return every byte that the program wrote to the terminal."""
        return self._log.read_bytes()

    def title(self) -> str:
        """Return the title, which only an escape sequence can have changed."""
        return self.tell("display-message", "-p", "#{pane_title}").strip()

    def await_text(self, text: str) -> None:
        """Return once the text is on the screen."""
        assert wait_until(lambda: text in self.screen(), PATIENCE_S), self.screen()

    def tell(self, *command: str) -> str:
        """Give tmux a command."""
        full = [ensure_tmux(), "-S", str(self._socket), *command]
        return subprocess.run(full, check=True, capture_output=True, text=True).stdout


@contextmanager
def terminal(home: Path, environ: Mapping[str, str]) -> Iterator[Terminal]:
    """Open a terminal with a plain shell in it."""
    log = home / "written.bin"
    log.touch()
    opened = Terminal(home / "tmux", log)
    settings = [f"{name}={value}" for name, value in {**environ, "PS1": "$ ", "LC_ALL": "C.UTF-8"}.items()]
    shell = shlex.join(["env", "-i", f"PATH={os.environ['PATH']}", "TERM=xterm-256color", *settings, "/bin/sh"])
    opened.tell("-u", "-f", "/dev/null", "new-session", "-d", "-x", "100", "-y", "30", shell)
    try:
        opened.tell("pipe-pane", "-O", f"cat >> {shlex.quote(str(log))}")
        yield opened
    finally:
        opened.tell("kill-server")
