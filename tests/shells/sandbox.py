"""A folder in which shells run texts: each program there records its arguments and does nothing else."""

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

BASH, DASH = shutil.which("bash"), shutil.which("dash")
SECONDS = 15.0
"""How long the texts of one shell may take together."""

STUBS = ("aws", "cat", "docker", "git", "grep", "head", "kubectl", "ls", "npm", "rm", "sort", "tee", "touch", "wc")
FAILING = ("rm", "grep")
STARTERS = ("env", "find", "nice", "nohup", "setsid", "time", "timeout", "xargs")
"""Real programs that start others."""

HOSTILE = "push --output=f9 -v a[$(touch p9)] rm"
"""What each program writes, and what variables hold."""

_STUB = """#!/bin/sh
trap '' PIPE
printf '%s\\0' "$(($# + 1))" "${{0##*/}}" "$@" >> "$PWD.log"
echo '{hostile}'
exit {status}
"""
_NOTE = 'builtin printf "%s" "$PATH|$IFS|${LD_PRELOAD-}|${BASH_ENV-}" > "$PWD.state"'
_BASH_DRIVER = f"""
command_not_found_handle() {{ builtin printf '%s\\0' "$#" "$@" >> "$PWD.log"; return 127; }}
builtin cd work || exit 1
for __place in "$@"; do
  IFS= read -r -d '' __text < "$__place.txt"
  ( builtin cd "$__place" && set -- && eval "$__text"
    {_NOTE} ) < /dev/null > /dev/null 2>&1
done
"""
_DASH_DRIVER = """
cd work || exit 1
for __place in "$@"; do
  __text=$(/bin/cat "$__place.txt"; echo .)
  ( cd "$__place" && set -- && eval "${__text%.}" ) < /dev/null > /dev/null 2>&1
done
"""
_FILES = {"f1": "one\n", "f2": "two\n", "-v": "", "--output=f9": "", "rm": "", "a b": ""}


@dataclass
class Ran:
    """What a shell did with a text: the programs that it started with their arguments, and the files that changed."""

    commands: list[list[str]] = field(default_factory=list)
    files: set[str] = field(default_factory=set)
    state: str | None = None
    """The variables that steer programs, where the shell reached the end of the text."""


class Sandbox:
    """A folder with programs that record."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.work, self._count = folder, folder / "work", 0
        programs = folder / "bin"
        programs.mkdir()
        self.work.mkdir()
        for name in STUBS:
            stub = programs / name
            stub.write_text(_STUB.format(hostile=HOSTILE, status=int(name in FAILING)))
            stub.chmod(0o755)
        for name, real in (*((one, shutil.which(one)) for one in STARTERS), ("bash", BASH), ("sh", DASH or BASH)):
            if real is not None:
                (programs / name).symlink_to(real)
        self.environment = {"PATH": str(programs), "X": HOSTILE, "Y": "-v", "HOME": str(folder), "LC_ALL": "C.UTF-8"}

    @property
    def state(self) -> str:
        """What the variables hold before a text."""
        return f"{self.environment['PATH']}| \t\n||"

    def run(self, texts: Sequence[str], shell: str) -> list[Ran]:
        """Run texts in a shell, each in a folder of its own, and return what each did."""
        places = [self._place(text) for text in texts]
        if not self._drive(places, shell):
            for place in places:
                self._clear(place)
                self._drive([place], shell)
        return [self._read(place) for place in places]

    def _place(self, text: str) -> str:
        self._count += 1
        place = str(self._count)
        (self.work / place).mkdir()
        for name, content in _FILES.items():
            (self.work / place / name).write_text(content)
        (self.work / f"{place}.txt").write_bytes(text.encode())
        return place

    def _clear(self, place: str) -> None:
        for path in self.work.glob(f"{place}.*"):
            if path.suffix != ".txt":
                path.unlink()
        shutil.rmtree(self.work / place)
        (self.work / place).mkdir()
        for name, content in _FILES.items():
            (self.work / place / name).write_text(content)

    def _drive(self, places: Sequence[str], shell: str) -> bool:
        """Return whether the shell, and all that it started, ended in time."""
        driver = _BASH_DRIVER if shell == BASH else _DASH_DRIVER
        options = ("--norc", "--noprofile") if shell == BASH else ()
        ended, held = os.pipe()
        process = subprocess.Popen(
            [shell, *options, "-c", driver, "_", *places],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(held,),
            start_new_session=True,
        )
        os.close(held)
        with os.fdopen(ended) as waiting:
            # Each program that the shell starts holds the other end, in the background too.
            has_ended = bool(select.select([waiting], [], [], SECONDS)[0])
        if not has_ended:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return has_ended

    def _read(self, place: str) -> Ran:
        log, state = self.work / f"{place}.log", self.work / f"{place}.state"
        ran = Ran(state=state.read_text() if state.exists() else None)
        if log.exists():
            ran.commands.extend(_split(log.read_bytes().decode(errors="replace").split("\0")))
        folder = self.work / place
        for path in folder.rglob("*"):
            name = str(path.relative_to(folder))
            if path.is_file() and path.read_bytes() != _FILES.get(name, "\0").encode():
                ran.files.add(name)
        ran.files.update(name for name in _FILES if not (folder / name).exists())
        return ran


def _split(parts: list[str]) -> Iterator[list[str]]:
    place = 0
    while place < len(parts) - 1:
        size = int(parts[place])
        yield parts[place + 1 : place + 1 + size]
        place += 1 + size
