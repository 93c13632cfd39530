"""The entry point of the command line, `sayso` or `python -m sayso`."""

import signal
import sys
from importlib.util import find_spec

from sayso.core.packages import install_command

NEEDED = ("typer", "rich")


def main() -> int:
    """Run the command line. Return 2 when its packages are not installed, and 130 after Ctrl-C."""
    try:
        return _main()
    except KeyboardInterrupt:
        return 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C at the end of the interpreter is no error


def _main() -> int:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f"The command line needs {' and '.join(missing)}: {install_command('cli')}", file=sys.stderr)
        return 2
    from sayso.cli.commands import run

    return run()


if __name__ == "__main__":
    raise SystemExit(main())
