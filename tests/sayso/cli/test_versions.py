"""`sayso --version` names the version of the desk that answers."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from sayso import __version__
from tests.sayso.cli.test_commands import Run, desk, sayso  # noqa: F401


class LaterDesk(BaseHTTPRequestHandler):
    """A desk of a later version, as far as its health."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Sayso-Version", "9.0.0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def running_later_desk() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), LaterDesk) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def test_version_names_the_desk_that_answers(desk: tuple[str, str, str, str], sayso: Run) -> None:  # noqa: F811
    assert sayso("--version").stdout == f"sayso {__version__}\ndesk {__version__} at {desk[0]}\n"


def test_version_says_that_the_desk_is_another_one(sayso: Run) -> None:  # noqa: F811
    with running_later_desk() as url:
        lines = sayso("--version", url=url).stdout.splitlines()
    assert lines[:2] == [f"sayso {__version__}", f"desk 9.0.0 at {url}"]
    assert lines[2].endswith(f"pip install --extra-index-url {url}/sdk/ sayso==9.0.0")


def test_version_needs_no_desk(sayso: Run) -> None:  # noqa: F811
    for url in ("http://127.0.0.1:9", "no address"):
        assert sayso("--version", url=url).stdout == f"sayso {__version__}\n"
