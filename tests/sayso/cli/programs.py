"""Programs of the command line, forked from one process that has imported it: each runs for itself and starts at once.

`python -m tests.sayso.cli.programs` is that process. It reads a request a line and answers with the exit status.
"""

import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from sayso.__main__ import main
from service.core.settings import CHECKOUT


class Programs:
    """The process that forks programs; `run` is like `subprocess.run` of `python -m sayso`."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.sayso.cli.programs"],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self, words: Sequence[str], environ: Mapping[str, str], typed: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run one program to its end; `typed` is its standard input."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            files = [str(Path(folder) / name) for name in ("typed", "printed", "complained")]
            Path(files[0]).write_text(typed)
            self._process.stdin.write(json.dumps({"words": [*words], "environ": dict(environ), "files": files}) + "\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            printed, complained = (Path(file).read_text() for file in files[1:])
        return subprocess.CompletedProcess(["sayso", *words], status, printed, complained)

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=20)


def serve() -> None:
    """Fork a program for each request until the end of the input."""
    from sayso.cli.commands import COMMANDS, POLICY_COMMANDS

    for place, _ in (*COMMANDS.values(), *POLICY_COMMANDS.values()):
        import_module(f"sayso.{place.partition(':')[0]}")  # every program has it then
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(**request)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _become(words: Sequence[str], environ: Mapping[str, str], files: Sequence[str]) -> NoReturn:
    status = 1
    try:
        for number, (file, flags) in enumerate(zip(files, (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT] * 2), strict=True)):
            os.dup2(os.open(file, flags), number)
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(os.fdopen(number, mode), encoding="utf-8", write_through=number == 2)
            for number, mode in enumerate(("rb", "wb", "wb"))
        )
        os.environ.clear()
        os.environ.update(environ)
        sys.argv = ["sayso", *words]
        status = main()
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve()
